"""The rows of one task out of several gates, through their deaths: none is left out and none comes twice.

What a gate has given before it went away is kept, and the rest is asked for when it is back. What comes from
several gates is put together, because every batch that goes on costs Spark about as much as a thousand rows.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa

from penstock.errors import BadSource, GateAway
from penstock.expressions.types import from_arrow
from penstock.ingest.access import Access
from penstock.ingest.reader import BATCH_ROWS, GateReader, Wanted

__all__ = ["Gathering", "Part", "conformed", "remaining", "resumed"]

_PAUSE_S: Final = 0.2


@dataclass(frozen=True)
class Part:
    """What one gate is asked for."""

    gate: str
    wanted: tuple[Wanted, ...]


@dataclass(frozen=True)
class Gathering:
    """How the rows of an inlet are fetched; `patience` is how many seconds a gate may be away."""

    inlet: str
    access: Access
    schema: Any
    stream_column: str | None
    patience: float

    def rows(self, parts: Sequence[Part]) -> Iterator[Any]:
        """Record batches of the schema, part after part."""
        held: list[Any] = []
        count = 0
        for batch in self._given(parts):
            held.append(batch)
            count += batch.num_rows
            if count >= BATCH_ROWS:
                yield from self._together(held)
                held, count = [], 0
        yield from self._together(held)

    def _given(self, parts: Sequence[Part]) -> Iterator[Any]:
        for part in parts:
            yield from resumed(partial(self._once, part.gate), part.wanted, self.patience)

    def _once(self, gate: str, wanted: Sequence[Wanted]) -> Iterator[Any]:
        reader = GateReader(gate, self.access)
        try:
            yield from reader.rows(self.inlet, wanted, self.stream_column)
        finally:
            reader.close()

    def _together(self, batches: list[Any]) -> Iterator[Any]:
        if batches:
            table = conformed(pa.Table.from_batches(batches), self.schema, self.inlet)
            yield from table.combine_chunks().to_batches()


def resumed(
    fetch: Callable[[Sequence[Wanted]], Iterator[Any]], wanted: Sequence[Wanted], patience: float
) -> Iterator[Any]:
    """The batches of the ranges in order, asking again for what is left for as long as patience lasts."""
    given = 0
    heard = time.monotonic()
    while True:
        try:
            for batch in fetch(remaining(wanted, given)):
                given += batch.num_rows
                yield batch
                heard = time.monotonic()
        except GateAway as error:
            if time.monotonic() - heard > patience:
                raise GateAway(
                    f"{error}, for {patience:.0f} s now; it holds rows of an epoch under way: start it again "
                    "on the same folder, then the run, which goes on where it was"
                ) from error
            time.sleep(_PAUSE_S)
        else:
            return


def remaining(wanted: Sequence[Wanted], given: int) -> list[Wanted]:
    """The ranges without their first rows.

    >>> remaining([("a", 0, 10), ("b", 5, 9)], 12)
    [('b', 7, 9)]
    """
    left = []
    for stream, first, last in wanted:
        skipped = min(given, last - first)
        given -= skipped
        if first + skipped < last:
            left.append((stream, first + skipped, last))
    return left


def conformed(table: Any, schema: Any, inlet: str) -> Any:
    """The columns of the schema out of a table of rows, with their types."""
    known = {name.lower(): place for place, name in enumerate(table.column_names)}
    columns = []
    for field in schema:
        place = known.get(field.name.lower())
        if place is None:
            raise BadSource(
                f"the rows of inlet {inlet!r} have no column {field.name!r}; they have "
                f"{', '.join(table.column_names)}: correct the schema of the stream"
            )
        column = table.column(place)
        if from_arrow(column.type) != from_arrow(field.type):
            raise BadSource(
                f"column {field.name!r} of inlet {inlet!r} is {from_arrow(column.type)}, declared is "
                f"{from_arrow(field.type)}: correct the schema of the stream"
            )
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema)
