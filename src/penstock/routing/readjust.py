"""Moves and swaps tracked keys while that evens the load: best balance of the three (003, section 4.2.4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.routing.adaptation import Adaptation, adaptation
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.router import Channels
from penstock.routing.threshold import Goal
from penstock.routing.utilities import Utility, utility

__all__ = ["readjust"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def readjust(before: HashPair, known: Frequencies, channels: int, goal: Goal, *, limit: int = 5) -> HashPair:
    """The successor of `before` on `channels` channels: tracked keys stay but for what evens the load.

    A key moves at most `limit` times, which bounds the work. Known as readj in the paper.

    >>> from penstock.routing.ring import Ring
    >>> one = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(1))
    >>> known = Frequencies(np.arange(4, dtype=np.uint64), np.array([0.4, 0.2, 0.2, 0.2]))
    >>> np.bincount(readjust(one, known, 2, Goal(domain=4)).route(known.hashes)).tolist()
    [3, 1]
    """
    start = adaptation(before, known, channels, goal)
    # Keys of channels that go start where the ring puts them.
    places = np.where(start.homes < channels, start.homes, start.ring.route(start.tracked.hashes))
    if channels > 1 and len(places):
        places = _Search(start, utility(goal.utility), limit).run(places.astype(np.intp))
    return start.pair(places.astype(np.int32))


@dataclass(frozen=True)
class _Options:
    """Readjustments side by side: `first` goes to channel `to`, `second` comes back, or none (-1) does."""

    first: Ints
    second: Ints
    to: Ints


class _Search:
    """The search from one placement to another; every step must lower the balance penalty."""

    def __init__(self, start: Adaptation, utility: Utility, limit: int) -> None:
        self.start, self.utility, self.limit = start, utility, limit
        self.means = start.loads.sum(axis=1) / start.channels
        # One more key that costs nothing stands for "none", at index -1.
        self.costs = np.pad(start.loads, ((0, 0), (0, 1)))
        self.state = np.pad(start.state, (0, 1))
        self.shares = np.pad(start.tracked.shares, (0, 1))
        self.homes = np.pad(start.homes, (0, 1), constant_values=-1)

    def run(self, places: Ints) -> Channels:
        """Take the readjustment with the greatest gain until none evens the load."""
        counts = np.zeros(len(places), np.intp)
        load = np.array([np.bincount(places, row, self.start.channels) for row in self.start.loads])
        moved = self.start.carried + float(self.start.state[places != self.start.homes].sum())
        while True:
            options = self._options(places, load, counts < self.limit)
            best = self._best(options, places, load, moved)
            if best is None:
                return places.astype(np.int32)
            first, second, to = best
            origin = int(places[first])
            delta = self.costs[:, first] - self.costs[:, second]
            load[:, origin] -= delta
            load[:, to] += delta
            moved += float(self._migration(np.array([first]), np.array([second]), origin, to)[0])
            places[first], counts[first] = to, counts[first] + 1
            if second >= 0:
                places[second], counts[second] = origin, counts[second] + 1

    def _options(self, places: Ints, load: Floats, free: NDArray[np.bool_]) -> _Options:
        """All moves and swaps that touch the most or least loaded channel of a resource; no other helps."""
        extreme = np.zeros(self.start.channels, bool)
        extreme[load.argmax(axis=1)] = extreme[load.argmin(axis=1)] = True
        items = np.flatnonzero(free)
        touching = items[extreme[places[items]]]
        a, b = np.meshgrid(touching, items, indexing="ij")
        # A swap of two keys in extreme channels would come twice: keep the one whose first key is heavier.
        keep = (places[a] != places[b]) & (~extreme[places[b]] | (a < b))
        item, to = np.meshgrid(items, np.arange(self.start.channels), indexing="ij")
        moves = (places[item] != to) & (extreme[to] | extreme[places[item]])
        none = np.full(int(moves.sum()), -1)
        return _Options(
            np.concatenate([a[keep], item[moves]]),
            np.concatenate([b[keep], none]),
            np.concatenate([places[b[keep]], to[moves]]),
        )

    def _best(
        self, options: _Options, places: Ints, load: Floats, moved: float
    ) -> tuple[int, int, int] | None:
        origin, to = places[options.first], options.to
        spreads, current = [], []
        for row, costs, mean in zip(load, self.costs, self.means, strict=True):
            delta = costs[options.first] - costs[options.second]
            at_origin, at_to = row[origin] - delta, row[to] + delta
            most, least = _others(row)
            pair = origin * len(row) + to
            high = np.maximum(np.maximum(at_origin, at_to), most[pair])
            low = np.minimum(np.minimum(at_origin, at_to), least[pair])
            spreads.append((high - low) / mean)
            current.append(np.array((row.max() - row.min()) / mean))
        penalty = self.start.penalty
        balance, now = penalty.of_spreads(spreads), float(penalty.of_spreads(current))
        # The margin keeps rounding from looking like an improvement.
        better = np.flatnonzero(balance < now * (1 - 1e-9))
        if not len(better):
            return None
        first, second = options.first[better], options.second[better]
        after = moved + self._migration(first, second, origin[better], to[better])
        values = self.utility(balance[better], after / self.start.ideal)
        here = self.utility(now, moved / self.start.ideal)
        gains = (here - values) / np.abs(self.shares[first] - self.shares[second])
        best = int(gains.argmax())
        return int(first[best]), int(second[best]), int(to[better[best]])

    def _migration(self, first: Ints, second: Ints, origin: Ints | int, to: Ints | int) -> Floats:
        """State that moves on account of a readjustment; less than 0 if keys come home (Eq. 22)."""
        home, back = self.homes[first], self.homes[second]
        outward = self.state[first] * ((home == origin).astype(float) - (home == to))
        inward = self.state[second] * ((back == to).astype(float) - (back == origin))
        both: Floats = outward + inward
        return both


def _others(row: Floats) -> tuple[Floats, Floats]:
    """For each pair of channels, flat, the most and the least load of all others; O(N²)."""
    count = len(row)
    order = np.argsort(row, kind="stable")
    first, second = np.divmod(np.arange(count * count), count)
    most, least = np.full(count * count, -np.inf), np.full(count * count, np.inf)
    # Of the three greatest at least one is not in the pair; with two channels there is no other.
    for channel in order[-3:]:
        free = (first != channel) & (second != channel)
        most[free] = np.maximum(most[free], row[channel])
    for channel in order[:3]:
        free = (first != channel) & (second != channel)
        least[free] = np.minimum(least[free], row[channel])
    return most, least
