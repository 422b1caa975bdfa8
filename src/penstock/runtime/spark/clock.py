"""A clock as a Spark source, so that epochs run when no stream has tuples.

Structured Streaming runs no epoch without new data, and without an epoch the silence of a stream closes no
window. So a run with `idle` has one more source, whose offset is the time in ticks: every tick is new data
without rows. A tick is an epoch like any other: its offsets are in Spark's log before it runs, and a replay
has the same.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from penstock.query import Stream
from penstock.runtime.frontier import SteadyTime

__all__ = ["clock_frame", "period", "steady_time"]

_TICKS_PER_IDLE: Final = 4
_SHORTEST_TICK: Final = 0.25  # seconds: an epoch without tuples takes about a tenth of a second
_LONGEST_STEP: Final = 2**62


def steady_time(streams: Sequence[Stream]) -> SteadyTime:
    """Steady time for streams: it takes at least two looks until the first of them is idle."""
    return SteadyTime(
        min((each.idle // 2 for each in streams if each.idle is not None), default=_LONGEST_STEP)
    )


def clock_frame(session: SparkSession, streams: Sequence[Stream]) -> DataFrame | None:
    """A stream that has something new every quarter of the shortest `idle`; None if no stream has one."""
    tick = period(streams)
    if tick is None:
        return None
    format_ = _clock(tick)
    session.dataSource.register(format_)
    return session.readStream.format(format_.name()).load()


def period(streams: Sequence[Stream]) -> float | None:
    """Seconds between two ticks; None if no stream has an `idle`."""
    idle = min((each.idle for each in streams if each.idle is not None), default=None)
    return None if idle is None else max(_SHORTEST_TICK, idle / 1e6 / _TICKS_PER_IDLE)


def _clock(period: float) -> type[DataSource]:
    """A data source class with its period; one made in a function is pickled whole."""

    class Clock(DataSource):
        @classmethod
        def name(cls) -> str:
            return f"penstock_clock_{round(period * 1e6)}"

        def schema(self) -> str:
            return "tick bigint"

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802  Spark's
            return _Ticks(period)

    return Clock


class _Ticks(DataSourceStreamReader):
    """The number of periods since 1970; it does not go back with the wall clock."""

    def __init__(self, period: float) -> None:
        self._period = period

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """The tick at which the run began."""
        return {"tick": self._now()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """Everything."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        """The last tick."""
        return {"tick": max(start["tick"], self._now())}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002
        """One part, which has no rows."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        """No rows: it only matters that time has passed."""
        return iter(())

    def _now(self) -> int:
        return int(time.time() / self._period)
