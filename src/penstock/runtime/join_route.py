"""To which channels the rows of a join go, as native Spark expressions over the columns that a side sends.

Rows of equal keys meet in one channel, chosen by a hash; hot keys on a grid of channels of their own; rows
of a Cartesian product on a grid of all channels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import JoinPlan
from penstock.routing import JoinSpread, Ring, copied_sides, join_grid, spread_hot_keys
from penstock.runtime.spark.routes import (
    grid_left_column,
    grid_right_column,
    spread_left_column,
    spread_right_column,
)
from penstock.runtime.spread import Spread

__all__ = ["CHANNEL", "HASH", "HashRoute", "find_hot_keys", "hash_route", "routed"]

CHANNEL, HASH = "_ps_channel", "_ps_hash"
# How many of the most frequent keys of each side are looked at, how many rows tell enough about them, and
# how many of a partition are looked at.
_MOST_KEYS, _FEWEST_ROWS, _ENOUGH_ROWS = 256, 1_000, 50_000
# The number counts from 0 within a partition in its lower 33 bits. Spark itself leaves out the rest: a worker
# that does not take all its rows cannot be used again.
_AMONG_FIRST = f"(monotonically_increasing_id() & {2**33 - 1}L) < {_ENOUGH_ROWS}"


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
    """Which keys to spread, from how often the first rows of every partition of one epoch have them.

    The channels of a key cannot change while it has state, so this is asked once, for the first rows.
    """
    copied = copied_sides(plan.join.how, plan.join.bound)
    if copied == "neither" or channels == 1 or not plan.join.left.keys:
        return Spread()
    counted = _counted(plan, [frame for frame in sides if frame is not None])
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


def _counted(plan: JoinPlan, frames: Sequence[DataFrame]) -> list[tuple[Any, Any]]:
    """The most frequent hashes among the first rows of every partition, and how many rows have each."""
    hashed = F.xxhash64(*plan.join.left.keys).alias("hash")
    sampled = [
        frame.where(_AMONG_FIRST)
        .select(F.lit(side).alias("side"), hashed)
        .mapInArrow(_most_frequent, "side int, hash bigint, n bigint")
        for side, frame in enumerate(frames)
    ]
    found = (sampled[0] if len(sampled) == 1 else sampled[0].unionAll(sampled[1])).toArrow()
    side, hashes, rows = (found[name].to_numpy() for name in ("side", "hash", "n"))
    return [_summed(hashes[side == each], rows[side == each]) for each in range(len(frames))]


def _most_frequent(batches: Iterator[Any]) -> Iterator[Any]:
    taken = list(batches)
    if taken:
        hashes, rows = _summed(np.concatenate([batch.column("hash").to_numpy() for batch in taken]), None)
        side = pa.array(np.full(len(hashes), taken[0].column("side")[0].as_py(), np.int32))
        yield pa.RecordBatch.from_arrays(
            [side, pa.array(hashes), pa.array(rows)], names=["side", "hash", "n"]
        )


def _summed(hashes: Any, rows: Any) -> tuple[Any, Any]:
    """The most frequent of some hashes, each of which stands for so many rows."""
    found, place = np.unique(hashes, return_inverse=True)
    counts = np.bincount(place, rows, minlength=len(found)).astype(np.int64)
    most = np.lexsort((found, -counts))[:_MOST_KEYS]
    return found[most], counts[most]


def _rates(keys: Any, hashes: Any, counts: Any) -> Any:
    rates = np.zeros(len(keys))
    rates[np.searchsorted(keys, hashes)] = counts
    # A key that is not among the most frequent ones is at most as frequent as the last of them.
    return np.where(rates > 0, rates, counts.min() if len(counts) == _MOST_KEYS else 0.0)


def _salt(plan: JoinPlan, side: int) -> Column:
    """A number of the row's own, the same whenever it is sent."""
    return F.xxhash64(*(F.col(f"`{column.name}`") for column in plan.sides[side]))
