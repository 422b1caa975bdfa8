"""Which keys are tracked: any other may use a set fraction of the allowed imbalance ([003] §4.1.3)."""

import math
from dataclasses import dataclass

from penstock.errors import BadRouting
from penstock.routing.resources import LCL, Growth, Resources
from penstock.routing.router import Costs

__all__ = ["Goal", "allowance", "counter_threshold", "table_threshold"]


@dataclass(frozen=True)
class Goal:
    """What a partitioning should achieve: the tolerances of its resources over `domain` keys.

    `sigma` is the fraction of the allowed imbalance that a single untracked key may use up.
    """

    resources: Resources = LCL
    sigma: float = 0.1
    domain: int = 1_000_000
    utility: str = "APM"

    def __post_init__(self) -> None:
        if not 0 < self.sigma <= 1:
            raise BadRouting(f"sigma is {self.sigma}; give a fraction above 0 and at most 1")
        if self.domain < 1:
            raise BadRouting(f"domain is {self.domain}; give the number of keys, at least 1")


def allowance(tolerance: float, channels: int) -> float:
    """θ: how far a channel may be from the mean load, as a fraction of it (Eq. 15).

    >>> round(allowance(1.2, 10), 4)
    0.1765
    """
    return (tolerance - 1) / (1 + tolerance / (channels - 1)) if channels > 1 else 0.0


def counter_threshold(goal: Goal, channels: int) -> float:
    """δ: the frequency from which keys must be counted, from the worst case of each resource (Eq. 17).

    On one channel nothing can be out of balance, so nothing is tracked.

    >>> round(counter_threshold(Goal(), 10), 6)
    0.001765
    """
    return _least(goal, channels, mean_square=1 / (goal.domain * channels))


def table_threshold(goal: Goal, channels: int, counted: Costs) -> float:
    """The frequency from which keys get a place in the table, given the frequencies that were counted.

    Only quadratic resources gain: their mean load is now nearly known, and is far above the worst case.
    """
    squares = float((counted**2).sum())
    rest = goal.domain - len(counted)
    if rest > 0:
        # Equal shares of what was not counted: the least square load that it can have.
        squares += max(0.0, 1 - float(counted.sum())) ** 2 / rest
    return _least(goal, channels, mean_square=squares / channels)


def _least(goal: Goal, channels: int, mean_square: float) -> float:
    if channels == 1:
        return 1.0
    least = 1.0
    for growth, tolerance in zip(goal.resources.growths, goal.resources.tolerances, strict=True):
        share = goal.sigma * allowance(tolerance, channels)
        if growth is Growth.LINEAR:
            least = min(least, share / channels)
        elif growth is Growth.QUADRATIC:
            least = min(least, math.sqrt(share * mean_square))
    return least
