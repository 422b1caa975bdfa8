"""A Spark streaming source whose tuples arrive at a steady rate by the wall clock.

Tuple i happens, and arrives, at `start + i / rate`; its key and its value follow from i alone. An epoch that
is replayed reads the same tuples, because an offset is the number of tuples before it.
"""

import time
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from penstock.connect import ARRIVED
from penstock_lab.bench.data import SCHEMA, SECOND_US

ROWS_PER_BATCH = 10_000


@dataclass(frozen=True)
class Rate:
    """Tuples a second since `start_us`, in microseconds since 1970, over `keys` keys drawn evenly."""

    start_us: int
    rows_per_s: int
    keys: int
    seed: int

    def arrived(self, now_us: int) -> int:
        """How many tuples have arrived by a moment."""
        return max(0, (now_us - self.start_us) * self.rows_per_s // SECOND_US)

    def rows(self, first: int, last: int) -> pa.RecordBatch:
        """The tuples from number `first` up to, not including, number `last`."""
        number = np.arange(first, last, dtype=np.int64)
        mixed = _mix(number.astype(np.uint64) + _mix(np.array([self.seed], dtype=np.uint64)))
        return pa.record_batch(
            [
                pa.array(self.start_us + number * SECOND_US // self.rows_per_s, SCHEMA.field("time").type),
                pa.array((mixed % np.uint64(self.keys)).astype(np.int64)),
                pa.array((mixed >> np.uint64(50)) / 128),
                pa.array(self.start_us + number * SECOND_US // self.rows_per_s),
            ],
            # Spark takes only nullable columns from a Python source.
            names=[*SCHEMA.names, ARRIVED],
        )


@dataclass
class Span(InputPartition):
    """The tuples that one task reads."""

    first: int
    last: int


class SteadySource(DataSource):
    """The source as Spark knows it; options start_us, rows_per_s, keys, seed and partitions."""

    @classmethod
    def name(cls) -> str:
        """The name to give to `readStream.format`."""
        return "penstock_steady"

    def schema(self) -> str:
        """The columns, which Spark always takes as nullable."""
        return f"time timestamp, key bigint, value double, {ARRIVED} bigint"

    def streamReader(self, schema: StructType) -> "SteadyReader":  # noqa: ARG002, N802  Spark's signature
        """A reader for these options."""
        return SteadyReader(self.options)


class SteadyReader(DataSourceStreamReader):
    """Offsets from the clock, tuples from the offsets."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._rate = Rate(*(int(options[name]) for name in ("start_us", "rows_per_s", "keys", "seed")))
        self._partitions = int(options["partitions"])

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Nothing has arrived."""
        return {"rows": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        """Everything that has arrived by now."""
        return {"rows": max(start["rows"], self._rate.arrived(time.time_ns() // 1000))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Span]:
        """Equal runs of consecutive tuples."""
        bounds = np.linspace(start["rows"], end["rows"], self._partitions + 1).astype(np.int64).tolist()
        return [Span(first, last) for first, last in pairwise(bounds) if first < last]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The tuples of one task."""
        assert isinstance(partition, Span), "Spark hands back what partitions() gave"
        for first in range(partition.first, partition.last, ROWS_PER_BATCH):
            yield self._rate.rows(first, min(first + ROWS_PER_BATCH, partition.last))


def _mix(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # The finaliser of SplitMix64: every bit of the input moves about half of the output's bits.
    number = (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
