"""What one epoch of a running query takes once the run is warm, without the start and the end of the run."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from penstock_lab.bench.cost import Cost, cost_here
from penstock_lab.bench.engines import Job, start_penstock, start_spark_window
from penstock_lab.bench.session import settings, stock_settings, tuned_settings
from penstock_lab.bench.waiting import wait_until
from penstock_lab.errors import BadBench

__all__ = ["EPOCH_ENGINES", "Running", "epoch_cost"]

# A tenth of the shortest epoch there is. To ask costs microseconds.
_PAUSE_S = 0.01
# Memory changes little from one small epoch to the next, and a look at all processes takes milliseconds.
_LOOK_S = 0.5


@dataclass(frozen=True)
class Running:
    """A query on its way: whether so many epochs are committed, whether it has ended, and its end."""

    committed: Callable[[int], bool]
    ended: Callable[[], bool]
    wait: Callable[[], object]


def epoch_cost(running: Running, warm: int, counted: int) -> Cost:
    """The mean over `counted` epochs after `warm` others; then let the query end."""
    _reach(running, warm)
    cost = cost_here(partial(_reach, running, warm + counted), interval=_LOOK_S)
    running.wait()
    return cost.each_of(counted)


def _reach(running: Running, epochs: int) -> None:
    while not wait_until(partial(running.committed, epochs), seconds=1, pause=_PAUSE_S):
        if running.ended() and not running.committed(epochs):
            running.wait()  # raises what ended it
            raise BadBench(
                f"the run ended before epoch {epochs}; give it more files, or ask for fewer epochs"
            )


@contextmanager
def _penstock(spark: SparkSession, job: Job, epoch_rows: int) -> Iterator[Running]:
    with start_penstock(spark, job) as run:
        yield Running(
            lambda epochs: run.counts.rows >= epochs * epoch_rows, lambda: not run.running, run.wait
        )


@contextmanager
def _spark(
    chosen: Callable[[], dict[str, str]], spark: SparkSession, job: Job, _epoch_rows: int
) -> Iterator[Running]:
    with settings(spark, chosen()):
        query = start_spark_window(spark, job)
        commits = job.checkpoint / "commits"
        try:
            yield Running(
                lambda epochs: (commits / str(epochs - 1)).exists(),
                lambda: not query.isActive,
                query.awaitTermination,
            )
        finally:
            query.stop()


EPOCH_ENGINES: dict[str, Callable[[SparkSession, Job, int], AbstractContextManager[Running]]] = {
    "penstock": _penstock,
    "spark": partial(_spark, stock_settings),
    "spark-tuned": partial(_spark, tuned_settings),
}
"""Each starts a job whose epochs have a given number of rows, and stops it at the end of a `with` block."""
