"""What one run took: time by the clock, processor time and memory of the whole process tree."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock_lab.bench.memory import Usage

__all__ = ["Cost", "cost_of"]


@dataclass(frozen=True)
class Cost:
    """What one run took, from its start to its last commit."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def cost_of(spark: SparkSession, work: Callable[[], object]) -> Cost:
    """Do some work and say what it took.

    Runs share one JVM, whose heap a run would otherwise inherit from the one before: a collection goes
    first, outside the measured time.
    """
    _collect_garbage(spark)
    with Usage() as usage:
        start = time.perf_counter()
        work()
        wall = time.perf_counter() - start
    return Cost(wall_s=wall, cpu_s=usage.cpu_s, peak_mb=usage.peak_mb)


def _collect_garbage(spark: SparkSession) -> None:
    jvm = spark._jvm  # noqa: SLF001  there is no public way to ask for a collection
    if jvm is not None:
        jvm.System.gc()
