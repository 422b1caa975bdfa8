"""A live source of Penstock's own whose rate rises and falls by the clock, over keys that are drawn evenly.

Tuple i arrives when the ramps' count passes i; its key and its value follow from i alone. So a batch over all
numbers has the tuples of the run.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock.connect import ARRIVED, Ahead, Offset, Reader, SourceContext, Split
from penstock.sketches import splitmix64
from penstock_lab.bench.ramps import Ramps

__all__ = ["DDL", "RampSource", "Tuples"]

DDL = "time timestamp, key bigint, value bigint"
_ROW_BYTES = 1024  # as much as a task of its own is worth where there are several


@dataclass(frozen=True)
class Tuples:
    """All tuples of the ramps, by number."""

    ramps: Ramps
    keys: int
    seed: int

    def table(self, first: int, last: int) -> pa.Table:
        """The tuples from number `first` up to, not including, `last`."""
        drawn = splitmix64(np.arange(first, last, dtype=np.uint64), self.seed)
        arrivals = self.ramps.arrivals(first, last)
        return pa.table(
            {
                "time": pa.array(arrivals).cast(pa.timestamp("us", "UTC")),
                "key": (drawn % np.uint64(self.keys)).astype(np.int64),
                "value": (drawn >> np.uint64(54)).astype(np.int64),
                ARRIVED: arrivals,
            }
        )


@dataclass(frozen=True)
class _Span(Split):
    """The tuples that one task reads."""

    tuples: Tuples
    first: int
    last: int

    @property
    def size(self) -> int:
        """About so many bytes."""
        return (self.last - self.first) * _ROW_BYTES

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All columns, and when each tuple arrived."""
        del columns
        yield from self.tuples.table(self.first, self.last).to_batches()


@dataclass(frozen=True)
class RampSource(ps.Source):
    """The tuples as they arrive; after the last there are no more, and the run goes on."""

    tuples: Tuples

    @property
    def bounded(self) -> bool:
        """It is live."""
        return False

    def open(self, context: SourceContext) -> "_RampReader":
        """Offsets from the clock."""
        del context
        return _RampReader(self.tuples)


@dataclass(frozen=True)
class _RampReader(Reader):
    tuples: Tuples

    def ahead(self, after: Offset) -> Ahead | None:
        rows = self.tuples.ramps.arrived(time.time_ns() // 1000)
        return Ahead({"rows": rows}) if rows > after.get("rows", 0) else None

    def splits(self, after: Offset, upto: Offset, tasks: int) -> Sequence[_Span]:
        bounds = np.linspace(after.get("rows", 0), upto["rows"], tasks + 1).astype(np.int64).tolist()
        return [_Span(self.tuples, first, last) for first, last in pairwise(bounds) if first < last]
