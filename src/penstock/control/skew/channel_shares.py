"""Where the load of keys lies under a router, and what another router takes away from each channel."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Frequencies, Growth, HashPair, cost_shares

__all__ = ["Base", "Change", "change", "least_busiest", "whole_cost"]

Floats = NDArray[np.float64]
Base = Mapping[Growth, Floats]
"""What each channel has besides whole keys, under each growth, in the unit of their costs."""


@dataclass(frozen=True)
class Change:
    """The share of a resource in each channel before and after a change, and what leaves each channel.

    `leaving` is a part of what the channel has.
    """

    before: Floats
    after: Floats
    leaving: Floats


def change(  # noqa: PLR0913, PLR0917 -- two routers, and what lies where
    before: HashPair, after: HashPair, known: Frequencies, growth: Growth, domain: int, base: Base
) -> Change:
    """What the change of router does to a resource of this growth; both have the same number of cells.

    Keys that are not known cost the same each. `base` stays where it is.

    >>> from penstock.routing import first_router
    >>> two, nothing = first_router("balanced", 2), Frequencies(np.zeros(0, np.uint64), np.zeros(0))
    >>> change(two, two, nothing, Growth.LINEAR, 1000, {}).before.round(3).tolist()
    [0.5, 0.5]
    """
    channels = max(before.channels, after.channels)
    keys = np.union1d(before.keys, after.keys)
    of_keys, of_cells = cost_shares(keys, known, growth, len(before.ring.cells), domain)
    whole = whole_cost(known, growth, domain)
    fixed = base.get(growth, np.zeros(channels))
    costs = np.concatenate([of_keys, of_cells]) * (whole / (whole + float(fixed.sum())))
    fixed = fixed / (whole + float(fixed.sum()))
    homes = np.concatenate([before.route(keys), before.ring.cells])
    goals = np.concatenate([after.route(keys), after.ring.cells])
    old = fixed + np.bincount(homes, costs, channels)
    new = fixed + np.bincount(goals, costs, channels)
    gone = np.bincount(homes, np.where(homes != goals, costs, 0.0), channels)
    return Change(old, new, gone / np.maximum(old, 1e-300))


def whole_cost(known: Frequencies, growth: Growth, domain: int) -> float:
    """What all keys cost together; those that are not known are equal."""
    rest = max(domain - len(known), 1)
    each = growth.costs(np.array([max(1 - float(known.shares.sum()), 0.0) / rest]))
    return float(growth.costs(known.shares).sum()) + rest * float(each[0])


def least_busiest(known: Frequencies, growth: Growth, domain: int, channels: int) -> Floats:
    """The relative loads of the best partitioning there can be: keys above a fair share alone, the rest even.

    >>> one = Frequencies(np.array([7], np.uint64), np.array([0.5]))
    >>> least_busiest(one, Growth.LINEAR, 1000, 5).tolist()
    [2.5, 0.625, 0.625, 0.625, 0.625]
    """
    total = left = whole_cost(known, growth, domain)
    alone: list[float] = []
    for cost in np.sort(growth.costs(known.shares))[::-1].tolist():
        if len(alone) == channels - 1 or cost <= left / (channels - len(alone)):
            break
        alone.append(cost)
        left -= cost
    even = [left / (channels - len(alone))] * (channels - len(alone))
    loads: Floats = np.array([*alone, *even]) * (channels / total)
    return loads
