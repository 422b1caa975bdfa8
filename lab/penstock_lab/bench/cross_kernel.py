"""The kernel of the Cartesian product as channels run it, one channel after another on one core.

Every tuple is copied to the channels of its row or its column of the grid ([002] §III.D.2).
"""

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.operators.joins.spec import END, Condition, Frontiers, JoinSpec, Pair, Side, Within
from penstock.operators.joins.step import HeldSide, step
from penstock.routing import grid_for
from penstock.sketches import splitmix64
from penstock_lab.bench.call_pairs import WITHIN_US, CallPairs, microseconds

__all__ = ["CHANNELS", "kernel"]

CHANNELS = 4


def kernel(condition: Condition, pairs: CallPairs, epochs: int) -> int:
    """Run all channels of a grid one after another and say how many pairs match."""
    grid = grid_for(CHANNELS)
    places = splitmix64(np.arange(pairs.calls, dtype=np.uint64))
    sides = (pairs.left, grid.left(places)), (pairs.right, grid.right(places))
    matches = 0
    for channel in range(CHANNELS):
        left, right = (rows.take(pa.array(to.rows[to.channels == channel])) for rows, to in sides)
        matches += _channel(_join(condition), left, right, epochs, pairs.seconds)
    return matches


def _channel(join: JoinSpec, left: Any, right: Any, epochs: int, seconds: int) -> int:
    """One channel, epoch after epoch of equal event time."""
    matches = 0
    held = Pair(HeldSide.nothing(left.schema), HeldSide.nothing(right.schema))
    before = Frontiers()
    # Both sides begin at the same time; the first row of a channel may be a little later.
    start = min(int(microseconds(each).min()) for each in (left, right))
    done = (0, 0)
    for epoch in range(1, epochs + 1):
        frontier = END if epoch == epochs else start + epoch * seconds * 1_000_000 // epochs
        reached = tuple(int(np.searchsorted(microseconds(each), frontier)) for each in (left, right))
        new = Pair(left.slice(done[0], reached[0] - done[0]), right.slice(done[1], reached[1] - done[1]))
        delivered: list[Any] = []
        after = Frontiers(frontier, frontier)
        sides = step(join, held, new, before, after, delivered.append)
        held = Pair(sides.left.held(held.left.rows, new.left), sides.right.held(held.right.rows, new.right))
        matches += sum(table.num_rows for table in delivered)
        before, done = after, (reached[0], reached[1])
    return matches


def _join(condition: Condition) -> JoinSpec:
    left, right = (Side("time", columns=(("caller", name),)) for name in ("one", "other"))
    return JoinSpec(left, right, Within(WITHIN_US), condition=condition)
