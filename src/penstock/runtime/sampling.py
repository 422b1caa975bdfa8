"""The keys of the tuples that an epoch is about to read, for layouts that are made from them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.routing.spark_hash import spark_hash
from penstock.runtime.dataflow.tasks import Compiled
from penstock.runtime.dataflow.ways import ToPort
from penstock.runtime.spark.entries import Task

__all__ = ["sampled_keys"]


def sampled_keys(
    compiled: Compiled, tasks: tuple[Task, ...], stage: int, port: int, now: int
) -> Iterator[NDArray[np.int64]]:
    """The hashes of the keys of a port, batch by batch, without those with a null; `now` is the time of day.

    Only rows that reach the port from a stream, through steps that run on Arrow, are known before the epoch.
    """
    for stream, split in (each for task in tasks for each in task):
        intake = compiled.intakes[stream]
        for way in compiled.ways[stream]:
            end = way.end
            if not isinstance(end, ToPort) or (end.port.stage, end.port.port) != (stage, port):
                continue
            for batch in split.read(intake.needed):
                rows = end.port.rows(way.rows(intake.take(batch, None, now).rows))
                keys: list[Any] = [rows[name] for name in end.port.exchange.keys]
                known = np.logical_and.reduce([np.asarray(each.is_valid()) for each in keys])
                yield spark_hash(keys, rows.num_rows)[known].view(np.int64)
