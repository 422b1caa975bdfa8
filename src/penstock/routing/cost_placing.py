"""The rows of one map task over channels, the dearest first: at most 4/3 - 1/(3k) times its least makespan.

Online shuffle grouping ([001] §5) where an epoch is known as a whole: each task of the map side places its
own rows by the costs that one merged sketch tells. Costs are rounded to classes 5 % apart, so the promise
holds for these; with the costs of the sketch it is 5 % weaker.
"""

from typing import Final, Literal, get_args

import numpy as np

from penstock.routing.longest_first import longest_first
from penstock.routing.router import Channels, Costs, Hashes
from penstock.sketches.mean_cost import MeanCost

__all__ = ["GROUPINGS", "Grouping", "place_by_cost"]

Grouping = Literal["in place", "round robin", "by cost"]
"""How rows find a channel where any will do: they stay in the task that has them, they are dealt out in equal
numbers, or so that all channels take equally long."""

GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)

_STEP: Final = 0.05
_FREE: Final = 1e-3
"""A value that costs less than this part of the mean counts as costing so much."""


def place_by_cost(hashes: Hashes, salts: Hashes, costs: MeanCost, channels: int, task: int) -> Channels:
    """The channel of each row of a task, from the hash of its value.

    `salts` are hashes of whole rows: among rows of equal cost they decide, so that the same rows go to the
    same channels in whatever order they come; only equal rows change places. Tasks begin with different
    channels, or the first one would have the dearest row of each task.

    >>> sketch = MeanCost(0.05, 0.05)
    >>> sketch.update(np.array([5, 9], np.uint64), np.array([1.0, 3.0]))
    >>> rows = np.array([5, 5, 5, 9], np.uint64)
    >>> place_by_cost(rows, np.arange(4, dtype=np.uint64), sketch, 2, task=0).tolist()
    [1, 1, 1, 0]
    >>> place_by_cost(rows, np.arange(4, dtype=np.uint64), sketch, 2, task=1).tolist()
    [0, 0, 0, 1]
    """
    values, at = np.unique(hashes, return_inverse=True)
    each = _classes(costs.means(values))[at]
    order = np.lexsort((salts, -each))
    placed = np.empty(len(hashes), np.int32)
    placed[order] = longest_first(each[order], np.zeros(channels)).channels
    return ((placed + task) % channels).astype(np.int32)


def _classes(costs: Costs) -> Costs:
    """Costs rounded to equal steps of their logarithm: few enough to be placed class by class."""
    mean = float(costs.mean()) if len(costs) else 0.0
    if not mean:
        return np.ones(len(costs))
    steps = np.rint(np.log(np.maximum(costs, _FREE * mean) / mean) / np.log1p(_STEP))
    rounded: Costs = mean * np.exp(steps * np.log1p(_STEP))
    return rounded
