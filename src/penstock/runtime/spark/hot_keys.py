"""Chooses the keys of a join that lie on grids, from their frequency in the first rows of an epoch."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.operators.exchange import Exchange
from penstock.routing import Ring, Spread, spread_hot_keys

__all__ = ["find_hot_keys"]

# How many of the most frequent keys of each side are considered, how many rows say enough about them, and
# how many rows of a partition are read.
_MOST_KEYS, _FEWEST_ROWS, _ENOUGH_ROWS = 256, 1_000, 50_000
# The number counts from 0 within a partition in its lower 33 bits. Spark itself leaves out the other rows: a
# worker that does not consume all its rows cannot be used again.
_AMONG_FIRST = f"(monotonically_increasing_id() & {2**33 - 1}L) < {_ENOUGH_ROWS}"


def find_hot_keys(exchange: Exchange, sides: Sequence[DataFrame], channels: int) -> Spread | None:
    """The keys to put on grids; `sides` are the rows of ports that have any, `exchange` is one port's.

    None if there are too few rows to tell. The rows of an epoch are routed when its state is in place, so
    this happens only while there is no state; grids change later by plans, from the keys that are known then.
    """
    if exchange.copied == "neither" or channels == 1 or not exchange.keys:
        return Spread()
    counted = _counted(exchange.keys, sides)
    if sum(int(counts.sum()) for _, counts in counted) < _FEWEST_ROWS:
        return None
    if len(counted) == 1:
        counted *= 2
    keys = np.union1d(counted[0][0], counted[1][0])
    left, right = (_rates(keys, *each) for each in counted)
    return Spread.of(spread_hot_keys(keys.view(np.uint64), left, right, Ring(channels), exchange.copied))


def _counted(keys: Sequence[str], frames: Sequence[DataFrame]) -> list[tuple[Any, Any]]:
    """The most frequent hashes among the first rows of every partition, with the number of rows of each."""
    hashed = F.xxhash64(*keys).alias("hash")
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
    """The most frequent of some hashes; `rows` is the number of rows behind each, None for one."""
    found, place = np.unique(hashes, return_inverse=True)
    counts = np.bincount(place, rows, minlength=len(found)).astype(np.int64)
    most = np.lexsort((found, -counts))[:_MOST_KEYS]
    return found[most], counts[most]


def _rates(keys: Any, hashes: Any, counts: Any) -> Any:
    rates = np.zeros(len(keys))
    rates[np.searchsorted(keys, hashes)] = counts
    # A key that is not among the most frequent ones is at most as frequent as the last of them.
    return np.where(rates > 0, rates, counts.min() if len(counts) == _MOST_KEYS else 0.0)
