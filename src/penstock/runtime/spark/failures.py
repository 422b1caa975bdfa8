"""Restores errors that were raised inside a worker."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from penstock import errors

__all__ = ["raised", "translated"]

# The last line of a worker's traceback, which Spark passes on as text.
_RAISED = re.compile(r"penstock\.errors\.(\w+): (.+?)(?:\n\s*\n|\n\s+at |\Z)", re.DOTALL)


@contextmanager
def translated() -> Iterator[None]:
    """Raise the Penstock error of a worker in place of Spark's wrapper of it."""
    try:
        yield
    except errors.PenstockError:
        raise
    except Exception as error:
        cause = raised(error)
        if cause is error:
            raise
        raise cause from error


def raised(error: BaseException) -> BaseException:
    """The Penstock error of a worker that Spark has wrapped, or the error itself."""
    found = _RAISED.search(str(error))
    kind = getattr(errors, found.group(1), None) if found else None
    if found is None or kind is None:
        return error
    cause: BaseException = kind(found.group(2).strip())
    return cause
