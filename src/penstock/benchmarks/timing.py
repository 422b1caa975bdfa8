"""How short measurements on one core are taken: the best of several, since others can only slow them down."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.reports import Check, Value

__all__ = ["Measured", "best_seconds"]


@dataclass(frozen=True)
class Measured:
    """What one part of a benchmark gave."""

    rows: tuple[Mapping[str, Value], ...]
    checks: tuple[Check, ...]


def best_seconds(
    work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The shortest of `repeats` runs, after one that does not count."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best
