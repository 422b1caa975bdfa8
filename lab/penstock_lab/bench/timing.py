"""How short measurements on one core are taken: the best of several, since others can only slow them down."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock_lab.reports import Check, Value

__all__ = ["Measured", "Rounds", "best_seconds"]


@dataclass(frozen=True)
class Measured:
    """What one part of a benchmark gave."""

    rows: tuple[Mapping[str, Value], ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Rounds:
    """How often something is timed.

    With `warm` an untimed round over a part of the data comes first. `unjudged` says why bounds on these
    times are not applied; empty if they are.
    """

    repeats: int
    warm: bool = True
    unjudged: str = ""

    @property
    def turns(self) -> range:
        """The numbers of the rounds, from 1; number 0 is the warm-up."""
        return range(0 if self.warm else 1, self.repeats + 1)


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
