"""Load is raised until a cluster no longer keeps up: curves over load, and the highest rate it sustains.

As in [002] §IV: nothing is shed, so beyond saturation tuples queue at the channels.
"""

from collections.abc import Iterable

import numpy as np

from penstock_lab.simulate.plan import Plan
from penstock_lab.simulate.run import Clock, Observed, simulate

__all__ = ["saturate", "sweep"]

# A load is sustained if this share of it comes through: less than that is a queue that grows.
_KEPT_UP = 0.98


def sweep(plan: Plan, rates: Iterable[float], seed: int, clock: Clock | None = None) -> tuple[Observed, ...]:
    """The steady state under each load; every run draws from the same seed, so curves are comparable."""
    return tuple(simulate(plan, rate, np.random.default_rng(seed), clock) for rate in rates)


def saturate(plan: Plan, seed: int, clock: Clock | None = None, *, within: float = 0.01) -> Observed:
    """The highest load that is sustained, to `within` of itself; about eight runs.

    >>> from penstock_lab.simulate import Dealt, Stage
    >>> stage = Stage("map", work=0.001, split=Dealt(4), hosts=(0, 1, 2, 3))
    >>> 3_900 < saturate(Plan((stage,), np.ones(4)), seed=7).rate < 4_100
    True
    """
    low, high = 0.0, 1.02 * plan.ideal()
    best = _at(plan, high, seed, clock)
    if _sustained(best):
        return best
    # Where connections leave no time at all, nothing is sustained: that is known after twenty halvings.
    while high - low > within * high and high > 1e-6 * plan.ideal():
        middle = (low + high) / 2
        best = _at(plan, middle, seed, clock)
        low, high = (middle, high) if _sustained(best) else (low, middle)
    return best if _sustained(best) else _at(plan, low, seed, clock)


def _at(plan: Plan, rate: float, seed: int, clock: Clock | None) -> Observed:
    return simulate(plan, rate, np.random.default_rng(seed), clock)


def _sustained(seen: Observed) -> bool:
    return seen.throughput >= _KEPT_UP * seen.offered
