"""The engines that filter and project a stream, the cheapest query there is: no key, no state.

Half of the rows pass, and a column is computed from another. All take the same number of files an epoch and
write snappy parquet; a run is over when the last epoch is committed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

import penstock as ps
from penstock_lab.bench.engines import arrivals, reports
from penstock_lab.bench.session import settings, stock_settings, tuned_settings
from penstock_lab.bench.spark_sink import drain

__all__ = ["KEPT", "PENSTOCK", "SCALED", "SPARK", "SPARK_TUNED", "FilterEngine", "FilterJob"]

KEPT = "value < 64"
# Exact for values that are multiples of 1/128 below 128, so engines that agree, agree to the last bit.
SCALED = "value * 1.5 + 1"


@dataclass(frozen=True)
class FilterJob:
    """One run to do: where to read, where to write."""

    source: Path
    place: Path
    files_per_epoch: int

    @property
    def output(self) -> Path:
        """Where the results go."""
        return self.place / "out"


@dataclass(frozen=True)
class FilterEngine:
    """A name for the report and the function that runs a job to its end."""

    name: str
    run: Callable[[SparkSession, FilterJob], None]


def _run_penstock(spark: SparkSession, job: FilterJob) -> None:
    query = reports(job.source, job.files_per_epoch).where(KEPT).select("time", "key", scaled=SCALED)
    sink = ps.parquet(str(job.output), compression="snappy")
    query.start(sink, checkpoint=str(job.place / "state"), session=spark).wait()


def _run_spark(spark: SparkSession, job: FilterJob) -> None:
    with settings(spark, stock_settings()):
        _drain(spark, job)


def _run_spark_tuned(spark: SparkSession, job: FilterJob) -> None:
    with settings(spark, tuned_settings()):
        _drain(spark, job)


def _drain(spark: SparkSession, job: FilterJob) -> None:
    rows = arrivals(spark, job.source, job.files_per_epoch)
    result = rows.where(KEPT).selectExpr("time", "key", f"{SCALED} AS scaled")
    drain(result, job.output, job.place / "state")


PENSTOCK = FilterEngine("penstock", _run_penstock)
SPARK = FilterEngine("spark", _run_spark)
SPARK_TUNED = FilterEngine("spark, our session", _run_spark_tuned)
