"""The result rows of a join, from pairs and from unmatched rows."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from penstock.operators.joins.inputs import SideRows
from penstock.operators.joins.spans import Rows
from penstock.operators.joins.spec import JoinSpec

__all__ = ["JoinResult", "result_schema"]


def result_schema(join: JoinSpec, left: Any, right: Any) -> Any:
    """The Arrow schema of a join's result, from the schemas of both sides: time, keys, left, right.

    >>> from penstock.operators.joins.spec import Side, Within
    >>> rows = pa.schema({"t": pa.timestamp("us", "UTC"), "caller": pa.int32(), "cell": pa.string()})
    >>> side = Side("t", keys=("caller",), columns=(("cell", "first"),))
    >>> again = Side("t", keys=("caller",), columns=(("cell", "second"),))
    >>> join = JoinSpec(side, again, Within(5), (pa.int64(),), time="t", key_names=("caller",))
    >>> [f"{field.name} {field.type}" for field in result_schema(join, rows, rows)]
    ['t timestamp[us, tz=UTC]', 'caller int64', 'first string', 'second string']
    """
    fields = [left.field(join.left.time).with_name(join.time)]
    if join.key_names:
        fields += [pa.field(name, type_) for name, type_ in zip(join.key_names, join.key_types, strict=True)]
    for side, schema in ((join.left, left), (join.right, right)):
        fields += [schema.field(stored).with_name(name) for stored, name in side.columns]
    return pa.schema([field.with_nullable(True).remove_metadata() for field in fields])


@dataclass(frozen=True)
class JoinResult:
    """Makes result rows from the rows of both sides in one epoch."""

    join: JoinSpec
    left: SideRows
    right: SideRows

    @cached_property
    def schema(self) -> Any:
        """The timestamp, the keys, then the columns of the left and of the right side."""
        return result_schema(self.join, self.left.rows.schema, self.right.rows.schema)

    def matched(self, left: Rows, right: Rows, time: Rows | None = None) -> Any:
        """Pairs with the key of the left row, and this time or the one that the join says."""
        if time is None:
            time = self._pair_time(self.left.time[left], self.right.time[right])
        given = self._given(self.left, left), self._given(self.right, right)
        return self._table(time, self._keys(self.left, left), *given)

    def left_alone(self, rows: Rows, time: Rows | None = None) -> Any:
        """Left rows, with nulls on the right, and this time or their own."""
        nothing = [None] * len(self.join.right.columns)
        time = self.left.time[rows] if time is None else time
        return self._table(time, self._keys(self.left, rows), self._given(self.left, rows), nothing)

    def right_alone(self, rows: Rows, time: Rows | None = None) -> Any:
        """Right rows, with nulls on the left, and this time or their own."""
        nothing = [None] * len(self.join.left.columns)
        time = self.right.time[rows] if time is None else time
        return self._table(time, self._keys(self.right, rows), nothing, self._given(self.right, rows))

    def _pair_time(self, left: Rows, right: Rows) -> Rows:
        match self.join.times:
            case "earliest":
                return np.minimum(left, right)
            case "latest":
                return np.maximum(left, right)
            case "left":
                return left
            case "right":
                return right
            case _:
                assert_never(self.join.times)

    def _keys(self, side: SideRows, rows: Rows) -> list[Any]:
        if not self.join.key_names:
            return []
        found = side.rows.taken(side.side.keys, rows)
        return [each.cast(type_) for each, type_ in zip(found, self.join.key_types, strict=True)]

    def _given(self, side: SideRows, rows: Rows) -> list[Any]:
        return side.rows.taken([stored for stored, _ in side.side.columns], rows)

    def _table(self, time: Rows, keys: list[Any], left: list[Any], right: list[Any]) -> Any:
        stamps = pa.array(time).cast(self.schema.field(0).type)
        columns = [
            pa.nulls(len(time), field.type) if column is None else column
            for field, column in zip(self.schema, [stamps, *keys, *left, *right], strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)
