"""Results in memory, for tests and notebooks."""

from collections.abc import Hashable
from dataclasses import dataclass

import pyarrow as pa

from penstock.connect.results import EpochId, Results
from penstock.connect.sink import Delivery, Sink, SinkContext

__all__ = ["MemorySink", "memory"]


class MemorySink(Sink):
    """Results kept in memory; an epoch that is delivered again replaces its earlier results.

    >>> sink = memory()
    >>> sink.append(0, pa.table({"n": [1]}))
    >>> sink.append(0, pa.table({"n": [1]}))
    >>> sink.table().num_rows
    1
    """

    def __init__(self) -> None:
        self._tables: dict[Hashable, pa.Table] = {}

    def append(self, epoch_key: Hashable, table: pa.Table) -> None:
        """Keep the results of one epoch."""
        self._tables[epoch_key] = table

    def table(self) -> pa.Table:
        """All results so far, in the order in which their epochs first arrived."""
        tables = list(self._tables.values())
        return pa.concat_tables(tables) if tables else pa.table({})

    def open(self, context: SinkContext) -> Delivery:
        """Nothing to prepare."""
        return _MemoryDelivery(self, context.name)

    def __repr__(self) -> str:
        rows = sum(each.num_rows for each in self._tables.values())
        return f"memory({rows:,} results of {len(self._tables):,} epochs)"


@dataclass(frozen=True)
class _MemoryDelivery(Delivery):
    sink: MemorySink
    name: str

    def deliver(self, epoch: EpochId, results: Results) -> None:
        """Keep the table under the epoch's id."""
        if results.rows:
            self.sink.append((self.name, epoch), results.table())


def memory() -> MemorySink:
    """Keep the results in memory, for tests and notebooks."""
    return MemorySink()
