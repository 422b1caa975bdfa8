"""Where the load of keys lies: a router for whole keys, and grids for the hot keys of a join.

Loads are in the unit of the costs of keys: 1, the share of all tuples, or its square. A key on a grid of n
channels has an n-th of its square in each; its tuples have copies, so their sum grows. On a judged grid the
cells of both kinds have other parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.routing import (
    Copied,
    Frequencies,
    Growth,
    Hashes,
    HashPair,
    Spread,
    cell_parts,
    cost_shares,
    is_judged,
)

__all__ = ["Keys", "Places", "least_busiest", "loads", "moved", "on_grids"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Keys:
    """What is known of the keys of a stage: shares of all tuples, how many keys there are, and sides.

    `left` is the part of a key's tuples that are of the left side, by its signed hash; a half if unknown.
    `copied` says which kind of grids keys have.
    """

    known: Frequencies
    domain: int
    left: Mapping[int, float] = field(default_factory=dict)
    copied: Copied = "both"

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
class Places:
    """A router, and the hot keys that lie on grids instead."""

    router: HashPair
    spread: Spread = field(default_factory=Spread)

    @cached_property
    def settled(self) -> "Places":
        """The same with keys that are placed but not spread in the table of the router."""
        return Places(self.spread.settled(self.router), self.spread.fitting(self.router.channels))


def on_grids(spread: Spread, channels: int, keys: Keys, growth: Growth) -> Floats:
    """What keys on grids cost each channel."""
    found = np.zeros(channels)
    for key, (columns, cells) in spread.grids.items():
        found[list(cells)] += cell_costs(keys, key, columns, len(cells), growth)
    return found


def grid_cost(keys: Keys, key: int, columns: int, size: int, growth: Growth) -> float:
    """What a key on a grid costs all its channels together.

    A row of the left side is copied to the cells of its column, one of the right side to each column; on a
    judged grid to all cells of the other kind and one of its own.
    """
    return float(cell_costs(keys, key, columns, size, growth).sum())


def cell_costs(keys: Keys, key: int, columns: int, size: int, growth: Growth) -> Floats:
    """What a key on a grid costs each of its cells: its rows there with all copies, or its pairs.

    >>> one = Keys(Frequencies(np.array([7], np.uint64), np.array([0.5])), 1000, copied="judged")
    >>> cell_costs(one, 7, 2, 3, Growth.LINEAR).tolist(), cell_costs(one, 7, 2, 3, Growth.QUADRATIC).tolist()
    ([0.375, 0.375, 0.5], [0.125, 0.125, 0.0])
    """
    if growth is Growth.CONSTANT:
        return np.ones(size)
    share = float(keys.known.of(np.array([key], np.int64).view(np.uint64))[0])
    part = keys.left.get(key, 0.5)
    if is_judged(keys.copied):
        left, right, pairs = np.array(cell_parts(keys.copied, size, columns)).T
        if growth is Growth.QUADRATIC:
            return np.asarray(share**2 * pairs)
        return np.asarray(share * (part * left + (1 - part) * right))
    whole = share**2 if growth is Growth.QUADRATIC else share * (part * size / columns + (1 - part) * columns)
    return np.full(size, whole / size)


def loads(places: Places, keys: Keys, growth: Growth) -> Floats:
    """What each channel has of a resource of this growth, copies included.

    >>> from penstock.routing import first_router
    >>> two, nothing = first_router("balanced", 2), Frequencies(np.zeros(0, np.uint64), np.zeros(0))
    >>> loads(Places(two), Keys(nothing, 1000), Growth.LINEAR).round(3).tolist()
    [0.5, 0.5]
    """
    channels, costs = _placed(places, keys, growth, places.router.keys)
    whole = np.bincount(channels, costs, places.router.channels).astype(np.float64)
    return whole + on_grids(places.spread, places.router.channels, keys, growth)


def moved(before: Places, after: Places, keys: Keys, growth: Growth) -> tuple[Floats, float]:
    """The part of each channel's load that goes to another channel, and the load that changed grids hold.

    The latter is relative to all load, counts all copies, and what comes back from grids.
    """
    table = np.union1d(before.router.keys, after.router.keys)
    homes, old = _placed(before, keys, growth, table)
    goals, _ = _placed(after, keys, growth, table)
    channels = before.router.channels
    gone = np.bincount(homes, np.where(homes != goals, old, 0.0), channels)
    whole = np.bincount(homes, old, channels) + on_grids(before.spread, channels, keys, growth)
    earlier, later = before.spread.grids, after.spread.grids
    changed = sum(
        grid_cost(keys, key, columns, len(cells), growth)
        for key, (columns, cells) in (later.items() - earlier.items())
    )
    changed += sum(grid_cost(keys, key, 1, 1, growth) for key in earlier.keys() - later.keys())
    return gone / np.maximum(whole, 1e-300), changed / max(float(whole.sum()), 1e-300)


def _placed(places: Places, keys: Keys, growth: Growth, table: Hashes) -> tuple[NDArray[np.int32], Floats]:
    """The channels and costs of these keys, of which those on grids cost nothing, and of all cells."""
    known, _ = keys.whole(places.spread)
    own = table[~np.isin(table, _hashes(places.spread))]
    cells = places.router.ring.cells
    of_keys, of_cells = cost_shares(own, known, growth, len(cells), keys.domain)
    costs = np.zeros(len(table))
    costs[np.isin(table, own)] = of_keys
    channels = np.concatenate([places.router.route(table), cells])
    return channels, np.concatenate([costs, of_cells]) * keys.cost(growth, places.spread)


def least_busiest(costs: Floats, rest: float, channels: int) -> Floats:
    """The relative loads of the best partitioning of whole keys: those above a fair share are alone.

    `costs` are those of the known keys, falling, and `rest` is what all others cost together.

    >>> least_busiest(np.array([0.5]), 0.5, 5).tolist()
    [2.5, 0.625, 0.625, 0.625, 0.625]
    """
    total = left = float(costs.sum()) + rest
    alone: list[float] = []
    for cost in costs.tolist():
        if len(alone) == channels - 1 or cost <= left / (channels - len(alone)):
            break
        alone.append(cost)
        left -= cost
    even = [left / (channels - len(alone))] * (channels - len(alone))
    found: Floats = np.array([*alone, *even]) * (channels / total)
    return found


def _hashes(spread: Spread) -> Hashes:
    return np.array(list(spread.grids), np.int64).view(np.uint64)
