"""Algorithm 1 of [000]: streams leave overloaded gates and are packed, with the new ones, into the others.

A strategy fills four parts: what counts as overloaded, which streams leave, in which order they are placed,
and where they go. Whatever the parts are, every stream has exactly one gate afterwards; a stream leaves only
an overloaded gate (all do under a strategy that packs afresh); no overloaded gate gets a stream in the same
period; and no gate is charged with more than its capacity unless streams that may not move, or a single
stream, exceed it. O(n log n) in streams, with one sort of those that leave.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.control.admission.best_fit import best_fit
from penstock.control.admission.cluster import (
    NOWHERE,
    Bools,
    Cluster,
    Floats,
    Ints,
    Outlook,
    Placement,
    fits,
    loads,
)

__all__ = ["Pack", "Rules", "Strategy", "assign", "overloaded", "pick"]

Pack = Callable[[Sequence[float] | Floats, Sequence[float] | Floats, float], tuple[list[int], int]]
"""Puts sizes, in their order, into bins with this free space, or into new ones with that; see `best_fit`."""


@dataclass(frozen=True)
class Strategy:
    """The parts that a strategy fills.

    `charged` is the work that a stream counts with; streams leave by falling `urgency` and are placed by
    falling `order`. Ties go by larger work, then by number. `afresh` empties all gates every period.
    """

    name: str
    charged: Callable[[Outlook], Floats]
    urgency: Callable[[Outlook], Floats]
    order: Callable[[Outlook], Floats]
    pack: Pack = best_fit
    afresh: bool = False


@dataclass(frozen=True)
class Rules:
    """What holds for every strategy.

    A gate is overloaded if rows wait longer than `bound` seconds or its load exceeds its capacity, and is a
    bin while its load is below the part `accept` of it. At most `most` streams are redirected.
    """

    bound: float = 5.0
    accept: float = 0.95
    most: int = 100_000


def assign(strategy: Strategy, cluster: Cluster, outlook: Outlook, rules: Rules) -> Placement:
    """Where every stream is to be in the coming period."""
    size, order = strategy.charged(outlook), strategy.order(outlook)
    if strategy.afresh:
        return _afresh(strategy, cluster, size, order, rules.most)
    load = loads(cluster.home, size, len(cluster.capacity))
    over = overloaded(cluster, load, rules.bound)
    leaving = pick(cluster, strategy.urgency(outlook), size, over, rules.most)
    home = cluster.home.copy()
    home[leaving] = NOWHERE
    bins = np.flatnonzero(cluster.open & ~over & (load < rules.accept * cluster.capacity))
    free = (cluster.capacity - load)[bins]
    items = np.flatnonzero(home == NOWHERE)
    items = items[np.lexsort((items, -size[items], -order[items]))]
    chosen, count = strategy.pack(size[items].tolist(), free.tolist(), cluster.new_capacity)
    gates = len(cluster.capacity) + count - len(bins)
    home[items] = np.concatenate([bins, np.arange(len(cluster.capacity), gates)])[chosen]
    why = {int(gate): "overloaded" for gate in np.unique(cluster.home[leaving])}
    return Placement(home, gates, size, why, np.empty(0, np.int64))


def overloaded(cluster: Cluster, load: Floats, bound: float) -> Bools:
    """Gates at which rows wait too long, or whose load exceeds their capacity.

    A gate at which rows wait though its load is within its capacity works its queue off: it gets no streams
    until then, and keeps those that it has.
    """
    over: Bools = (cluster.waiting > bound) | ~np.asarray(fits(load, cluster.capacity))
    return over


def pick(cluster: Cluster, urgency: Floats, size: Floats, over: Bools, most: int) -> Ints:
    """The streams that leave: of every overloaded gate the most urgent, until the rest fits.

    The last stream stays: alone it would be as slow elsewhere. If that is more than `most`, gates with the
    largest excess come first.
    """
    load = loads(cluster.home, size, len(cluster.capacity))
    placed = np.flatnonzero(cluster.home >= 0)
    candidates = placed[over[cluster.home[placed]] & cluster.movable[placed]]
    gates = cluster.home[candidates]
    rank = np.lexsort((candidates, -size[candidates], -urgency[candidates], gates))
    candidates, gates = candidates[rank], gates[rank]
    before, place = _running(gates, size[candidates])
    held = np.bincount(cluster.home[placed], minlength=len(cluster.capacity))
    left = load[gates] - before  # what the gate has when this stream's turn comes
    needed = ~np.asarray(fits(left, cluster.capacity[gates]))
    # The last stream stays, and to send away one without work relieves nothing.
    chosen = needed & (place < held[gates] - 1) & (size[candidates] > 0)
    leaving = candidates[chosen]
    if len(leaving) > most:
        excess = (load / cluster.capacity)[cluster.home[leaving]]
        leaving = leaving[np.argsort(-excess, kind="stable")[:most]]
    return leaving.astype(np.int64)


def _running(groups: Ints, values: Floats) -> tuple[Floats, Ints]:
    """For sorted groups: the sum of the values before each in its group, and its place there."""
    if not len(groups):
        return np.empty(0), np.empty(0, np.int64)
    starts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    lengths = np.diff(np.append(starts, len(groups)))
    sums = np.concatenate([[0.0], np.cumsum(values)])[:-1]
    before = sums - np.repeat(sums[starts], lengths)
    return before, np.arange(len(groups)) - np.repeat(starts, lengths)


def _afresh(strategy: Strategy, cluster: Cluster, size: Floats, order: Floats, most: int) -> Placement:
    """All that may move is packed into empty gates, taken by number; gates that stay empty are drained."""
    gates = len(cluster.capacity)
    movable = cluster.movable | (cluster.home == NOWHERE)
    home = np.where(movable, NOWHERE, cluster.home)
    load = loads(home, size, gates)
    bins = np.flatnonzero(cluster.open & np.asarray(fits(load, cluster.capacity)))
    items = np.flatnonzero(movable)
    items = items[np.lexsort((items, -size[items], -order[items]))]
    numbers, free = bins.tolist(), (cluster.capacity - load)[bins].tolist()
    # Empty gates are given one by one, as if they were started, so that the packing does not see them before.
    kept = [at for at, gate in enumerate(numbers) if load[gate] > 0]
    empty = [gate for gate in numbers if load[gate] == 0]
    chosen, count = strategy.pack(size[items].tolist(), [free[at] for at in kept], cluster.new_capacity)
    opened = count - len(kept)
    fresh = empty[:opened] + list(range(gates, gates + opened - len(empty)))
    home[items] = np.array([numbers[at] for at in kept] + fresh, np.int64)[chosen]
    moved = np.flatnonzero((home != cluster.home) & (cluster.home != NOWHERE))
    if len(moved) > most:
        back = moved[most:]
        home[back] = cluster.home[back]
    total = max(gates, int(home.max(initial=-1)) + 1)
    used = np.bincount(home[home >= 0], minlength=total)
    drained = np.flatnonzero(cluster.open & (used[:gates] == 0))
    why = {int(gate): "packed afresh" for gate in np.unique(cluster.home[moved])}
    return Placement(home, total, size, why, drained.astype(np.int64))
