"""Moves and swaps tracked keys while that evens the load: best balance of the three ([003] §4.2.4).

A call on its own result moves nothing: the placement alone decides whether the search ends, in exact
arithmetic. The paper mentions a limit on the moves of a key. There is none here, because a search that stops
at such a limit goes on in the next call. Every step lowers the penalty, or keeps it and evens two loads, and
that bounds the search.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.routing.adaptation import CLOSE, Adaptation, Utility, adaptation, utility
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.threshold import Goal

__all__ = ["Swaps", "readjust"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# While a step can lower the penalty by this part of it, the utility chooses. Otherwise another channel, about
# as full or as empty as the one that is relieved, limits the fall: take the step that evens two loads most.
_STEEP = 0.01
# Of the greatest fall of the penalty a step gives up at most this part for a better utility. The paper takes
# any fall, but many tiny ones gain the same per volume, and a search by them takes thousands of steps.
_FALL = 0.5
# The search ends where no step lowers the penalty by more than this part of it, nor, at the same penalty, the
# sum of the squares of the loads by more than this, in units of the mean load.
_LEAST = 1e-7
_EVEN = 1e-6


def readjust(before: HashPair, known: Frequencies, channels: int, goal: Goal) -> HashPair:
    """The successor of `before` on `channels` channels: tracked keys stay, except for what evens the load.

    Known as readj in the paper. A step costs O(R²/N) for each of the channels with most and least load, and
    there are a few steps for each key that moves.

    >>> from penstock.routing.ring import Ring
    >>> one = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(1))
    >>> known = Frequencies(np.arange(4, dtype=np.uint64), np.array([0.4, 0.2, 0.2, 0.2]))
    >>> np.bincount(readjust(one, known, 2, Goal(domain=4)).route(known.hashes)).tolist()
    [3, 1]
    """
    start = adaptation(before, known, channels, goal)
    # Keys of channels that go away start where the ring puts them.
    places = np.where(start.homes < channels, start.homes, start.ring.route(start.tracked.hashes))
    if channels > 1 and len(places):
        places = _Search(start, utility(goal.utility)).run(places.astype(np.intp))
    return start.pair(places.astype(np.int32))


@dataclass(frozen=True)
class _Swap:
    """Two keys that change places, what that moves, and what it gains, by which swaps are compared."""

    first: int
    second: int
    migration: float
    gain: float


@dataclass(frozen=True)
class _Tried:
    """Keys of one channel and of all others; for each growth the spread of loads after each swap of two."""

    mine: Ints
    rest: Ints
    spreads: list[Floats]


class Swaps:
    """Keys that may change their channels, and what a swap of two of them moves.

    Each channel also holds a key that costs nothing, so that a move is a swap with it. These keys follow the
    tracked ones, in the order of the channels, and never move.
    """

    def __init__(self, start: Adaptation, utility: Utility) -> None:
        self.start, self.utility = start, utility
        self.means = start.loads.sum(axis=1) / start.channels
        nothing = (0, start.channels)
        self.costs = np.pad(start.loads, ((0, 0), nothing))
        self.state = np.pad(start.state, nothing)
        self.shares = np.pad(start.tracked.shares, nothing)
        self.homes = np.pad(start.homes, nothing, constant_values=-1)

    def migration(self, first: Ints, second: Ints, places: Ints) -> Floats:
        """State that moves on account of a swap; less than 0 if keys come home (Eq. 22)."""
        origin, to = places[first], places[second]
        home, back = self.homes[first], self.homes[second]
        outward = self.state[first] * ((home == origin).view(np.int8) - (home == to).view(np.int8))
        inward = self.state[second] * ((back == to).view(np.int8) - (back == origin).view(np.int8))
        both: Floats = outward + inward
        return both


class _Search(Swaps):
    """The search from one placement to another by the best swap at each step."""

    def run(self, tracked: Ints) -> Ints:
        """Take the swap with the greatest gain until none evens the load."""
        size = len(tracked)
        places = np.concatenate([tracked, np.arange(self.start.channels)])
        load = np.array([np.bincount(places, row, self.start.channels) for row in self.costs])
        moved = self.start.carried + float(self.start.state[tracked != self.start.homes].sum())
        while (swap := self._best(places, load, moved)) is not None:
            first, second = swap.first, swap.second
            origin, to = places[first], places[second]
            delta = self.costs[:, first] - self.costs[:, second]
            load[:, origin] -= delta
            load[:, to] += delta
            moved += swap.migration
            for key, place in ((first, to), (second, origin)):
                if key < size:
                    places[key] = place
        return places[:size]

    def _best(self, places: Ints, load: Floats, moved: float) -> _Swap | None:
        """The best swap; only those with a most or least loaded channel can lower the penalty."""
        order = self.start.penalty.order
        spreads = [np.array(row.max() - row.min()) for row in load]
        penalty = float(order(spreads))
        extremes = sorted({*load.argmax(axis=1).tolist(), *load.argmin(axis=1).tolist()})
        tried = [self._tried(channel, places, load) for channel in extremes]
        orders = [order(each.spreads) for each in tried]
        least = min(float(each.min(initial=np.inf)) for each in orders)
        now = self.utility(self._penalty(spreads), moved / self.start.ideal)
        best = None
        for each, after in zip(tried, orders, strict=True):
            if least < penalty * (1 - _STEEP):
                at, other = np.nonzero(after <= least + (penalty - least) * _FALL)
                penalties = self._penalty([spread[at, other] for spread in each.spreads])
                swap = self._steepest(each.mine[at], each.rest[other], penalties, places, load, moved, now)
            else:
                at, other = np.nonzero(after <= penalty)
                lower = after[at, other] < penalty * (1 - _LEAST)
                swap = self._evenest(each.mine[at], each.rest[other], lower, places, load)
            if swap is not None and (best is None or swap.gain > best.gain + CLOSE * abs(best.gain)):
                best = swap
        return best

    def _penalty(self, spreads: list[Floats]) -> Floats:
        means = zip(spreads, self.means, strict=True)
        return self.start.penalty.of_spreads([spread / mean for spread, mean in means])

    def _tried(self, channel: int, places: Ints, load: Floats) -> _Tried:
        """All swaps of a key of this channel with one of another channel."""
        mine, rest = np.flatnonzero(places == channel), np.flatnonzero(places != channel)
        spreads = []
        for row, costs in zip(load, self.costs, strict=True):
            most, least = _others(row, channel)
            delta = costs[mine][:, None] - costs[rest]
            here, there = row[channel] - delta, row[places[rest]] + delta
            high = np.maximum(np.maximum(here, there), most[places[rest]])
            spreads.append(high - np.minimum(np.minimum(here, there), least[places[rest]]))
        return _Tried(mine, rest, spreads)

    def _steepest(  # noqa: PLR0913, PLR0917 -- the swaps with their penalties, and where the search stands
        self,
        first: Ints,
        second: Ints,
        penalties: Floats,
        places: Ints,
        load: Floats,
        moved: float,
        now: float,
    ) -> _Swap | None:
        """The swap with the greatest fall in utility per volume; of close ones the one that evens most.

        Many are close: a move off the fullest channel gains the same per volume wherever it leads to.
        """
        if not len(first):
            return None
        migration = self.migration(first, second, places)
        values = self.utility(penalties, (moved + migration) / self.start.ideal)
        gains = (now - values) / np.abs(self.shares[first] - self.shares[second])
        greatest = gains.max()
        close = np.flatnonzero(gains >= greatest - CLOSE * abs(greatest))
        best = close[self._squares(first[close], second[close], places, load).argmin()]
        return _Swap(int(first[best]), int(second[best]), float(migration[best]), float(gains[best]))

    def _evenest(
        self, first: Ints, second: Ints, lower: NDArray[np.bool_], places: Ints, load: Floats
    ) -> _Swap | None:
        """The swap that evens two loads most, if it evens them at all or lowers the penalty."""
        squares = self._squares(first, second, places, load)
        counts = np.flatnonzero(lower | (squares < -_EVEN))
        if not len(counts):
            return None
        best = counts[squares[counts].argmin()]
        migration = self.migration(first[best : best + 1], second[best : best + 1], places)
        return _Swap(int(first[best]), int(second[best]), float(migration[0]), -float(squares[best]))

    def _squares(self, first: Ints, second: Ints, places: Ints, load: Floats) -> Floats:
        """Half of what swaps add to the sum of the squares of all loads, each in units of its mean."""
        added = np.zeros(len(first))
        for row, costs, mean in zip(load, self.costs, self.means, strict=True):
            delta = (costs[first] - costs[second]) / mean
            added += delta * (delta - (row[places[first]] - row[places[second]]) / mean)
        return added


def _others(row: Floats, channel: int) -> tuple[Floats, Floats]:
    """For each channel the most and the least load of all but itself and the given one."""
    most, least = np.full(len(row), -np.inf), np.full(len(row), np.inf)
    order = [each for each in np.argsort(row, kind="stable").tolist() if each != channel]
    if order:
        most[:], least[:] = row[order[-1]], row[order[0]]
        most[order[-1]] = row[order[-2]] if len(order) > 1 else -np.inf
        least[order[0]] = row[order[1]] if len(order) > 1 else np.inf
    return most, least
