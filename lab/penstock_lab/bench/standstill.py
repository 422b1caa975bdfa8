"""How long a stream stood still: how much longer the epochs of a change took than steady ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

__all__ = ["Standstill", "gaps", "standstill"]


@dataclass(frozen=True)
class Standstill:
    """Seconds over all epochs of a change, of the worst one, and of a steady epoch before and after it."""

    whole_s: float
    longest_s: float
    steady_s: float
    steady_after_s: float


def gaps(ends: Sequence[float]) -> list[float]:
    """Seconds from the end of each epoch to that of the next; one less than there are epochs.

    >>> gaps([1.0, 1.5, 4.0])
    [0.5, 2.5]
    """
    return [later - end for end, later in pairwise(ends)]


def standstill(before: Sequence[float], change: Sequence[float], after: Sequence[float]) -> Standstill:
    """From the gaps of steady epochs, of the epochs of the change and of those that followed.

    An epoch of the change that was faster than the steady ones does not make up for another.

    >>> standstill([1.0, 1.1, 1.0], [3.0, 0.5, 2.0], [1.2])
    Standstill(whole_s=3.0, longest_s=2.0, steady_s=1.0, steady_after_s=1.2)
    """
    steady = median(before)
    excess = [max(0.0, gap - steady) for gap in change]
    return Standstill(sum(excess), max(excess, default=0.0), steady, median(after) if after else steady)
