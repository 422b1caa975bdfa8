"""What Spark's tasks cost: the processor time of their threads, without compilation and garbage collection.

On a busy machine wall time says little about a difference of a few per cent; the processor time of the tasks
is nearly that of a quiet machine.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

__all__ = ["TaskTime", "task_time"]


@dataclass(frozen=True)
class TaskTime:
    """Seconds by the clock, and seconds of processor time summed over all tasks."""

    wall_s: float
    cpu_s: float


def task_time(spark: SparkSession, run: Callable[[], Any]) -> TaskTime:
    """Run something and say what its tasks took; jobs that it starts on other threads do not count."""
    context = spark.sparkContext
    group = uuid.uuid4().hex
    context.setJobGroup(group, "measured")
    try:
        start = time.perf_counter()
        run()
        wall = time.perf_counter() - start
    finally:
        # Read from the status that Spark keeps of finished stages, which arrives a little later.
        java: Any = context._jsc.sc()  # noqa: SLF001 -- PySpark does not show processor times
        java.listenerBus().waitUntilEmpty()
        java.clearJobGroup()
    status = context.statusTracker()
    jobs = [status.getJobInfo(job) for job in status.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    store = java.statusStore()
    nanoseconds = sum(store.lastStageAttempt(stage).executorCpuTime() for stage in stages)
    return TaskTime(wall, nanoseconds / 1e9)
