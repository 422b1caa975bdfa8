"""Places at each step the key with the best utility per volume: robust, O(R²) ([003] §4.2.3)."""

import numpy as np
from numpy.typing import NDArray

from penstock.routing.adaptation import CLOSE, Adaptation, Utility, adaptation, utility
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.router import Channels
from penstock.routing.threshold import Goal

__all__ = ["redistribute"]


def redistribute(before: HashPair, known: Frequencies, channels: int, goal: Goal) -> HashPair:
    """The successor of `before` on `channels` channels: even, with little migration; redist in the paper.

    >>> from penstock.routing.ring import Ring
    >>> one = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(1))
    >>> known = Frequencies(np.arange(4, dtype=np.uint64), np.array([0.4, 0.2, 0.2, 0.2]))
    >>> redistribute(one, known, 2, Goal(domain=4)).route(known.hashes).tolist()
    [0, 1, 1, 0]
    """
    start = adaptation(before, known, channels, goal)
    return start.placed(_by_least_loaded, _by_all_channels, utility(goal.utility))


def _by_least_loaded(start: Adaptation, utility: Utility) -> Channels:
    """With one load per key only its home and the least loaded other channel can be best, as in scan."""
    count, costs, state = start.channels, start.loads[0], start.state
    inside = start.homes < count
    homes = np.where(inside, start.homes, 0)
    load, most, total, moved = np.zeros(count), 0.0, 0.0, start.carried
    targets = np.full(len(costs), -1, np.int32)
    for _ in range(len(costs)):
        first, second = _two_least(load)
        unit = start.penalty.allowed * ((total + costs) / count)
        at_first = inside & (homes == first)
        stay = np.where(inside, load[homes], np.inf) + costs
        leave = np.where(at_first, load[second], load[first]) + costs
        stay_low = np.minimum(np.where(at_first, load[second], load[first]), stay)
        leave_low = np.minimum(np.where(at_first, load[first], load[second]), leave)
        stays = (
            utility((np.maximum(most, stay) - stay_low) / unit, moved / start.ideal) / start.tracked.shares
        )
        leaves = utility((np.maximum(most, leave) - leave_low) / unit, (moved + state) / start.ideal)
        leaves /= start.tracked.shares
        values = np.where(targets < 0, np.minimum(stays, leaves), np.inf)
        at = int((values <= values.min() * (1 + CLOSE)).argmax())
        if stays[at] <= leaves[at] * (1 + CLOSE):
            chosen = int(homes[at])
        else:
            chosen = second if at_first[at] else first
            moved += float(state[at])
        load[chosen] += costs[at]
        most, total = max(most, float(load[chosen])), total + float(costs[at])
        targets[at] = chosen
    return targets


def _two_least(load: NDArray[np.float64]) -> tuple[int, int]:
    first = int(load.argmin())
    kept, load[first] = load[first], np.inf
    second = int(load.argmin())
    load[first] = kept
    return first, second


def _by_all_channels(start: Adaptation, utility: Utility) -> Channels:
    """With several loads per key every channel is tried for every key; O(R·N) a step."""
    count, penalty, tracked = start.channels, start.penalty, start.tracked
    load = np.zeros((len(start.loads), count))
    moved, left = start.carried, np.arange(len(tracked))
    targets = np.empty(len(tracked), np.int32)
    moves = start.homes[:, None] != np.arange(count)
    while len(left):
        spreads = []
        for row, costs in zip(load, start.loads[:, left], strict=True):
            first, second = _two_least(row)
            after = row + costs[:, None]
            low = np.full(after.shape, row[first])
            low[:, first] = np.minimum(row[second], after[:, first])
            spreads.append((np.maximum(row.max(), after) - low) / ((row.sum() + costs) / count)[:, None])
        migration = (moved + start.state[left, None] * moves[left]) / start.ideal
        values = utility(penalty.of_spreads(spreads), migration) / tracked.shares[left, None]
        at, chosen = _best(values, moves[left], load[0])
        item = int(left[at])
        moved += float(start.state[item]) * bool(moves[item, chosen])
        load[:, chosen] += start.loads[:, item]
        targets[item] = chosen
        left = np.delete(left, at)
    return targets


def _best(
    values: NDArray[np.float64], moves: NDArray[np.bool_], load: NDArray[np.float64]
) -> tuple[int, int]:
    """The first key with the best value; of its equal channels its home, else the least loaded."""
    least = values.min() * (1 + CLOSE)
    at = int((values.min(axis=1) <= least).argmax())
    ties = np.flatnonzero(values[at] <= least)
    order = np.lexsort((load[ties], moves[at, ties]))
    return at, int(ties[order[0]])
