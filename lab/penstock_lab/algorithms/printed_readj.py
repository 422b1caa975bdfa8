"""The readj of the paper as it is printed: moves and swaps of tracked keys, best gain first ([003] Alg. 4).

Penstock's own search is `penstock.routing.readjust`. They differ in what a candidate is compared with. The
paper assigns `v, g, u <- w, g', u'` inside the loop over candidates and starts with u = 0. So a candidate
is compared with the candidate that was best so far, not with the present placement, and the gain of the
very first one is less than 0. The result depends on the order of the candidates, and keys move that need not.

The paper leaves that order open. Here it is the order in which the paper writes: channels by number, keys of
a channel by falling frequency, the move of a key before its swaps. `break` after a candidate that is not more
even is read as its comment says, "move on to next option": the text considers all moves and swaps. A key
changes its channel at most five times, the limit of the paper's experiments, which only its text states.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Frequencies, Goal, HashPair
from penstock.routing.adaptation import CLOSE, adaptation, utility
from penstock.routing.readjust import Swaps

__all__ = ["readj"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def readj(before: HashPair, known: Frequencies, channels: int, goal: Goal, turns: int = 5) -> HashPair:
    """The successor of `before` on `channels` channels: tracked keys stay, but for what lowers the penalty.

    A key changes its channel at most `turns` times, c in the paper. A step costs O(R²), and there are at most
    c R steps.

    >>> from penstock.routing import Ring
    >>> one = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(1))
    >>> known = Frequencies(np.arange(4, dtype=np.uint64), np.array([0.4, 0.2, 0.2, 0.2]))
    >>> np.bincount(readj(one, known, 2, Goal(domain=4)).route(known.hashes)).tolist()
    [2, 2]
    """
    start = adaptation(before, known, channels, goal)
    # Keys of channels that go away start where the ring puts them.
    places = np.where(start.homes < channels, start.homes, start.ring.route(start.tracked.hashes))
    if channels > 1 and len(places):
        places = _Search(start, utility(goal.utility)).run(places.astype(np.intp), turns)
    return start.pair(places.astype(np.int32))


class _Search(Swaps):
    """Algorithm 4 from its `while` on, with the names of the paper: u, v and g."""

    def run(self, tracked: Ints, most_turns: int) -> Ints:
        """Take the best readjustment until none lowers the penalty, or all that do have had their turns."""
        size, u = len(tracked), 0.0
        places = np.concatenate([tracked, np.arange(self.start.channels)])
        moved = self.start.carried + float(self.start.state[tracked != self.start.homes].sum())
        turns = np.zeros(len(places), np.intp)
        while True:
            first, second, penalties = self._candidates(places, turns < most_turns)
            if not len(first):
                return places[:size]
            migration = moved + self.migration(first, second, places)
            values = self.utility(penalties, migration / self.start.ideal)
            v = _best(values, np.abs(self.shares[first] - self.shares[second]), u)
            u, moved = float(values[v]), float(migration[v])
            one, other = first[v], second[v]
            origin, to = places[one], places[other]
            for key, place in ((one, to), (other, origin)):
                if key < size:
                    places[key] = place
                    turns[key] += 1

    def _candidates(self, places: Ints, free: NDArray[np.bool_]) -> tuple[Ints, Ints, Floats]:
        """All swaps of free keys that lower the penalty, in the order of the paper, with their penalties."""
        channels, order = self.start.channels, self.start.penalty.order
        mine = places[: len(self.start.tracked)]
        load = np.array([np.bincount(places, row, channels) for row in self.costs])
        spreads = [
            self._spreads(row, costs, mine, places) for row, costs in zip(load, self.costs, strict=True)
        ]
        now = order([np.array(row.max() - row.min()) for row in load])
        lower = (order(spreads) < now) & (mine[:, None] != places)
        at, other = np.nonzero(lower & free[: len(mine), None] & free)
        swapped = np.where(other < len(mine), other, -1)
        sequence = np.lexsort((swapped, at, places[other], places[at]))
        at, other = at[sequence], other[sequence]
        relative = [spread[at, other] / mean for spread, mean in zip(spreads, self.means, strict=True)]
        return at, other, self.start.penalty.of_spreads(relative)

    def _spreads(self, load: Floats, costs: Floats, mine: Ints, places: Ints) -> Floats:
        """Most minus least load after each swap of a tracked key with any other key."""
        most, least = _of_the_others(load)
        delta = costs[: len(mine), None] - costs
        here, there = load[mine][:, None] - delta, load[places] + delta
        high = np.maximum(np.maximum(here, there), most[mine][:, places])
        low = np.minimum(np.minimum(here, there), least[mine][:, places])
        spreads: Floats = high - low
        return spreads


def _best(values: Floats, volumes: Floats, u: float) -> int:
    """The candidate that the paper's loop ends with: each better one takes the place of u, and of the gain g.

    Many candidates have the same utility but for the last bit, so a gain must be better by more than that.

    >>> _best(np.array([3.0, 2.5, 1.0, 0.0]), np.array([1.0, 1.0, 1.0, 2.0]), u=0.0)
    2
    """
    v, g, u = 0, (u - float(values[0])) / float(volumes[0]), float(values[0])
    while True:
        gained = u - values[v + 1 :]
        better = np.flatnonzero(gained - g * volumes[v + 1 :] > CLOSE * abs(u))
        if not len(better):
            return v
        v += 1 + int(better[0])
        g, u = (u - float(values[v])) / float(volumes[v]), float(values[v])


def _of_the_others(load: Floats) -> tuple[Floats, Floats]:
    """For each two channels the most and the least load of all others."""
    size = len(load)
    order = np.argsort(load, kind="stable")
    most, least = np.full((size, size), -np.inf), np.full((size, size), np.inf)
    one, other = np.indices((size, size))
    # Of any three channels at least one is neither of the two: the last that fits is the most or the least.
    for channel in order[-3:]:
        free = (one != channel) & (other != channel)
        most[free] = load[channel]
    for channel in order[:3][::-1]:
        free = (one != channel) & (other != channel)
        least[free] = load[channel]
    return most, least
