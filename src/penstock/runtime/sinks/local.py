"""Results that go to the driver: memory, the console, a function."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from penstock.runtime.records import Moment
from penstock.runtime.results import Output, ResultFormat
from penstock.runtime.storage import Location

__all__ = ["LocalDelivery", "printer"]


@dataclass
class LocalDelivery:
    """Channels write Arrow files next to the state; the driver reads them and hands them on."""

    scratch: Location
    receive: Callable[[Any, Moment], object]

    @property
    def target(self) -> ResultFormat:
        """Arrow files in the scratch folder."""
        return ResultFormat(self.scratch, "arrow")

    def prepare(self, schema: object) -> None:
        """Empty the scratch folder."""
        del schema
        self.scratch.make()
        for name in self.scratch.names():
            self.scratch.delete(name)

    def deliver(self, moment: Moment, outputs: Sequence[tuple[int, Output]]) -> None:
        """One table of the epoch, in the order of windows; nothing is handed over for no results."""
        if outputs:
            tables = [pa.ipc.open_file(self.scratch.input(output.name)).read_all() for _, output in outputs]
            self.receive(_by_window(pa.concat_tables(tables)), moment)

    def forget(self, outputs: Sequence[Output]) -> None:
        """Delete what was handed over."""
        for output in outputs:
            self.scratch.delete(output.name)


def _by_window(table: Any) -> Any:
    return table.sort_by("window_start") if "window_start" in table.column_names else table


def printer(rows: int) -> Callable[[Any, Moment], None]:
    """Print the first rows of each epoch as a table."""
    console = Console(file=sys.stdout)

    def show(table: Any, moment: Moment) -> None:
        caption = f"epoch {moment.epoch}: {table.num_rows} results"
        shown = Table(caption=caption if table.num_rows <= rows else f"{caption}, the first {rows} shown")
        for name in table.column_names:
            shown.add_column(name)
        for row in table.slice(0, rows).to_pylist():
            shown.add_row(*("" if value is None else str(value) for value in row.values()))
        console.print(shown)

    return show
