"""Partials of one channel in memory, with the keys of all rows numbered together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.aggregates.merges import Lanes, group
from penstock.aggregates.partials import Partial, form
from penstock.operators.windows.sliding import Partials
from penstock.state.keys import number_keys
from penstock.state.pane_table import PANE

__all__ = ["PaneBlock"]


class PaneBlock:
    """Rows of several tables of partials as one block that can be grouped, closed and stored.

    Built from tables of segments, from what Spark combined, or from raw rows; after that, all are alike.
    `keys` of all rows are numbered together, in one pass of hashing per column. What is formed here comes
    last: of one pane, a merge gets states in the order of the epochs.
    """

    def __init__(
        self, keys: Sequence[str], partials: tuple[Partial, ...], tables: list[Any], raw: Any = None
    ) -> None:
        """Take up tables of partials, and raw rows from which partials are formed."""
        self._names, self._partials = list(keys), partials
        every = [table.select(self._names) for table in [*tables, *([] if raw is None else [raw])]]
        rows = sum(table.num_rows for table in every)
        together = pa.concat_tables(every) if every else None
        numbers, self.keys = number_keys([] if together is None else together.columns, rows)
        held = sum(table.num_rows for table in tables)
        panes = [table[PANE].to_numpy() for table in tables]
        columns = [_concat(tables, partial.columns, partial.kind.types) for partial in partials]
        if raw is not None:
            inputs = {name: raw[name].combine_chunks() for name in raw.column_names}
            batch = pa.RecordBatch.from_arrays(list(inputs.values()), names=list(inputs))
            pane, key, made = form(partials, batch, numbers[held:], raw[PANE].to_numpy())
            panes, numbers = [*panes, pane], np.concatenate([numbers[:held], key])
            columns = [
                [pa.concat_arrays([one, other]) for one, other in zip(*pair, strict=True)]
                for pair in zip(columns, made, strict=True)
            ]
        self._loaded = [partial.kind.load(column) for partial, column in zip(partials, columns, strict=True)]
        self.merges = tuple(each.merge for each in self._loaded)
        pane = np.concatenate(panes) if panes else np.empty(0, np.int64)
        self.held = held
        self._counts = [*(table.num_rows for table in tables), len(pane) - held]
        self.rows = Partials(pane, numbers, tuple(each.lanes for each in self._loaded))

    def __len__(self) -> int:
        return len(self.rows.pane)

    def marked(self, fresh: Any, tables: Sequence[Any]) -> NDArray[Any]:
        """A value for every row: that of rows formed here, or that of its table."""
        return np.repeat(np.array([*tables, fresh]), self._counts)

    def combined(self, length: int, *, ordered: bool = False) -> Any:
        """A segment table with one row per node of `length` panes and key, ascending by pane.

        If it is `ordered`, panes of a node are merged in their order.
        """
        if not len(self):
            return self.table(self.rows)
        rows = self.rows.by_pane() if ordered else self.rows
        width = max(len(self.keys[0]) if self.keys else 1, int(rows.key.max()) + 1)
        base = int(rows.pane.min()) // length
        cells, at = group((rows.pane // length - base) * width + rows.key)
        lanes = tuple(
            merge.scatter(len(cells), at, lane) for merge, lane in zip(self.merges, rows.lanes, strict=True)
        )
        return self.table(Partials((cells // width + base) * length, cells % width, lanes))

    def table(self, rows: Partials) -> Any:
        """A segment table of the given rows."""
        arrays = [*self.key_columns(rows.key), pa.array(rows.pane)]
        names = [*self._names, PANE]
        for partial, columns in zip(self._partials, self.stored(rows.lanes), strict=True):
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
