"""How long to wait after failures in a row: twice as long each time, up to a bound, and never all at once."""

import random
from typing import Final

__all__ = ["backoff"]

FIRST_S: Final = 0.05
MOST_S: Final = 2.0


def backoff(failures: int) -> float:
    """Seconds to wait; the upper half of the span is drawn, so that many clients do not come together.

    >>> 0.025 <= backoff(1) <= 0.05, 1.0 <= backoff(50) <= 2.0
    (True, True)
    """
    span = min(FIRST_S * 2.0 ** min(failures - 1, 10), MOST_S)
    return span * random.uniform(0.5, 1.0)  # noqa: S311 -- no secret
