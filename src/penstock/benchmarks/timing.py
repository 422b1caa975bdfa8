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


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """The shortest of `repeats` runs, after one that does not count."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
