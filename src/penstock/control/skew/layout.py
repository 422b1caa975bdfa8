"""Where the load of keys lies: a router for whole keys, and grids for the hot keys of a join.

Loads are in the unit of the costs of keys: 1, the share of all tuples, or its square. A key on a grid of n
channels has an n-th of its square in each; its tuples have copies, so their sum grows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Frequencies, Growth, Hashes, HashPair, Spread, cost_shares

__all__ = ["Change", "Keys", "Layout", "change", "least_busiest"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Keys:
    """What is known of the keys of a stage: shares of all tuples, how many keys there are, and sides.

    `left` is the part of a key's tuples that are of the left side, by its signed hash; a half if unknown.
    """

    known: Frequencies
    domain: int
    left: Mapping[int, float] = field(default_factory=dict)

    def whole(self, spread: Spread) -> tuple[Frequencies, float]:
        """The keys that are on no grid, with their shares of the tuples without those; and that part."""
        grids = _hashes(spread)
        return self.known.without(grids), max(1.0 - float(self.known.of(grids).sum()), 1e-9)

    def cost(self, growth: Growth, spread: Spread) -> float:
        """What all whole keys cost together; those that are not known are equal."""
        known, part = self.whole(spread)
        rest = max(self.domain - len(known), 1)
        each = growth.costs(np.array([max(1 - float(known.shares.sum()), 0.0) / rest]))
        return part**growth * (float(growth.costs(known.shares).sum()) + rest * float(each[0]))


@dataclass(frozen=True)
class Layout:
    """A router, and the hot keys that lie on grids instead."""

    router: HashPair
    spread: Spread = field(default_factory=Spread)

    @cached_property
    def settled(self) -> "Layout":
        """The same with keys that are placed but not spread in the table of the router."""
        return Layout(self.spread.settled(self.router), self.spread.fitting(self.router.channels))

    def on_grids(self, keys: Keys, growth: Growth) -> Floats:
        """What keys on grids cost each channel."""
        loads = np.zeros(self.router.channels)
        for key, (columns, cells) in self.spread.grids.items():
            loads[list(cells)] += grid_cost(keys, key, columns, len(cells), growth) / len(cells)
        return loads


def grid_cost(keys: Keys, key: int, columns: int, size: int, growth: Growth) -> float:
    """What a key on a grid costs all its channels together.

    A row of the left side is copied to the cells of its column, one of the right side to each column.
    """
    share = float(keys.known.of(np.array([key], np.int64).view(np.uint64))[0])
    if growth is Growth.QUADRATIC:
        return share**2
    if growth is Growth.CONSTANT:
        return float(size)
    left = keys.left.get(key, 0.5)
    return share * (left * size / columns + (1 - left) * columns)


@dataclass(frozen=True)
class Change:
    """The load of each channel before and after a change, as shares of all load before.

    `leaving` is the part of each channel's load that goes to another channel, `spread` the load that changed
    grids hold afterwards, with all copies, or that comes back from them.
    """

    before: Floats
    after: Floats
    leaving: Floats
    spread: float


def change(before: Layout, after: Layout, keys: Keys, growth: Growth) -> Change:
    """What a change of layout does to a resource of this growth.

    >>> from penstock.routing import first_router
    >>> two, nothing = first_router("balanced", 2), Frequencies(np.zeros(0, np.uint64), np.zeros(0))
    >>> change(Layout(two), Layout(two), Keys(nothing, 1000), Growth.LINEAR).before.round(3).tolist()
    [0.5, 0.5]
    """
    table = np.union1d(before.router.keys, after.router.keys)
    homes, old = _loads(before, keys, growth, table)
    goals, new = _loads(after, keys, growth, table)
    channels, total = before.router.channels, max(float(old.sum()) + _sum(before, keys, growth), 1e-300)
    gone = np.bincount(homes, np.where(homes != goals, old, 0.0), channels)
    whole = np.bincount(homes, old, channels)
    earlier, later = before.spread.grids, after.spread.grids
    changed = sum(
        grid_cost(keys, key, columns, len(cells), growth)
        for key, (columns, cells) in (later.items() - earlier.items())
    )
    changed += sum(grid_cost(keys, key, 1, 1, growth) for key in earlier.keys() - later.keys())
    return Change(
        (whole + before.on_grids(keys, growth)) / total,
        (np.bincount(goals, new, channels) + after.on_grids(keys, growth)) / total,
        gone / np.maximum(whole + before.on_grids(keys, growth), 1e-300),
        changed / total,
    )


def _sum(layout: Layout, keys: Keys, growth: Growth) -> float:
    return float(layout.on_grids(keys, growth).sum())


def _loads(layout: Layout, keys: Keys, growth: Growth, table: Hashes) -> tuple[NDArray[np.int32], Floats]:
    """The channels and costs of these keys, of which those on grids cost nothing, and of all cells."""
    known, _ = keys.whole(layout.spread)
    own = table[~np.isin(table, _hashes(layout.spread))]
    cells = layout.router.ring.cells
    of_keys, of_cells = cost_shares(own, known, growth, len(cells), keys.domain)
    costs = np.zeros(len(table))
    costs[np.isin(table, own)] = of_keys
    channels = np.concatenate([layout.router.route(table), cells])
    return channels, np.concatenate([costs, of_cells]) * keys.cost(growth, layout.spread)


def least_busiest(keys: Keys, growth: Growth, channels: int) -> Floats:
    """The relative loads of the best partitioning of whole keys: those above a fair share are alone.

    >>> one = Frequencies(np.array([7], np.uint64), np.array([0.5]))
    >>> least_busiest(Keys(one, 1000), Growth.LINEAR, 5).tolist()
    [2.5, 0.625, 0.625, 0.625, 0.625]
    """
    total = left = keys.cost(growth, Spread())
    alone: list[float] = []
    for cost in np.sort(growth.costs(keys.known.shares))[::-1].tolist():
        if len(alone) == channels - 1 or cost <= left / (channels - len(alone)):
            break
        alone.append(cost)
        left -= cost
    even = [left / (channels - len(alone))] * (channels - len(alone))
    loads: Floats = np.array([*alone, *even]) * (channels / total)
    return loads


def _hashes(spread: Spread) -> Hashes:
    return np.array(list(spread.grids), np.int64).view(np.uint64)
