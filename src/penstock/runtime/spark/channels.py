"""Tasks on Spark's workers: one per channel of a stage, and one per channel that loses state."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from penstock.connect.results import Output
from penstock.runtime.merger import Finished
from penstock.runtime.spark.exchange import MapSide
from penstock.runtime.spark.plans import Observed, observed_by
from penstock.runtime.spark.worker_heap import freeze_worker
from penstock.runtime.stage import ChannelTask, Receipt
from penstock.state.moving import MoveTask
from penstock.state.table import Departure

__all__ = ["FinishedChannels", "move_state", "run_channels", "run_staying"]

_RECEIPT = StructType([StructField("stage", IntegerType()), StructField("receipt", StringType())])
_MOVED = StructType([StructField("receipt", StringType())])


class FinishedChannels:
    """Hears of each channel when its task has succeeded, while others still run; one for a run.

    Spark adds to an accumulator what a task gave it, once and only if the task succeeds. Its scheduler waits
    for the addition, so whoever is told must not take long.
    """

    def __init__(self) -> None:
        self._told: Finished | None = None
        self._added: Accumulator[list[str]] | None = None

    def run(
        self,
        session: SparkSession,
        side: MapSide,
        channels: int,
        tasks: tuple[ChannelTask, ...],
        told: Finished,
    ) -> dict[int, list[Receipt]]:
        """As `run_channels`; `told` hears of every channel, mostly before the last one has finished."""
        self._told = told
        if self._added is None:
            self._added = session.sparkContext.accumulator([], _Telling(self._hear))
        try:
            return run_channels(session, side, channels, tasks, self._added)
        finally:
            self._told = None

    def _hear(self, receipts: list[str]) -> None:
        told = self._told
        if told is not None:
            for value in map(json.loads, receipts):
                told(value["stage"], value["channel"], [Output(**each) for each in value["outputs"]])


class _Telling(AccumulatorParam[list[str]]):
    """Adds up what a task says; on the driver, tells it."""

    def __init__(self, hear: Callable[[list[str]], None] | None = None) -> None:
        self._hear = hear

    def __reduce__(self) -> tuple[type["_Telling"], tuple[()]]:
        return _Telling, ()

    def zero(self, value: list[str]) -> list[str]:
        del value
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:  # noqa: N802 - Spark's name
        if self._hear is None:
            return value1 + value2
        self._hear(value2)
        return value1


def run_channels(
    session: SparkSession,
    side: MapSide,
    channels: int,
    tasks: tuple[ChannelTask, ...],
    finished: Accumulator[list[str]] | None = None,
) -> dict[int, list[Receipt]]:
    """Run the kernels on every channel; a channel without new rows still has windows to close."""
    rows = side.shuffled.rows if side.shuffled else _no_rows(session, channels)
    return _receipts(rows.mapInArrow(_Channels(tasks, finished), _RECEIPT), tasks)


def run_staying(rows: DataFrame, task: ChannelTask, metrics: Sequence[str]) -> tuple[list[Receipt], Observed]:
    """Run a kernel without state on rows where they are, and what was observed of them on the way."""
    job = rows.mapInArrow(_Channels((task,)), _RECEIPT)
    return _receipts(job, (task,))[task.stage], observed_by(job, metrics)


def _receipts(job: DataFrame, tasks: tuple[ChannelTask, ...]) -> dict[int, list[Receipt]]:
    """Run the tasks; the receipts of each stage in the order of its channels."""
    receipts: dict[int, list[Receipt]] = {each.stage: [] for each in tasks}
    for row in job.collect():
        receipts[row["stage"]].append(Receipt.from_json(row["receipt"]))
    return {stage: sorted(each, key=lambda one: one.channel) for stage, each in receipts.items()}


def move_state(
    session: SparkSession, task: MoveTask, sources: Sequence[int]
) -> dict[int, tuple[Departure, ...]]:
    """Run the moves out of these channels; the result has, for each, the new state of every stage."""
    frame = session.range(0, len(sources), 1, len(sources))
    found = frame.mapInArrow(_Moves(task, tuple(sources)), _MOVED).collect()
    receipts = [json.loads(row["receipt"]) for row in found]
    return {
        each["channel"]: tuple(Departure.from_json(stage) for stage in each["stages"]) for each in receipts
    }


@dataclass(frozen=True)
class _Channels:
    """The kernels' tasks as shipped to the workers; the Spark partition gives the channel."""

    tasks: tuple[ChannelTask, ...]
    finished: Accumulator[list[str]] | None = None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        freeze_worker()
        channel = _partition()
        passed: dict[tuple[int, int], Any] = {}
        for each in self.tasks:
            began = time.process_time()
            new = each.taken(passed) if each.hosts else _table(batches)
            receipt, onward = each.work(channel, new, time.process_time() - began)
            passed |= {(each.stage, number): table for number, table in onward.items()}
            if self.finished is not None:
                files = [asdict(one) for one in receipt.outputs]
                note = {"stage": each.stage, "channel": channel, "outputs": files}
                self.finished.add([json.dumps(note)])
            yield pa.RecordBatch.from_arrays(
                [pa.array([each.stage], pa.int32()), pa.array([receipt.to_json()])],
                names=["stage", "receipt"],
            )


@dataclass(frozen=True)
class _Moves:
    """The moves as shipped to the workers; the Spark partition gives the channel."""

    task: MoveTask
    sources: tuple[int, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            pass
        channel = self.sources[_partition()]
        began = time.perf_counter()
        stages = [asdict(each) for each in self.task.work(channel)]
        receipt = {"channel": channel, "stages": stages, "seconds": time.perf_counter() - began}
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(receipt)])], names=["receipt"])


def _partition() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _table(batches: Iterator[Any]) -> Any:
    """All rows of the epoch for this channel, or None.

    Every column is nullable: in some epochs Spark proves that a column has no nulls, but its rows must
    still fit together with those of segments.
    """
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return None
    table = pa.Table.from_batches(held)
    return pa.Table.from_arrays(table.columns, names=table.column_names)


def _no_rows(session: SparkSession, channels: int) -> DataFrame:
    """The input of the channels in an epoch without tuples."""
    return session.range(0, numPartitions=1).repartitionById(channels, F.lit(0))
