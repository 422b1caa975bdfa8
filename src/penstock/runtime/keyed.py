"""Partials of one channel in memory, with the keys of all rows numbered together."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.compile import WindowPlan, form
from penstock.panes import Lanes, Partials, group
from penstock.runtime.segments import PANE

__all__ = ["KEY", "Keyed", "number_keys", "within"]

KEY = "_ps_key{}"


def number_keys(columns: list[Any], rows: int) -> tuple[NDArray[np.int64], list[Any]]:
    """A number for every distinct combination of keys, and the distinct keys by number.

    Null is a key like any other, as in SQL. One pass of hashing per column.
    """
    if not columns:
        return np.zeros(rows, np.int64), []
    encoded = [column.combine_chunks().dictionary_encode(null_encoding="encode") for column in columns]
    numbers = encoded[0].indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if len(columns) == 1:
        return numbers, [encoded[0].dictionary]
    for each in encoded[1:]:
        numbers = numbers * len(each.dictionary) + each.indices.to_numpy(zero_copy_only=False)
        # Renumbered at every column, so that the product of many columns cannot overflow.
        joint = pa.array(numbers).dictionary_encode()
        numbers = joint.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.empty(len(joint.dictionary), np.int64)
    first[numbers[::-1]] = np.arange(rows)[::-1]
    return numbers, [column.combine_chunks().take(pa.array(first)) for column in columns]


class Keyed:
    """Rows of several tables of partials as one block that can be grouped, closed and stored.

    Built from segment tables, from what Spark combined, or from raw rows; after that, all alike.
    """

    def __init__(self, plan: WindowPlan, tables: list[Any], raw: Any = None) -> None:
        """Take up tables of partials, and raw rows from which partials are formed."""
        names = [KEY.format(place) for place in range(len(plan.keys))]
        every = [table.select(names) for table in ([raw] if raw is not None else []) + tables]
        rows = sum(table.num_rows for table in every)
        together = pa.concat_tables(every) if every else None
        numbers, self.keys = number_keys([] if together is None else together.columns, rows)
        self._plan = plan
        self._names = names
        formed = raw.num_rows if raw is not None else 0
        panes = [table[PANE].to_numpy() for table in tables]
        columns = [_concat(tables, partial.columns, partial.kind.types) for partial in plan.partials]
        if raw is not None:
            inputs = {name: raw[name].combine_chunks() for name in raw.column_names}
            batch = pa.RecordBatch.from_arrays(list(inputs.values()), names=list(inputs))
            pane, key, made = form(plan.partials, batch, numbers[:formed], raw[PANE].to_numpy())
            panes, numbers = [pane, *panes], np.concatenate([key, numbers[formed:]])
            columns = [
                [pa.concat_arrays([one, other]) for one, other in zip(*pair, strict=True)]
                for pair in zip(made, columns, strict=True)
            ]
        self._loaded = [
            partial.kind.load(column) for partial, column in zip(plan.partials, columns, strict=True)
        ]
        self.merges = tuple(each.merge for each in self._loaded)
        pane = np.concatenate(panes) if panes else np.empty(0, np.int64)
        self.old = sum(table.num_rows for table in tables)
        self.rows = Partials(pane, numbers, tuple(each.lanes for each in self._loaded))

    def __len__(self) -> int:
        return len(self.rows.pane)

    def combined(self, length: int) -> Any:
        """A segment table with one row per node of `length` panes and key, ascending by pane."""
        if not len(self):
            return self.table(self.rows.pane, self.rows.key, self.rows.lanes)
        width = max(len(self.keys[0]) if self.keys else 1, int(self.rows.key.max()) + 1)
        base = int(self.rows.pane.min()) // length
        cells, at = group((self.rows.pane // length - base) * width + self.rows.key)
        lanes = tuple(
            merge.scatter(len(cells), at, lane)
            for merge, lane in zip(self.merges, self.rows.lanes, strict=True)
        )
        return self.table((cells // width + base) * length, cells % width, lanes)

    def table(self, pane: NDArray[np.int64], key: NDArray[np.int64], lanes: tuple[Lanes, ...]) -> Any:
        """A segment table of the given rows."""
        arrays = [*self.key_columns(key), pa.array(pane)]
        names = [*self._names, PANE]
        for partial, columns in zip(self._plan.partials, self.stored(lanes), strict=True):
            arrays.extend(columns)
            names.extend(partial.columns)
        return pa.Table.from_arrays(arrays, names=names)

    def key_columns(self, key: NDArray[np.int64]) -> list[Any]:
        """The keys behind the numbers."""
        index = pa.array(key)
        return [column.take(index) for column in self.keys]

    def stored(self, lanes: tuple[Lanes, ...]) -> list[list[Any]]:
        """The columns of every partial."""
        return [each.store(lane) for each, lane in zip(self._loaded, lanes, strict=True)]


def _concat(tables: list[Any], names: tuple[str, ...], types: tuple[Any, ...]) -> list[Any]:
    columns = []
    for name, type_ in zip(names, types, strict=True):
        chunks = [chunk for table in tables for chunk in table[name].chunks]
        columns.append(pa.concat_arrays(chunks) if chunks else pa.array([], type_))
    return columns


def within(table: Any, first: int, end: int) -> Any:
    """The rows of a segment table that start in the given panes; without a copy where they are together."""
    pane = table[PANE].to_numpy()
    at = np.flatnonzero((pane >= first) & (pane < end))
    if len(at) == table.num_rows:
        return table
    if len(at) and at[-1] - at[0] + 1 == len(at):
        return table.slice(int(at[0]), len(at))
    return table.take(pa.array(at))
