"""The engines that keep running statistics of keys, each running the same logic over the same files.

For each key of an epoch a row with the number of rows so far, the sum and the largest of their values. Spark
calls a function for every key; Penstock calls one for all keys of a channel, and for comparison one for every
row. All write snappy parquet; a run is over when the last epoch is committed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

import penstock as ps
from penstock_lab.bench.data import DDL
from penstock_lab.bench.session import settings, tuned_settings

__all__ = [
    "APPLY",
    "PENSTOCK",
    "PENSTOCK_EVENT_ORDER",
    "PENSTOCK_VISITS",
    "PROCESS_ENGINES",
    "TRANSFORM",
    "ProcessEngine",
    "ProcessJob",
]

DELAY_S = 1
_STATE = "n bigint, total double, top double"
_RESULT = f"key bigint, {_STATE}"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class ProcessJob:
    """One run to do: a folder of files, where to write, and how many files an epoch takes."""

    files: Path
    place: Path
    files_per_epoch: int

    @property
    def output(self) -> Path:
        """Where the results go."""
        return self.place / "out"


@dataclass(frozen=True)
class ProcessEngine:
    """A name for the report and the function that runs a job to its end."""

    name: str
    run: Callable[[SparkSession, ProcessJob], None]


class Running(ps.Processor):
    """Running count, sum and largest value of every key, a row for each key of a block."""

    def step(self, block: ps.Block) -> ps.Outcome:
        """Three reductions over the rows of each key, and what was there before."""
        values, state = block.rows["value"].to_numpy(), block.state
        n = np.diff(np.append(block.first, len(values))) + state["n"].fill_null(0).to_numpy()
        total = np.add.reduceat(values, block.first) + state["total"].fill_null(0).to_numpy()
        top = np.maximum.reduceat(values, block.first)
        top = np.maximum(top, state["top"].fill_null(float("-inf")).to_numpy())
        after = pa.table({"n": n, "total": total, "top": top})
        return ps.Outcome(after, block.last, after)


def visit(
    key: Any, time: datetime, row: Mapping[str, Any] | None, state: Mapping[str, Any] | None
) -> ps.Visit:
    """The same for one row; gives a row for each, since a visit does not know whether more will follow."""
    del key, time
    assert row is not None, "it sets no timers"
    value = row["value"]
    if state is None:
        after = {"n": 1, "total": value, "top": value}
    else:
        after = {"n": state["n"] + 1, "total": state["total"] + value, "top": max(state["top"], value)}
    return ps.Visit(after, [after])


def _penstock(function: Any, order: str) -> Callable[[SparkSession, ProcessJob], None]:
    def run(spark: SparkSession, job: ProcessJob) -> None:
        source = ps.files(str(job.files), files_per_epoch=job.files_per_epoch)
        rows = ps.stream("rows", DDL, time="time", delay=f"{DELAY_S} seconds", source=source)
        process = rows.group_by("key").process(function, state=_STATE, result=_STATE, order=order)
        sink = ps.parquet(str(job.output), compression="snappy")
        process.start(sink, checkpoint=str(job.place / "state"), session=spark).wait()

    return run


class _Transform(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("running", _STATE)

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        before = self._state.get() if self._state.exists() else None
        after = _counted(before, rows)
        self._state.update(after)
        yield _row(key, after)


def _apply(key: Any, rows: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    after = _counted(state.get if state.exists else None, rows)
    state.update(after)
    yield _row(key, after)


def _counted(before: Any, rows: Iterator[pd.DataFrame]) -> tuple[int, float, float]:
    n, total, top = before or (0, 0.0, float("-inf"))
    for frame in rows:
        values = frame["value"].to_numpy()
        n, total, top = n + len(values), total + float(values.sum()), max(top, float(values.max()))
    return n, total, top


def _row(key: Any, after: tuple[int, float, float]) -> pd.DataFrame:
    n, total, top = after
    return pd.DataFrame({"key": [key[0]], "n": [n], "total": [total], "top": [top]})


def _run_transform(spark: SparkSession, job: ProcessJob) -> None:
    with settings(spark, {**tuned_settings(), "spark.sql.streaming.stateStore.providerClass": _ROCKSDB}):
        grouped = _read(spark, job).groupBy("key")
        found = grouped.transformWithStateInPandas(_Transform(), _RESULT, "Update", "None")
        _drain(found, job, "update")


def _run_apply(spark: SparkSession, job: ProcessJob) -> None:
    with settings(spark, tuned_settings()):
        grouped = _read(spark, job).groupBy("key")
        found = grouped.applyInPandasWithState(_apply, _RESULT, _STATE, "append", GroupStateTimeout.NoTimeout)
        _drain(found, job, "append")


def _read(spark: SparkSession, job: ProcessJob) -> DataFrame:
    reader = spark.readStream.schema(DDL).option("maxFilesPerTrigger", job.files_per_epoch)
    return reader.parquet(str(job.files)).select("key", "value")


def _drain(result: DataFrame, job: ProcessJob, mode: str) -> None:
    def write(batch: DataFrame, number: int) -> None:
        # The file sink takes no updates, and transformWithState appends nothing without a watermark.
        batch.write.mode("overwrite").option("compression", "snappy").parquet(str(job.output / str(number)))

    query = (
        result.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(job.place / "state"))
        .outputMode(mode)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


PENSTOCK = ProcessEngine("penstock", _penstock(Running(), "arrival"))
PENSTOCK_EVENT_ORDER = ProcessEngine("penstock, event order", _penstock(Running(), "event"))
PENSTOCK_VISITS = ProcessEngine("penstock, a call for each row", _penstock(visit, "arrival"))
TRANSFORM = ProcessEngine("spark transformWithStateInPandas", _run_transform)
APPLY = ProcessEngine("spark applyInPandasWithState", _run_apply)
PROCESS_ENGINES = (PENSTOCK, PENSTOCK_EVENT_ORDER, PENSTOCK_VISITS, TRANSFORM, APPLY)
