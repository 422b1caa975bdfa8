"""Partials of panes and keys: what channels of an aggregation are sent, form, merge and keep ([004] §2.4).

Each tuple is aggregated once, into the partial of its pane and key. Partials are formed on the map side, or
in a channel from raw rows; both give the same columns.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.aggregates.partials import Partial
from penstock.distribution import Distribution, by_key
from penstock.operators.aggregate_columns import WindowResult, combine_of, received
from penstock.operators.exchange import KEY, Bucket, Exchange, Form, SqlColumn
from penstock.operators.kernel import Kernel
from penstock.operators.windows.block import PaneBlock
from penstock.operators.windows.sliding import Closed
from penstock.routing import PaneGrid
from penstock.state.pane_table import PANE

__all__ = ["PaneKernel"]


@dataclass(frozen=True)
class PaneKernel(Kernel):
    """An aggregation whose channels get rows or partials by pane and key.

    `keys` are named as in the result; `inputs` are the columns of raw rows that partials are formed from.
    """

    grid: PaneGrid
    keys: tuple[SqlColumn, ...]
    inputs: tuple[SqlColumn, ...]
    partial_columns: tuple[Partial, ...]
    results: tuple[WindowResult, ...]

    # What it sends.

    @property
    def forms(self) -> tuple[Form, ...]:
        """Where partials may be formed, the better guess first: on the map side, or in the channel."""
        if any(partial.lift is None for partial in self.partial_columns):
            return ("combined",)
        return ("rows",) if self.ordered else ("combined", "rows")

    @property
    def splits(self) -> bool:
        """Whether rows of one key may be formed in several channels: by user code, all of which allows it."""
        own = [each.accumulated.aggregate for each in self.partial_columns if each.accumulated]
        return "rows" in self.forms and bool(own) and not self.ordered

    @property
    def distribution(self) -> Distribution:
        """By the keys."""
        return by_key(tuple(self._names), mergeable=self.splits, slices=PANE)

    @property
    def ordered(self) -> bool:
        """Whether partials have to be merged in the order of panes: some user code does not say otherwise."""
        own = [each.accumulated.aggregate for each in self.partial_columns if each.accumulated]
        return not all(each.split for each in own)

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Rows or partials by their keys, or by their windows."""
        keys = tuple(
            SqlColumn(name, key.sql, key.type) for name, key in zip(self._names, self.keys, strict=True)
        )
        return (
            Exchange(
                (*keys, *self.inputs),
                self.distribution,
                bucket=Bucket(PANE, self.grid.offset, self.grid.pane),
                combine=combine_of(self.forms, self.partial_columns),
            ),
        )

    # What a channel forms and merges.

    def combined(self, tables: list[Any], length: int) -> Any:
        """One row for each key and node of `length` panes."""
        return self._block(tables).combined(length, ordered=self.ordered)

    @property
    def partials(self) -> Any:
        """The columns of a segment."""
        keys = [(name, key.type) for name, key in zip(self._names, self.keys, strict=True)]
        columns = [
            pair
            for partial in self.partial_columns
            for pair in zip(partial.columns, partial.kind.types, strict=True)
        ]
        return pa.schema([*keys, (PANE, pa.int64()), *columns])

    def form(self, rows: Any) -> Any:
        """The partials of raw rows, as a segment holds them."""
        block = self._block([], rows)
        return block.table(block.rows)

    def merge(self, partials: Any) -> Any:
        """One partial for each pane and key."""
        return self.combined([partials], 1)

    def received(self, combined: Any) -> Any:
        """What Spark has combined, with the lists of rows that it collected accumulated."""
        return received(self.partial_columns, combined, self.partials)

    def _columns(self, block: PaneBlock, closed: Closed) -> dict[str, Any]:
        """The partials of closed windows by the names of their columns."""
        columns: dict[str, Any] = {}
        for partial, stored in zip(self.partial_columns, block.stored(closed.lanes), strict=True):
            columns.update(zip(partial.columns, stored, strict=True))
        return columns

    def _block(self, tables: list[Any], raw: Any = None) -> PaneBlock:
        return PaneBlock(self._names, self.partial_columns, tables, raw)

    @property
    def _labels(self) -> dict[str, str]:
        """The columns of state in words."""
        labels = {name: key.name for name, key in zip(self._names, self.keys, strict=True)}
        for partial in self.partial_columns:
            labels |= dict(zip(partial.columns, partial.texts, strict=True))
        return labels

    @property
    def _names(self) -> list[str]:
        return [KEY.format(place) for place in range(len(self.keys))]
