"""A source whose tuples arrive at a steady rate by the wall clock.

Tuple i happens, and arrives, at `start + i / rate`; its key and its value follow from i alone. An epoch that
is replayed reads the same tuples, because an offset is the number of tuples before it.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock as ps
from penstock.connect import ARRIVED, Ahead, Offset, Reader, SourceContext, Split
from penstock_lab.bench.data import SCHEMA, SECOND_US

__all__ = ["Rate", "Span", "SteadySource"]

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


@dataclass(frozen=True)
class Span(Split):
    """The tuples that one task reads."""

    rate: Rate
    first: int
    last: int

    @property
    def size(self) -> int:
        """About so many bytes, as much as a task of its own is worth where there are several."""
        return (self.last - self.first) << 10

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All columns, and when each tuple arrived."""
        del columns
        for first in range(self.first, self.last, ROWS_PER_BATCH):
            yield self.rate.rows(first, min(first + ROWS_PER_BATCH, self.last))


@dataclass(frozen=True)
class SteadySource(ps.Source):
    """Tuples at a rate, without an end."""

    rate: Rate

    @property
    def bounded(self) -> bool:
        """It goes on for ever."""
        return False

    def open(self, context: SourceContext) -> "SteadyReader":
        """Offsets from the clock."""
        del context
        return SteadyReader(self.rate)


@dataclass(frozen=True)
class SteadyReader(Reader):
    """Offsets from the clock, tuples from the offsets."""

    rate: Rate

    def ahead(self, after: Offset) -> Ahead | None:
        """Everything that has arrived by now."""
        rows = self.rate.arrived(time.time_ns() // 1000)
        return Ahead({"rows": rows}) if rows > after.get("rows", 0) else None

    def splits(self, after: Offset, upto: Offset, tasks: int) -> Sequence[Span]:
        """Equal runs of consecutive tuples."""
        bounds = np.linspace(after.get("rows", 0), upto["rows"], tasks + 1).astype(np.int64).tolist()
        return [Span(self.rate, first, last) for first, last in pairwise(bounds) if first < last]


def _mix(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # The finaliser of SplitMix64: every bit of the input moves about half of the output's bits.
    number = (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
