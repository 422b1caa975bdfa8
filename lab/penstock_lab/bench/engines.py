"""The engines that are compared, each running the same query over the same files into the same format.

The query: per window and key the number of reports, their mean and the largest value. All engines take the
same number of files an epoch and write snappy parquet; a run is over when the last epoch is committed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark users know
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import DoubleType, LongType, StructType, TimestampType

import penstock as ps
from penstock.query import Relation
from penstock_lab.bench.cost import Cost, cost_of
from penstock_lab.bench.data import DDL
from penstock_lab.bench.session import settings, stock_settings, tuned_settings
from penstock_lab.bench.spark_sink import drain, start

DELAY = "1 second"


@dataclass(frozen=True)
class WindowSpan:
    """Size and slide of a sliding window in whole seconds."""

    size: int
    slide: int

    @property
    def pane(self) -> int:
        """Seconds of the largest slice that every window is made of."""
        return gcd(self.size, self.slide)


@dataclass(frozen=True)
class Job:
    """One run to do: where to read, where to write, and the window."""

    source: Path
    output: Path
    checkpoint: Path
    window: WindowSpan
    files_per_epoch: int


@dataclass(frozen=True)
class Engine:
    """A name for the report and the function that runs a job to its end."""

    name: str
    run: Callable[[SparkSession, Job], None]


def measure(engine: Engine, spark: SparkSession, job: Job) -> Cost:
    """Run a job and say what it took."""
    return cost_of(spark, lambda: engine.run(spark, job))


def reports(source: Path, files_per_epoch: int) -> Relation:
    """The stream in Penstock."""
    files = ps.files(str(source), files_per_epoch=files_per_epoch)
    return ps.stream("reports", schema=DDL, time="time", delay=DELAY, source=files)


def arrivals(spark: SparkSession, source: Path, files_per_epoch: int) -> DataFrame:
    """The stream in Spark, without a watermark."""
    schema = StructType().add("time", TimestampType()).add("key", LongType()).add("value", DoubleType())
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files_per_epoch).parquet(str(source))


def start_penstock(spark: SparkSession, job: Job) -> ps.Run:
    """Start the query in Penstock."""
    query = (
        reports(job.source, job.files_per_epoch)
        .group_by("key")
        .window(*_span(job.window))
        .agg(reports=ps.count(), mean=ps.avg("value"), top=ps.max("value"))
    )
    sink = ps.parquet(str(job.output), compression="snappy")
    run: ps.Run = query.start(sink=sink, checkpoint=str(job.checkpoint), session=spark)
    return run


def run_penstock(spark: SparkSession, job: Job) -> None:
    """The query in Penstock, drained: windows that are open at the end of the input are delivered too."""
    start_penstock(spark, job).wait()


def run_spark_window(spark: SparkSession, job: Job) -> None:
    """The query as Spark users write it: each row goes into ceil(size / slide) windows."""
    with settings(spark, stock_settings()):
        _window(spark, job)


def run_spark_window_tuned(spark: SparkSession, job: Job) -> None:
    """The same, with the checkpoint writer of Penstock's session, which spares Spark a process per file."""
    with settings(spark, tuned_settings()):
        _window(spark, job)


def start_spark_window(spark: SparkSession, job: Job) -> StreamingQuery:
    """Start the query in Spark, with the settings that the session has."""
    return start(_delivered(_windowed(spark, job)), job.output, job.checkpoint)


def _window(spark: SparkSession, job: Job) -> None:
    start_spark_window(spark, job).awaitTermination()


def _windowed(spark: SparkSession, job: Job) -> DataFrame:
    return (
        arrivals(spark, job.source, job.files_per_epoch)
        .withWatermark("time", DELAY)
        .groupBy(F.window("time", *_span(job.window)), "key")
        .agg(F.count("*").alias("reports"), F.avg("value").alias("mean"), F.max("value").alias("top"))
    )


def run_spark_chained(spark: SparkSession, job: Job) -> None:
    """The query as two chained native aggregations, panes first and windows over the panes."""
    with settings(spark, stock_settings()):
        panes = (
            arrivals(spark, job.source, job.files_per_epoch)
            .withWatermark("time", DELAY)
            .groupBy(F.window("time", f"{job.window.pane} seconds"), "key")
            .agg(F.count("*").alias("n"), F.sum("value").alias("total"), F.max("value").alias("top"))
        )
        result = (
            panes.groupBy(F.window(F.window_time("window"), *_span(job.window)), "key")
            .agg(F.sum("n").alias("reports"), F.sum("total").alias("total"), F.max("top").alias("top"))
            .withColumn("mean", F.col("total") / F.col("reports"))
        )
        drain(_delivered(result), job.output, job.checkpoint)


PENSTOCK = Engine("penstock", run_penstock)
SPARK_WINDOW = Engine("spark window()", run_spark_window)
SPARK_TUNED = Engine("spark window(), our session", run_spark_window_tuned)
SPARK_CHAINED = Engine("spark chained", run_spark_chained)
ENGINES = (PENSTOCK, SPARK_WINDOW, SPARK_TUNED, SPARK_CHAINED)


def _span(window: WindowSpan) -> tuple[str, str]:
    return f"{window.size} seconds", f"{window.slide} seconds"


def _delivered(result: DataFrame) -> DataFrame:
    return result.select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "key",
        "reports",
        "mean",
        "top",
    )
