"""Errors that were raised inside a worker, as themselves again."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from penstock import errors

__all__ = ["translated"]

# The last line of a worker's traceback, which Spark carries as text.
_RAISED = re.compile(r"penstock\.errors\.(\w+): (.+?)(?:\n\s*\n|\n\s+at |\Z)", re.DOTALL)


@contextmanager
def translated() -> Iterator[None]:
    """Raise a Penstock error of a worker in place of Spark's wrapping of it."""
    try:
        yield
    except errors.PenstockError:
        raise
    except Exception as error:
        found = _RAISED.search(str(error))
        kind = getattr(errors, found.group(1), None) if found else None
        if found is None or kind is None:
            raise
        raise kind(found.group(2).strip()) from error
