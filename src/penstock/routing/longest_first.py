"""A whole epoch placed longest item first: at most 4/3 - 1/(3k) times the least makespan.

Beyond [001] §5.1, whose greedy scheduler sees one tuple at a time and promises 2 - 1/k: an
epoch is known as a whole, so its items can be placed in descending order of cost (Graham, 1969).
Items of equal cost are placed together by filling the channels to one level, O(k log k) a group,
with the same loads as one by one.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.routing.greedy import Schedule, Ticks, greedy, greedy_unlike, to_ticks
from penstock.routing.router import Channels, Costs

__all__ = ["longest_first", "longest_first_unlike"]

# Below this many items a group, the heap is faster than filling: 0.15 us an item against 20 us a group.
_WORTH_FILLING = 128


def longest_first(costs: Costs, loads: Costs) -> Schedule:
    """Give the items of one epoch to channels that already have `loads`.

    >>> schedule = longest_first(np.array([1.0, 1.0, 1.0, 3.0]), np.zeros(2))
    >>> schedule.channels.tolist(), schedule.makespan
    ([1, 1, 1, 0], 3.0)
    """
    order = np.argsort(-costs, kind="stable")
    falling = costs[order]
    edges = np.flatnonzero(np.diff(falling, prepend=np.nan, append=np.nan))
    if len(falling) < _WORTH_FILLING * (len(edges) - 1):
        placed = greedy(falling, loads).channels
    else:
        placed = _fill_groups(falling, edges, loads)
    channels = np.empty_like(placed)
    channels[order] = placed
    return Schedule(channels, loads + np.bincount(channels, costs, len(loads)))


def longest_first_unlike(table: Costs, items: NDArray[np.intp], loads: Costs) -> Schedule:
    """The same where channels differ: items in descending order of their mean cost over channels.

    >>> table = np.array([[1.0, 3.0], [1.0, 3.0]])
    >>> longest_first_unlike(table, np.array([0, 0, 0, 1]), np.zeros(2)).channels.tolist()
    [1, 1, 1, 0]
    """
    # Ranks by cost keep equal items together, so each kind is spread evenly even where its cost is wrong.
    kinds = np.argsort(-table.mean(axis=0), kind="stable")
    ranks = np.empty_like(kinds)
    ranks[kinds] = np.arange(len(kinds))
    order = np.argsort(ranks[items], kind="stable")
    placed = greedy_unlike(table, items[order], loads)
    channels = np.empty_like(placed.channels)
    channels[order] = placed.channels
    return Schedule(channels, placed.loads)


def _fill_groups(falling: Costs, edges: NDArray[np.intp], loads: Costs) -> Channels:
    values, sizes = falling[edges[:-1]], np.diff(edges)
    ticks, level = to_ticks(values, falling.sum(), loads)
    placed = np.empty(len(falling), np.int32)
    numbers = np.arange(len(loads), dtype=np.int32)
    for start, end, cost, size in zip(edges, edges[1:], ticks.tolist(), sizes.tolist(), strict=False):
        shares = _fill(level, cost, size)
        placed[start:end] = np.repeat(numbers, shares)
        level = level + shares * cost
    return placed


def _fill(level: Ticks, cost: int, size: int) -> Ticks:
    """How many of `size` items of one cost each channel gets, as if each went to the least level in turn."""
    shares = np.zeros_like(level)
    if cost == 0:
        shares[level.argmin()] = size
        return shares
    order = np.argsort(level, kind="stable")
    ascending = level[order]
    # The lowest `active` channels rise to a common level `water / active`; the others lie above it.
    below = np.cumsum(ascending) + size * cost
    active = int(np.flatnonzero(np.arange(1, len(level) + 1) * ascending < below)[-1]) + 1
    water = below[active - 1]
    whole = (water - active * ascending[:active]) // (active * cost)
    # What is left is fewer than `active` items: one each for those whose next start comes first.
    starts = ascending[:active] + whole * cost
    next_up = np.lexsort((order[:active], starts))[: size - int(whole.sum())]
    whole[next_up] += 1
    shares[order[:active]] = whole
    return shares
