"""Moves and swaps tracked keys while that evens the load: best balance of the three (003, section 4.2.4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.routing.adaptation import Adaptation, adaptation
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
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
class _Swap:
    """Two keys that change places, what that moves, and what it gains per volume."""

    first: int
    second: int
    migration: float
    gain: float


class _Search:
    """The search from one placement to another; every step must lower the balance penalty.

    Each channel also holds a key that costs nothing, so that a move is a swap with it. These stand behind
    the tracked keys, in the order of the channels, and never leave.
    """

    def __init__(self, start: Adaptation, utility: Utility, limit: int) -> None:
        self.start, self.utility, self.limit = start, utility, limit
        self.means = start.loads.sum(axis=1) / start.channels
        nothing = (0, start.channels)
        self.costs = np.pad(start.loads, ((0, 0), nothing))
        self.state = np.pad(start.state, nothing)
        self.shares = np.pad(start.tracked.shares, nothing)
        self.homes = np.pad(start.homes, nothing, constant_values=-1)

    def run(self, tracked: Ints) -> Ints:
        """Take the swap with the greatest gain until none evens the load."""
        size = len(tracked)
        places = np.concatenate([tracked, np.arange(self.start.channels)])
        turns = np.zeros(len(places), np.intp)
        load = np.array([np.bincount(places, row, self.start.channels) for row in self.costs])
        moved = self.start.carried + float(self.start.state[tracked != self.start.homes].sum())
        while (swap := self._best(places, load, moved, turns < self.limit)) is not None:
            first, second = swap.first, swap.second
            origin, to = places[first], places[second]
            delta = self.costs[:, first] - self.costs[:, second]
            load[:, origin] -= delta
            load[:, to] += delta
            moved += swap.migration
            for key, place in ((first, to), (second, origin)):
                if key < size:
                    places[key], turns[key] = place, turns[key] + 1
        return places[:size]

    def _best(self, places: Ints, load: Floats, moved: float, free: NDArray[np.bool_]) -> _Swap | None:
        """No load is evened without the most or least loaded channel of some resource: try only these."""
        extremes = {*load.argmax(axis=1).tolist(), *load.argmin(axis=1).tolist()}
        now = [(row.max() - row.min()) / mean for row, mean in zip(load, self.means, strict=True)]
        penalty = float(self.start.penalty.of_spreads([np.array(spread) for spread in now]))
        best = None
        for channel in sorted(extremes):
            mine = np.flatnonzero(free & (places == channel))
            rest = np.flatnonzero(free & (places != channel))
            balance = self._penalties(channel, mine, rest, places, load)
            # The margin keeps rounding from looking like an improvement.
            at, other = np.nonzero(balance < penalty * (1 - 1e-9))
            if len(at):
                swap = self._greatest(mine[at], rest[other], balance[at, other], places, moved, penalty)
                best = swap if best is None or swap.gain > best.gain else best
        return best

    def _penalties(self, channel: int, mine: Ints, rest: Ints, places: Ints, load: Floats) -> Floats:
        """The balance penalty after each swap of a key of this channel with one of another channel."""
        spreads = []
        for row, costs, mean in zip(load, self.costs, self.means, strict=True):
            most, least = _others(row, channel)
            delta = costs[mine][:, None] - costs[rest]
            here, there = row[channel] - delta, row[places[rest]] + delta
            high = np.maximum(np.maximum(here, there), most[places[rest]])
            spreads.append((high - np.minimum(np.minimum(here, there), least[places[rest]])) / mean)
        return self.start.penalty.of_spreads(spreads)

    def _greatest(  # noqa: PLR0913, PLR0917 -- the swaps with their penalties, and where the search stands
        self, first: Ints, second: Ints, balance: Floats, places: Ints, moved: float, penalty: float
    ) -> _Swap:
        """The swap with the greatest fall in utility per volume."""
        migration = self._migration(first, second, places)
        values = self.utility(balance, (moved + migration) / self.start.ideal)
        now = self.utility(penalty, moved / self.start.ideal)
        gains = (now - values) / np.abs(self.shares[first] - self.shares[second])
        best = int(gains.argmax())
        return _Swap(int(first[best]), int(second[best]), float(migration[best]), float(gains[best]))

    def _migration(self, first: Ints, second: Ints, places: Ints) -> Floats:
        """State that moves on account of a swap; less than 0 if keys come home (Eq. 22)."""
        origin, to = places[first], places[second]
        home, back = self.homes[first], self.homes[second]
        outward = self.state[first] * ((home == origin).view(np.int8) - (home == to).view(np.int8))
        inward = self.state[second] * ((back == to).view(np.int8) - (back == origin).view(np.int8))
        both: Floats = outward + inward
        return both


def _others(row: Floats, channel: int) -> tuple[Floats, Floats]:
    """For each channel the most and the least load of all but itself and the given one."""
    most, least = np.full(len(row), -np.inf), np.full(len(row), np.inf)
    order = [each for each in np.argsort(row, kind="stable").tolist() if each != channel]
    if order:
        most[:], least[:] = row[order[-1]], row[order[0]]
        most[order[-1]] = row[order[-2]] if len(order) > 1 else -np.inf
        least[order[0]] = row[order[1]] if len(order) > 1 else np.inf
    return most, least
