"""Moves of state on Spark: a task for each channel that loses some."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyspark import SparkContext

from penstock.state.moving import MoveTask
from penstock.state.table import Departure

__all__ = ["move_state"]


def move_state(
    context: SparkContext, task: MoveTask, sources: Sequence[int]
) -> dict[int, tuple[Departure, ...]]:
    """Run the moves out of these channels; the result has, for each, the new state of every stage."""
    numbers = context.parallelize(sources, len(sources))
    return dict(numbers.mapPartitions(_Moves(task)).collect())


@dataclass(frozen=True)
class _Moves:
    """The callable that Spark ships to the workers."""

    task: MoveTask

    def __call__(self, channels: Iterable[int]) -> Iterator[tuple[int, tuple[Departure, ...]]]:
        for channel in channels:
            yield channel, self.task.work(channel)
