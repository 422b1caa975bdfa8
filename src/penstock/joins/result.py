"""The rows of a join's result, from pairs and from rows without a partner."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.joins.join import Join
from penstock.joins.spans import Rows

__all__ = ["Result"]


@dataclass(frozen=True)
class Result:
    """All rows of both sides in one epoch, with their times in microseconds."""

    join: Join
    left: Any
    right: Any
    left_time: Rows
    right_time: Rows

    @property
    def schema(self) -> Any:
        """The result's timestamp, then the columns of the left and of the right side."""
        fields = [self.left.schema.field(self.join.left.time).with_name(self.join.time)]
        for side, table in ((self.join.left, self.left), (self.join.right, self.right)):
            fields += [table.schema.field(stored).with_name(name) for stored, name in side.columns]
        return pa.schema([field.with_nullable(True).remove_metadata() for field in fields])

    def matched(self, left: Rows, right: Rows) -> Any:
        """Pairs; each has the time of its earlier row."""
        time = np.minimum(self.left_time[left], self.right_time[right])
        return self._table(time, self._taken(left=left), self._taken(right=right))

    def unmatched_left(self, rows: Rows) -> Any:
        """Left rows without a partner, with nulls on the right."""
        return self._table(
            self.left_time[rows], self._taken(left=rows), [None] * len(self.join.right.columns)
        )

    def unmatched_right(self, rows: Rows) -> Any:
        """Right rows without a partner, with nulls on the left."""
        return self._table(
            self.right_time[rows], [None] * len(self.join.left.columns), self._taken(right=rows)
        )

    def _taken(self, *, left: Rows | None = None, right: Rows | None = None) -> list[Any]:
        side, table, rows = (
            (self.join.left, self.left, left) if right is None else (self.join.right, self.right, right)
        )
        index = pa.array(rows)
        return [table[stored].take(index) for stored, _ in side.columns]

    def _table(self, time: Rows, left: list[Any], right: list[Any]) -> Any:
        schema = self.schema
        columns = [
            pa.nulls(len(time), field.type) if column is None else column
            for field, column in zip(
                schema, [pa.array(time).cast(schema.field(0).type), *left, *right], strict=True
            )
        ]
        return pa.Table.from_arrays(columns, schema=schema)
