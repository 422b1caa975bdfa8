"""Places tracked keys by falling frequency, each where it is best now: fast, O(R log N) ([003] §4.2.2).

The paper leaves ties open: here a key stays at home if it can, else it goes to the least loaded channel.
"""

import heapq
import math

import numpy as np
from numpy.typing import NDArray

from penstock.routing.adaptation import CLOSE, Adaptation, Utility, adaptation, utility
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.router import Channels
from penstock.routing.threshold import Goal

__all__ = ["scan"]


def scan(before: HashPair, known: Frequencies, channels: int, goal: Goal) -> HashPair:
    """The successor of `before` on `channels` channels: even, and cheap to build for many keys and channels.

    >>> from penstock.routing.ring import Ring
    >>> one = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(1))
    >>> known = Frequencies(np.arange(4, dtype=np.uint64), np.array([0.4, 0.2, 0.2, 0.2]))
    >>> scan(one, known, 2, Goal(domain=4)).route(known.hashes).tolist()
    [0, 1, 1, 0]
    """
    start = adaptation(before, known, channels, goal)
    return start.placed(_by_least_loaded, _by_all_channels, utility(goal.utility))


def _by_least_loaded(start: Adaptation, utility: Utility) -> Channels:
    """With one load per key only two channels can be best: its home and the least loaded other one.

    All other channels cost the same migration, have a most load that is no smaller, and leave a least load
    that is no greater. It costs a few heap operations for each key.
    """
    count, homes = start.channels, start.homes.tolist()
    load, heap = [0.0] * count, [(0.0, channel) for channel in range(count)]
    most, total, moved = 0.0, 0.0, start.carried
    targets = np.empty(len(homes), np.int32)
    for at, (cost, state, home) in enumerate(
        zip(start.loads[0].tolist(), start.state.tolist(), homes, strict=True)
    ):
        total += cost
        unit = start.penalty.allowed * (total / count)
        at_home = load[home] if home < count else math.inf
        others = _two_least(heap, load, home)
        least, other = others[0]
        second = others[1][0] if len(others) > 1 else math.inf
        stay = (max(most, at_home + cost) - min(least, at_home + cost)) / unit
        leave = (max(most, least + cost) - min(second, least + cost, at_home)) / unit
        best = (1 + CLOSE) * utility(leave, (moved + state) / start.ideal)
        stays = home < count and utility(stay, moved / start.ideal) <= best
        chosen = home if stays else other
        moved += 0.0 if stays else state
        load[chosen] += cost
        most = max(most, load[chosen])
        heapq.heappush(heap, (load[chosen], chosen))
        targets[at] = chosen
    return targets


def _two_least(heap: list[tuple[float, int]], load: list[float], home: int) -> list[tuple[float, int]]:
    """The two least loaded channels other than `home`; drops outdated entries on the way."""
    seen: list[tuple[float, int]] = []
    others: list[tuple[float, int]] = []
    while heap and len(others) < 2:
        entry = heapq.heappop(heap)
        if entry[0] == load[entry[1]] and entry not in seen:
            seen.append(entry)
            if entry[1] != home:
                others.append(entry)
    for entry in seen:
        heapq.heappush(heap, entry)
    return others


def _by_all_channels(start: Adaptation, utility: Utility) -> Channels:
    """With several loads per key every channel is tried, all at once."""
    count, penalty = start.channels, start.penalty
    load = np.zeros((len(start.loads), count))
    totals = np.zeros(len(start.loads))
    moved = start.carried
    targets = np.empty(len(start.tracked), np.int32)
    channels = np.arange(count)
    for at, home in enumerate(start.homes.tolist()):
        costs = start.loads[:, at]
        totals += costs
        spreads = [
            _spreads(row, cost) / (total / count)
            for row, cost, total in zip(load, costs, totals, strict=True)
        ]
        migration = (moved + start.state[at] * (channels != home)) / start.ideal
        values = utility(penalty.of_spreads(spreads), migration)
        chosen = _best(values, load[0], home)
        moved += 0.0 if chosen == home else float(start.state[at])
        load[:, chosen] += costs
        targets[at] = chosen
    return targets


def _spreads(load: NDArray[np.float64], cost: float) -> NDArray[np.float64]:
    """Most minus least load, were the cost put on each of the channels in turn."""
    least, second = np.partition(load, 1)[:2]
    lowest = np.full(len(load), least)
    where = int(load.argmin())
    lowest[where] = min(second, least + cost)
    spreads: NDArray[np.float64] = np.maximum(load.max(), load + cost) - lowest
    return spreads


def _best(values: NDArray[np.float64], load: NDArray[np.float64], home: int) -> int:
    close = values <= values.min() * (1 + CLOSE)
    if home < len(values) and close[home]:
        return home
    ties = np.flatnonzero(close)
    return int(ties[load[ties].argmin()])
