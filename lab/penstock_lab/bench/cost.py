"""What one run took: time by the clock, processor time and memory of the whole process tree."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock_lab.bench.memory import Usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Cost", "cost_here", "cost_of"]


@dataclass(frozen=True)
class Cost:
    """What one run took, from its start to its last commit."""

    wall_s: float
    cpu_s: float
    peak_mb: float

    def each_of(self, parts: int) -> "Cost":
        """The mean over so many equal parts, which all had this memory."""
        return Cost(self.wall_s / parts, self.cpu_s / parts, self.peak_mb)


def cost_of(spark: "SparkSession", work: Callable[[], object]) -> Cost:
    """Do some work and say what it took.

    Runs share one JVM, whose heap a run would otherwise inherit from the one before: a collection goes
    first, outside the measured time.
    """
    _collect_garbage(spark)
    return cost_here(work)


def cost_here(work: Callable[[], object], interval: float = 0.1) -> Cost:
    """Do some work in this process and those that it started, looked at every `interval` seconds."""
    with Usage(interval) as usage:
        start = time.perf_counter()
        work()
        wall = time.perf_counter() - start
    return Cost(wall_s=wall, cpu_s=usage.cpu_s, peak_mb=usage.peak_mb)


def _collect_garbage(spark: "SparkSession") -> None:
    jvm = spark._jvm  # noqa: SLF001  there is no public way to ask for a collection
    if jvm is not None:
        jvm.System.gc()
