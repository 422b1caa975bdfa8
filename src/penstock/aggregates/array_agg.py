"""The values themselves in event-time order, up to a limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.aggregate import Aggregate, Agreement, Definition, check_whole, defined_by
from penstock.aggregates.kinds import dense_rank
from penstock.aggregates.merges import Array
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Accumulated, Lowered, PaneColumns, arrow_of
from penstock.aggregates.pools import States
from penstock.expressions.scalar import Expression

__all__ = ["ArrayAggDefinition", "array_agg"]


@dataclass(frozen=True, slots=True)
class ArrayAggDefinition(Definition):
    """Keeps the earliest values of a pane with their times; nulls are skipped.

    Spark leaves the order open and has no limit. Here values go by event time, then by Spark's order of
    values, so that neither epochs nor channels change a list. State has to be bounded: of more than `limit`
    values the earliest stay.
    """

    name = "array_agg"
    sql_names: ClassVar[tuple[str, ...]] = ("array_agg",)
    numbers: ClassVar[Mapping[str, tuple[int, int]]] = {"array_agg": (0, 1)}
    gives = "an array of the argument's type"
    agreement = Agreement.CHOSEN
    keeps_values = True
    detail = "in the order of event time, of equal times in that of values; the first `limit` of them"
    never_null = True
    examples = ({}, {"limit": 3})

    limit: int

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """An array, empty where there is no value."""
        return given[0] and f"array<{given[0]}>"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """Rows go to the channel as they are: a combine on the map side would not make them fewer."""
        (value,) = arguments
        lists = EarliestValues(value.sql, arrow_of(value), self.limit)
        lift = Accumulated(lists, (pane.event_time(), pane.input(value)), f"{self.name}()")
        rows = f"collect_list(struct({pane.time} AS t, {value.sql} AS v))"
        partial = pane.partial(States(lists, lists.state_schema()), (rows,), lift)
        return Values(partial.columns[1]), pa.list_(arrow_of(value))

    def spark_sql(self, arguments: Sequence[str], time: str) -> str:
        """Spark's list, sorted and cut."""
        (value,) = arguments
        pairs = f"collect_list(struct({time} AS t, {value} AS v)) FILTER (WHERE {value} IS NOT NULL)"
        return f"transform(slice(array_sort({pairs}), 1, {self.limit}), pair -> pair.v)"


@dataclass(frozen=True, repr=False)
class EarliestValues:
    """Lists of (time, value), sorted and cut; two of them merge into one of the same kind."""

    sql: str
    type: Any
    limit: int
    split: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"array_agg({self.sql}, limit={self.limit})"

    def state_schema(self) -> Any:
        """One list of pairs."""
        return pa.schema([("pairs", pa.list_(pa.struct([("t", pa.int64()), ("v", self.type)])))])

    def accumulate(self, groups: Array, n: int, *columns: Any) -> Any:
        """The lists of n groups."""
        time, value = columns
        held = value.is_valid()
        at = np.asarray(groups)[held.to_numpy(zero_copy_only=False)]
        return self._lists(at, n, time.filter(held), value.filter(held))

    def merge(self, left: Any, right: Any) -> Any:
        """The list of both sides, row by row."""
        sides = [side.column(0) for side in (left, right)]
        rows = [np.repeat(np.arange(len(side)), pc.list_value_length(side)) for side in sides]
        pairs = pa.concat_arrays([side.flatten() for side in sides])
        return self._lists(np.concatenate(rows), len(left), pairs.field("t"), pairs.field("v"))

    def _lists(self, groups: Array, n: int, time: Any, value: Any) -> Any:
        """Sorted by group, time and value, and cut; n log n in the number of values."""
        when = time.to_numpy(zero_copy_only=False)
        order = np.lexsort((dense_rank(value), when, groups))
        counts = np.bincount(groups, minlength=n)
        start = np.cumsum(counts) - counts
        place = np.arange(len(order)) - np.repeat(start, counts)
        index = pa.array(order[place < self.limit])
        ends = np.cumsum(np.minimum(counts, self.limit))
        offsets = pa.array(np.r_[0, ends], pa.int32())
        schema = self.state_schema()
        pairs = pa.StructArray.from_arrays([time.take(index), value.take(index)], names=["t", "v"])
        lists = pa.ListArray.from_arrays(offsets, pairs).cast(schema.types[0])
        return pa.RecordBatch.from_arrays([lists], schema=schema)


@dataclass(frozen=True)
class Values:
    """The values of lists of (time, value)."""

    column: str

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Without their times."""
        pairs = columns[self.column]
        lengths = pc.list_value_length(pairs).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.r_[0, np.cumsum(lengths)], pa.int32())
        return pa.ListArray.from_arrays(offsets, pairs.flatten().field("v"))


@defined_by(ArrayAggDefinition)
def array_agg(
    expression: str, limit: int = 10_000, *, where: str | None = None, distinct: bool = False
) -> Aggregate:
    """The values in event-time order, equal times by value; nulls are skipped.

    Holds at most ``limit`` values of a group, the earliest. Empty where there is no value.

    >>> str(array_agg("vehicle", limit=100))
    'array_agg(vehicle, limit=100)'
    """
    check_whole("array_agg", "limit", limit, 1, 1_000_000)
    return modified(Aggregate(ArrayAggDefinition(limit), (expression,)), where, distinct)
