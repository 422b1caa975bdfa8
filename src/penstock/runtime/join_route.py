"""To which channels the rows of a join go, as native Spark expressions over the columns that a side sends.

Rows of equal keys meet in one channel, chosen by a hash; hot keys on a grid of channels of their own; rows
of a Cartesian product on a grid of all channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import JoinPlan
from penstock.routing import JoinSpread, Ring, copied_sides, join_grid, spread_hot_keys
from penstock.runtime.spread import Spread
from penstock.runtime.spread_column import (
    grid_left_column,
    grid_right_column,
    spread_left_column,
    spread_right_column,
)

__all__ = ["CHANNEL", "HASH", "HashRoute", "find_hot_keys", "hash_route", "routed"]

CHANNEL, HASH = "_ps_channel", "_ps_hash"
# How many of the most frequent keys of each side are looked at, and how many rows tell enough about them.
_MOST_KEYS, _FEWEST_ROWS = 256, 1000


@dataclass(frozen=True)
class HashRoute:
    """The hash that decides on the channel of a row as SQL, and what leaves out rows which cannot matter."""

    column: str
    where: str


def hash_route(plan: JoinPlan, side: int) -> HashRoute:
    """Rows of equal keys in one channel."""
    keys = plan.join.left.keys
    known = " AND ".join(f"{key} IS NOT NULL" for key in keys)
    hashed = f"xxhash64({', '.join(keys)})"
    if not plan.join.keeps_unmatched[side]:
        return HashRoute(hashed, f" WHERE {known}")
    # A null is equal to nothing, so its row may be anywhere; all in one place they would be a hot key.
    salted = ", ".join(f"`{column.name}`" for column in plan.sides[side])
    return HashRoute(f"CASE WHEN {known} THEN {hashed} ELSE xxhash64({salted}) END", "")


def routed(
    frame: DataFrame, plan: JoinPlan, side: int, channels: int, spread: JoinSpread | None
) -> DataFrame:
    """The rows of a side by a grid or a spread, one for each channel, without those that cannot matter."""
    keys = plan.join.left.keys
    if not keys:
        grid = join_grid(plan.join.how, plan.join.bound, channels)
        column = (grid_left_column, grid_right_column)[side](_salt(plan, side), grid)
        return frame.withColumn(CHANNEL, F.explode(column))
    assert spread is not None
    known = F.expr(" AND ".join(f"{key} IS NOT NULL" for key in keys))
    column = (spread_left_column, spread_right_column)[side](F.xxhash64(*keys), _salt(plan, side), spread)
    if plan.join.keeps_unmatched[side]:
        anywhere = F.pmod(_salt(plan, side), F.lit(channels).cast("long")).cast("int")
        column = F.when(known, column).otherwise(F.array(anywhere))
    else:
        frame = frame.where(known)
    return frame.withColumn(CHANNEL, F.explode(column))


def find_hot_keys(plan: JoinPlan, sides: Sequence[DataFrame | None], channels: int) -> Spread:
    """Which keys to spread, from how often the rows of one epoch have them.

    The channels of a key cannot change while it has state, so this is asked once, for the first rows.
    """
    copied = copied_sides(plan.join.how, plan.join.bound)
    if copied == "neither" or channels == 1 or not plan.join.left.keys:
        return Spread()
    counted = [_counts(frame, plan, channels) for frame in sides if frame is not None]
    if sum(int(counts.sum()) for _, counts in counted) < _FEWEST_ROWS:
        return Spread()
    if len(counted) == 1:
        counted *= 2
    keys = np.union1d(counted[0][0], counted[1][0])
    left, right = (_rates(keys, *each) for each in counted)
    found = spread_hot_keys(keys.view(np.uint64), left, right, Ring(channels), copied)
    if not (found.sizes > 1).any():
        return Spread()
    return Spread(
        tuple(keys.tolist()),
        tuple(found.sizes.tolist()),
        tuple(found.columns.tolist()),
        tuple(found.targets.tolist()),
    )


def _counts(frame: DataFrame, plan: JoinPlan, channels: int) -> tuple[Any, Any]:
    hashed = F.xxhash64(*plan.join.left.keys).alias("hash")
    # Of themselves the groups would go to spark.sql.shuffle.partitions, 200 small tasks.
    hashes = frame.select(hashed).repartition(channels, "hash")
    rows = hashes.groupBy("hash").count().orderBy(F.desc("count"), "hash").limit(_MOST_KEYS).collect()
    return np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64)


def _rates(keys: Any, hashes: Any, counts: Any) -> Any:
    rates = np.zeros(len(keys))
    rates[np.searchsorted(keys, hashes)] = counts
    # A key that is not among the most frequent ones is at most as frequent as the last of them.
    return np.where(rates > 0, rates, counts.min() if len(counts) == _MOST_KEYS else 0.0)


def _salt(plan: JoinPlan, side: int) -> Column:
    """A number of the row's own, the same whenever it is sent."""
    return F.xxhash64(*(F.col(f"`{column.name}`") for column in plan.sides[side]))
