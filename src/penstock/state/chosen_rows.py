"""Rows of several tables, one after another, of which columns are gathered when somebody asks for them.

A channel whose rows are spread over files that others share would copy all of them in every epoch; a join
looks at the times and keys of all rows, and at the other columns of the few that match.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["ChosenRows", "Part"]

Places = NDArray[np.int64]
Part = tuple[Any, Places | None]
"""An Arrow table, and the places of the chosen rows, None for all."""

# A column is gathered whole if at least one row in so many is asked for.
_WORTH_GATHERING = 4


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """The chosen rows of some tables with one schema.

    >>> table = pa.table({"n": [10, 11, 12], "s": ["a", "b", "c"]})
    >>> rows = ChosenRows.of([(table, np.array([0, 2])), (table, None)], table.schema)
    >>> rows["n"].to_pylist(), rows.taken(["s"], np.array([1, 4, 0]))[0].to_pylist()
    ([10, 12, 10, 11, 12], ['c', 'c', 'a'])
    """

    parts: tuple[Part, ...]
    schema: Any
    _columns: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    _whole: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, parts: Iterable[Part], schema: Any) -> "ChosenRows":
        """The rows of these parts; every part that is kept has some."""
        return cls(tuple(each for each in parts if _count(each)), schema)

    @cached_property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self._ends[-1]) if self.parts else 0

    def __getitem__(self, name: str) -> Any:
        """A column of all rows, in a chunk for each part."""
        if name not in self._columns:
            chunks = [chunk for part in self.parts for chunk in _gathered(part, name).chunks]
            self._columns[name] = pa.chunked_array(chunks, self.schema.field(name).type)
        return self._columns[name]

    def and_those(self, table: Any) -> "ChosenRows":
        """These rows, then those of a table."""
        batches = table.to_batches() if table.num_rows else []
        return ChosenRows.of(
            [*self.parts, *((pa.Table.from_batches([each]), None) for each in batches)], self.schema
        )

    def table(self, names: Sequence[str] | None = None) -> Any:
        """All rows as a table, by default with all columns."""
        names = self.schema.names if names is None else names
        schema = pa.schema([self.schema.field(name) for name in names])
        return pa.table([self[name] for name in names], schema=schema)

    def taken(self, names: Sequence[str], rows: Places) -> list[Any]:
        """Columns of some rows, in their order; costs nothing for rows that are not asked for."""
        if not len(rows):
            return [pa.array([], self.schema.field(name).type) for name in names]
        if len(rows) * _WORTH_GATHERING >= self.num_rows or len(self.parts) < 2:
            index = pa.array(rows)
            return [self._gathered(name).take(index) for name in names]
        # Numbers of few bits are sorted in linear time.
        part = np.searchsorted(self._ends, rows, side="right").astype(np.min_scalar_type(len(self.parts)))
        order = np.argsort(part, kind="stable")
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        counts = np.bincount(part, minlength=len(self.parts))
        cuts = np.split(rows[order], np.cumsum(counts)[:-1])
        found: list[list[Any]] = [[] for _ in names]
        for number in np.flatnonzero(counts).tolist():
            table, places = self.parts[number]
            local = cuts[number] - (self._ends[number - 1] if number else 0)
            index = pa.array(local if places is None else places[local])
            for chunks, name in zip(found, names, strict=True):
                chunks.extend(table[name].take(index).chunks)
        unsorted = pa.array(back)
        return [pa.concat_arrays(chunks).take(unsorted) for chunks in found]

    def take(self, rows: Places) -> Any:
        """Some rows as a table."""
        return pa.table(self.taken(self.schema.names, rows), schema=self.schema)

    def _gathered(self, name: str) -> Any:
        """A column of all rows in one piece."""
        if name not in self._whole:
            column = self[name]
            self._whole[name] = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        return self._whole[name]

    @cached_property
    def _ends(self) -> Places:
        return np.cumsum([_count(each) for each in self.parts])


def _count(part: Part) -> int:
    table, places = part
    return int(table.num_rows) if places is None else len(places)


def _gathered(part: Part, name: str) -> Any:
    table, places = part
    column = table[name]
    if places is None:
        return column
    if pa.types.is_integer(column.type) and column.num_chunks == 1 and not column.null_count:
        # A fifth of the time that Arrow takes for so few bytes a row.
        return pa.chunked_array([pa.array(column.chunk(0).to_numpy()[places])])
    return column.take(pa.array(places))
