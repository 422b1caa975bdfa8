"""The engines that join two streams of calls, each running the same query over the same files.

The query is the join of [002] §IV.B.2: calls of one phone at most a minute apart, or another span, and their
distance in space. The calls come from two networks, each a stream with files of its own, so that every engine
reads the same. All write snappy parquet; a run is over when the last epoch is committed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark users know

import penstock as ps
from penstock.query import Relation
from penstock_lab.bench.session import settings, stock_settings, tuned_settings
from penstock_lab.bench.spark_sink import drain
from penstock_lab.workloads.calls import CALL_COLUMNS

__all__ = [
    "DELAY_S",
    "JOIN_ENGINES",
    "METRES_APART",
    "PENSTOCK",
    "SPARK",
    "SPARK_TUNED",
    "WITHIN_S",
    "JoinEngine",
    "JoinJob",
]

DELAY_S = 1
WITHIN_S = 60
_METRES = "sqrt(({a}x{b} - {c}x{d}) * ({a}x{b} - {c}x{d}) + ({a}y{b} - {c}y{d}) * ({a}y{b} - {c}y{d}))"
METRES_APART = _METRES.format(a="l.", b="", c="r.", d="")
"""The distance of two calls `l` and `r`, for any engine that speaks SQL."""


@dataclass(frozen=True)
class JoinJob:
    """One run to do: a folder of files for each network, where to write, and which join."""

    north: Path
    south: Path
    place: Path
    how: Literal["inner", "left"]
    files_per_epoch: int
    within_s: int = WITHIN_S

    @property
    def output(self) -> Path:
        """Where the results go."""
        return self.place / "out"


@dataclass(frozen=True)
class JoinEngine:
    """A name for the report and the function that runs a job to its end."""

    name: str
    run: Callable[[SparkSession, JoinJob], None]


def _run_penstock(spark: SparkSession, job: JoinJob) -> None:
    """Drained: left rows that wait for a partner at the end of the input are delivered too."""
    north, south = (_calls(job, each) for each in (job.north, job.south))
    pairs = north.join(
        south,
        "caller",
        within=f"{job.within_s} seconds",
        how=job.how,
        suffixes=("_north", "_south"),
        named="time",
    )
    metres = _METRES.format(a="", b="_north", c="", d="_south")
    query = pairs.select("caller", "sent_north", "sent_south", metres=metres)
    sink = ps.parquet(str(job.output), compression="snappy")
    query.start(sink, checkpoint=str(job.place / "state"), session=spark).wait()


def _calls(job: JoinJob, folder: Path) -> Relation:
    source = ps.files(str(folder), files_per_epoch=job.files_per_epoch)
    name = "north" if folder == job.north else "south"
    calls = ps.stream(name, CALL_COLUMNS, time="time", delay=f"{DELAY_S} seconds", source=source)
    return calls.select("caller", "x", "y", sent="time")


def _run_spark(spark: SparkSession, job: JoinJob) -> None:
    with settings(spark, stock_settings()):
        drain(_joined(spark, job), job.output, job.place / "state")


def _run_spark_tuned(spark: SparkSession, job: JoinJob) -> None:
    with settings(spark, tuned_settings()):
        drain(_joined(spark, job), job.output, job.place / "state")


def _joined(spark: SparkSession, job: JoinJob) -> DataFrame:
    """As Spark users write it: watermarks on both sides and the time range in the condition."""
    left, right = (
        spark.readStream.schema(CALL_COLUMNS)
        .option("maxFilesPerTrigger", job.files_per_epoch)
        .parquet(str(folder))
        .select("time", "caller", "x", "y")
        .withWatermark("time", f"{DELAY_S} seconds")
        for folder in (job.north, job.south)
    )
    span = f"INTERVAL {job.within_s} SECONDS"
    condition = f"l.caller = r.caller AND r.time BETWEEN l.time - {span} AND l.time + {span}"
    return (
        left.alias("l")
        .join(right.alias("r"), F.expr(condition), job.how)
        .select(
            F.least("l.time", "r.time").alias("time"),
            "l.caller",
            F.col("l.time").alias("sent_north"),
            F.col("r.time").alias("sent_south"),
            F.expr(METRES_APART).alias("metres"),
        )
    )


PENSTOCK = JoinEngine("penstock", _run_penstock)
SPARK = JoinEngine("spark join", _run_spark)
SPARK_TUNED = JoinEngine("spark join, our session", _run_spark_tuned)
JOIN_ENGINES = (PENSTOCK, SPARK, SPARK_TUNED)
