"""What the two Flight services have in common: how they read what is asked, and how they tell an error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import flight

from penstock.errors import BadMessage, NoGate, NotAllowed, PenstockError, TooMany

__all__ = ["Asked", "need", "text", "told"]

Asked = dict[str, Any]
"""The JSON object of an action, or of its answer."""


@contextmanager
def told() -> Iterator[None]:
    """Errors of ours as Flight tells them to a client, with the same words; one that may pass as such."""
    try:
        yield
    except NotAllowed as error:
        raise flight.FlightUnauthorizedError(str(error)) from None
    except (NoGate, TooMany) as error:
        raise flight.FlightUnavailableError(str(error)) from None
    except PenstockError as error:
        raise flight.FlightServerError(f"{type(error).__name__}: {error}") from None
    except flight.FlightError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise flight.FlightServerError(f"the call could not be served: {error}") from None


def need(allowed: bool, what: str) -> None:  # noqa: FBT001 -- reads as a sentence
    """Refuse who has not the right to do something."""
    if not allowed:
        raise NotAllowed(f"this token may not {what}; use one with that right")


def text(asked: Asked, name: str) -> str:
    """A text that must be there."""
    value = asked.get(name)
    if not isinstance(value, str) or not value:
        raise BadMessage(f"{name} is {str(value)[:80]!r}; give text")
    return value
