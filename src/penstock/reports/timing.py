"""How long a call takes at best, which is what it costs when nothing else disturbs it."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["best_seconds"]

T = TypeVar("T")


def best_seconds(call: Callable[[], T], repeats: int) -> tuple[float, T]:
    """The least wall time of some calls, and what the last of them returned.

    >>> best_seconds(lambda: 7, repeats=2)[1]
    7
    """
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return best, result
