"""How even the load of channels is: b per resource and over all, and the penalty ([003] Eq. 11, 19, 20)."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.routing.resources import Growth, Resources
from penstock.routing.router import Costs
from penstock.routing.threshold import allowance

__all__ = ["Balance", "Penalty", "balance", "loads"]


@dataclass(frozen=True)
class Balance:
    """Relative imbalance: most over least load over what is tolerated; 1 is the limit, less is better."""

    state: float
    computation: float
    communication: float

    @property
    def overall(self) -> float:
        """The geometric mean over the three resources, b in the paper."""
        return math.cbrt(self.state * self.computation * self.communication)


def loads(routes: NDArray[np.integer], costs: Costs, channels: int) -> Costs:
    """The load of each channel: the sum of the costs that are routed to it."""
    return np.bincount(routes, weights=costs, minlength=channels).astype(np.float64)


def balance(resources: Resources, loads: Mapping[Growth, Costs]) -> Balance:
    """The imbalance of channels from their load under each growth; infinite if a channel has none.

    >>> even, skewed = np.array([5.0, 5.0]), np.array([6.0, 3.0])
    >>> balance(Resources.of("LCL"), {Growth.LINEAR: skewed, Growth.CONSTANT: even})
    Balance(state=1.6666666666666667, computation=0.8333333333333334, communication=1.6666666666666667)
    """
    pairs = zip(resources.growths, resources.tolerances, strict=True)
    return Balance(*(_ratio(loads[growth]) / tolerance for growth, tolerance in pairs))


def _ratio(load: Costs) -> float:
    return float(load.max() / load.min()) if load.min() > 0 else math.inf


def exceeded(resources: Resources, loads: Mapping[Growth, Costs]) -> tuple[Growth, ...]:
    """The growths of the resources whose most over least load is above what that resource tolerates.

    >>> even, skewed = np.array([5.0, 5.0]), np.array([6.0, 3.0])
    >>> exceeded(Resources.of("LCL"), {Growth.LINEAR: skewed, Growth.CONSTANT: even})
    (<Growth.LINEAR: 1>,)
    """
    pairs = zip(resources.growths, resources.tolerances, strict=True)
    above = (growth for growth, tolerance in pairs if _ratio(loads[growth]) > tolerance)
    return tuple(dict.fromkeys(above))


def spread_penalty(resources: Resources, loads: Mapping[Growth, Costs]) -> float:
    """Most less least load in units of what is allowed (Eq. 19), on average over the resources.

    Finite with empty channels. Unlike the product of Eq. 20, one even resource does not hide an uneven one.
    """
    spreads = [
        float((loads[growth].max() - loads[growth].min()) / loads[growth].mean())
        / allowance(tolerance, len(loads[growth]))
        for growth, tolerance in zip(resources.growths, resources.tolerances, strict=True)
    ]
    return sum(spreads) / len(spreads)


@dataclass(frozen=True)
class Penalty:
    """The balance penalty, rho, of tracked keys alone: spread of load over the spread that is allowed.

    A constant resource is left out, since untracked keys balance it by their number ([003] §4.4). Resources
    with the same growth have equal loads, so each growth is kept once, with how often it occurs.
    """

    growths: tuple[Growth, ...]
    times: tuple[int, ...]
    allowed: float

    @classmethod
    def of(cls, resources: Resources, channels: int) -> "Penalty":
        """The penalty for these resources on this number of channels, at least 2."""
        counted = [growth for growth in resources.growths if growth is not Growth.CONSTANT]
        if not counted:
            return cls((), (), 1.0)
        times = Counter(counted)
        allowed = math.prod(
            allowance(tolerance, channels) ** (1 / len(counted))
            for growth, tolerance in zip(resources.growths, resources.tolerances, strict=True)
            if growth is not Growth.CONSTANT
        )
        return cls(tuple(times), tuple(times.values()), allowed)

    def of_spreads(self, spreads: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """The penalty from each growth's (most - least) / mean load, for any number of candidates at once.

        The last bit of the powers depends on the processor; `order` is for comparing candidates exactly.
        """
        if len(spreads) == 1:
            return spreads[0] / self.allowed
        product = np.ones_like(spreads[0])
        for spread, times in zip(spreads, self.times, strict=True):
            product *= spread ** (times / sum(self.times))
        return product / self.allowed

    def order(self, spreads: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Numbers that grow with the penalty, by multiplication alone: the same on every processor."""
        product = np.ones_like(spreads[0])
        for spread, times in zip(spreads, self.times, strict=True):
            for _ in range(times if len(spreads) > 1 else 1):
                product *= spread
        return product
