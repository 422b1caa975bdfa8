"""The terminal: the first rows of each epoch as a table on standard output."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from penstock.checks import whole_number
from penstock.connect.results import EpochId, Results
from penstock.connect.sink import Delivery, Sink, SinkContext
from penstock.errors import BadSink

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ConsoleSink", "console"]

_MOST_ROWS = 1_000_000


@dataclass(frozen=True, repr=False)
class ConsoleSink(Sink):
    """Prints the first `rows` rows of each epoch. An epoch that is delivered again is printed again."""

    rows: int = 20

    takes_parts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", whole_number("rows", self.rows, 1, _MOST_ROWS, BadSink))

    def open(self, context: SinkContext) -> Delivery:
        """Print to the present standard output."""
        from rich.console import Console  # noqa: PLC0415 -- workers import this module and never print

        del context
        return _ConsoleDelivery(Console(file=sys.stdout), self.rows)

    def __repr__(self) -> str:
        return f"console(rows={self.rows})"


@dataclass(frozen=True)
class _ConsoleDelivery(Delivery):
    console: "Console"
    most: int

    def deliver(self, epoch: EpochId, results: Results) -> None:
        """Print a table, or nothing if there are no results."""
        if results.rows:
            self.part(epoch, results.table())

    def part(self, epoch: EpochId, rows: pa.Table) -> None:
        """Print a table."""
        from rich.table import Table  # noqa: PLC0415 -- as above

        caption = f"epoch {epoch.epoch}: {rows.num_rows:,} results"
        cut = rows.num_rows > self.most
        shown = Table(caption=f"{caption}, the first {self.most:,} shown" if cut else caption)
        for name in rows.column_names:
            shown.add_column(name)
        for row in rows.slice(0, self.most).to_pylist():
            shown.add_row(*("" if value is None else str(value) for value in row.values()))
        self.console.print(shown)


def console(rows: int = 20) -> ConsoleSink:
    """Print the first rows of each epoch's results.

    >>> console(5)
    console(rows=5)
    """
    return ConsoleSink(rows)
