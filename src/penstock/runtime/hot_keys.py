"""Chooses the keys of a join that lie on grids, from their frequency in the first tuples that a run reads.

The rows of an epoch are sent when its state is in place, so this happens only while there is no state; grids
change later by plans, from the keys that are known then.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from penstock.routing import Ring, Spread, spread_hot_keys
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.dataflow.tasks import Compiled
from penstock.runtime.dataflow.ways import ToPort
from penstock.runtime.spark.entries import Reads
from penstock.runtime.stage import StageRunner

__all__ = ["first_grids"]

# How many of the most frequent keys of each side are considered, how many rows say enough about them, and how
# many rows of each side are read.
_MOST_KEYS: Final = 256
_FEWEST_ROWS: Final = 1_000
_ENOUGH_ROWS: Final = 100_000


def first_grids(
    compiled: Compiled, runner: StageRunner, reads: Reads, channels: int, now: int
) -> Spread | None:
    """The keys to put on grids; None if there are too few rows to tell. `now` is the time of the epoch."""
    exchange = runner.kernel.exchanges[0]
    if exchange.copied == "neither" or channels == 1 or not exchange.keys:
        return Spread()
    counted = [_counted(compiled, runner.number, port, reads, now) for port in range(len(runner.ports))]
    counted = [each for each in counted if len(each[0])]
    if sum(int(counts.sum()) for _, counts in counted) < _FEWEST_ROWS:
        return None
    if len(counted) == 1:
        counted *= 2
    keys = np.union1d(counted[0][0], counted[1][0])
    left, right = (_rates(keys, *each) for each in counted)
    return Spread.of(spread_hot_keys(keys.view(np.uint64), left, right, Ring(channels), exchange.copied))


def _counted(compiled: Compiled, stage: int, port: int, reads: Reads, now: int) -> tuple[Any, Any]:
    """The most frequent hashes among the first rows of a port, with the number of rows of each."""
    found, rows = [np.zeros(0, np.int64)], 0
    for hashes in _hashes(compiled, stage, port, reads, now):
        found.append(hashes)
        rows += len(hashes)
        if rows >= _ENOUGH_ROWS:
            break
    every, place = np.unique(np.concatenate(found), return_inverse=True)
    counts = np.bincount(place, minlength=len(every)).astype(np.int64)
    most = np.lexsort((every, -counts))[:_MOST_KEYS]
    return every[most], counts[most]


def _hashes(compiled: Compiled, stage: int, port: int, reads: Reads, now: int) -> Iterator[Any]:
    for stream, split in (each for task in reads.tasks for each in task):
        intake = compiled.intakes[stream]
        for way in compiled.ways[stream]:
            end = way.end
            if not isinstance(end, ToPort) or (end.port.stage, end.port.port) != (stage, port):
                continue
            for batch in split.read(intake.needed):
                rows = end.port.rows(way.rows(intake.take(batch, None, now).rows))
                keys = [rows[name] for name in end.port.exchange.keys]
                known = np.logical_and.reduce([np.asarray(each.is_valid()) for each in keys])
                yield spark_hash(keys, rows.num_rows)[known].view(np.int64)


def _rates(keys: Any, hashes: Any, counts: Any) -> Any:
    rates = np.zeros(len(keys))
    rates[np.searchsorted(keys, hashes)] = counts
    # A key that is not among the most frequent ones is at most as frequent as the last of them.
    return np.where(rates > 0, rates, counts.min() if len(counts) == _MOST_KEYS else 0.0)
