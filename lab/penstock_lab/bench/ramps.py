"""A Spark streaming source whose rate rises and falls by the wall clock, along a line through given points.

How many tuples have arrived by an instant follows from the points alone, and tuple i arrives when the count
passes i. An epoch that is replayed reads the same tuples, because an offset is the number of tuples before
it.
"""

import json
import time
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from penstock.connect import ARRIVED
from penstock_lab.bench.data import SECOND_US
from penstock_lab.bench.steady import Span

__all__ = ["DDL", "RampSource", "Ramps"]

DDL = "time timestamp, key bigint"
_STEP_S = 0.01


@dataclass(frozen=True)
class Ramps:
    """Rates in tuples a second at seconds after `start_us`; after the last there are no more tuples.

    >>> Ramps(0, ((0, 0), (10, 100), (20, 100))).arrived(10_000_000)
    500
    """

    start_us: int
    points: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        """The length of the whole."""
        return self.points[-1][0]

    @property
    def total(self) -> int:
        """All tuples."""
        return int(self._counts[-1])

    def arrived(self, now_us: int) -> int:
        """How many tuples have arrived by an instant."""
        return int(np.interp((now_us - self.start_us) / SECOND_US, self._times, self._counts))

    def arrivals(self, first: int, last: int) -> NDArray[np.int64]:
        """When the tuples from number `first` up to, not including, `last` arrive, in microseconds."""
        number = np.arange(first + 1, last + 1)
        seconds = np.interp(number, self._counts, self._times)
        found: NDArray[np.int64] = self.start_us + np.round(seconds * SECOND_US).astype(np.int64)
        return found

    @cached_property
    def _times(self) -> NDArray[np.float64]:
        return np.arange(0, self.seconds + _STEP_S / 2, _STEP_S)

    @cached_property
    def _counts(self) -> NDArray[np.float64]:
        at, worth = (np.array(each, np.float64) for each in zip(*self.points, strict=True))
        rates = np.interp(self._times, at, worth)
        steps = (rates[1:] + rates[:-1]) / 2 * _STEP_S
        # Interpolation backwards needs counts that grow.
        return np.concatenate([[0.0], np.cumsum(np.maximum(steps, 1e-9))])


class RampSource(DataSource):
    """The source as Spark knows it; options start_us, points (JSON), keys and partitions."""

    @classmethod
    def name(cls) -> str:
        """The name to give to `readStream.format`."""
        return "penstock_ramps"

    def schema(self) -> str:
        """The columns, which Spark always takes as nullable."""
        return f"{DDL}, {ARRIVED} bigint"

    def streamReader(self, schema: StructType) -> "RampReader":  # noqa: ARG002, N802  Spark's signature
        """A reader for these options."""
        return RampReader(self.options)


class RampReader(DataSourceStreamReader):
    """Offsets from the clock, tuples from the offsets."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        points = tuple((at, rate) for at, rate in json.loads(options["points"]))
        self._ramps = Ramps(int(options["start_us"]), points)
        self._keys, self._partitions = int(options["keys"]), int(options["partitions"])

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Nothing has arrived."""
        return {"rows": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        """Everything that has arrived by now."""
        return {"rows": max(start["rows"], self._ramps.arrived(time.time_ns() // 1000))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Span]:
        """Equal runs of consecutive tuples."""
        bounds = np.linspace(start["rows"], end["rows"], self._partitions + 1).astype(np.int64).tolist()
        return [Span(first, last) for first, last in pairwise(bounds) if first < last]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The tuples of one task."""
        assert isinstance(partition, Span), "Spark hands back what partitions() gave"
        number = np.arange(partition.first, partition.last)
        arrived = self._ramps.arrivals(partition.first, partition.last)
        yield pa.record_batch(
            [pa.array(arrived).cast(pa.timestamp("us", tz="UTC")), number % self._keys, arrived],
            names=["time", "key", ARRIVED],
        )
