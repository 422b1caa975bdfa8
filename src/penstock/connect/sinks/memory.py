"""Results in memory, for tests and notebooks."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

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

    takes_back: ClassVar[bool] = True
    takes_parts: ClassVar[bool] = True

    def __init__(self) -> None:
        self._tables: dict[Hashable, pa.Table] = {}
        self._schema = pa.schema([])

    def append(self, epoch_key: Hashable, table: pa.Table) -> None:
        """Keep the results of one epoch."""
        self._tables[epoch_key] = table

    def extend(self, epoch_key: Hashable, table: pa.Table) -> None:
        """Keep more results of one epoch."""
        held = self._tables.get(epoch_key)
        self._tables[epoch_key] = table if held is None else pa.concat_tables([held, table])

    def table(self) -> pa.Table:
        """All results so far, in the order in which their epochs first arrived.

        Before the first one it has the columns of the run that was started last.
        """
        tables = list(self._tables.values())
        return pa.concat_tables(tables) if tables else self._schema.empty_table()

    def open(self, context: SinkContext) -> Delivery:
        """Drop what was delivered after the epoch from which the run begins."""
        self._schema = context.schema
        last = context.begins.last or EpochId(-1)
        for key in [each for each in self._tables if _is_later(each, context.id, last)]:
            del self._tables[key]
        return _MemoryDelivery(self, context.id)

    def __repr__(self) -> str:
        rows = sum(each.num_rows for each in self._tables.values())
        return f"memory({rows:,} results of {len(self._tables):,} epochs)"


@dataclass(frozen=True)
class _MemoryDelivery(Delivery):
    sink: MemorySink
    id: str

    def deliver(self, epoch: EpochId, results: Results) -> None:
        """Keep the table under the epoch's id."""
        if results.rows:
            self.sink.append((self.id, epoch), results.table())

    def part(self, epoch: EpochId, rows: pa.Table) -> None:
        """Add rows to those of the epoch."""
        self.sink.extend((self.id, epoch), rows)


def _is_later(key: Hashable, id_: str, last: EpochId) -> bool:
    match key:
        case (str(owner), EpochId() as epoch):
            return owner == id_ and epoch > last
    return False


def memory() -> MemorySink:
    """Keep the results in memory, for tests and notebooks."""
    return MemorySink()
