"""The first rows of a group by some order, a bounded list that merges: what `top` keeps of each pane."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.aggregate import ANYTHING, Aggregate, Agreement, Definition
from penstock.aggregates.kinds import dense_rank
from penstock.aggregates.merges import Array
from penstock.aggregates.partials import Accumulated, Lowered, PaneColumns, arrow_of
from penstock.aggregates.pools import States
from penstock.expressions.scalar import Expression
from penstock.expressions.schema import quoted
from penstock.expressions.types import struct_of
from penstock.state.keys import normal

__all__ = ["RANK", "top_rows"]

RANK = "rank"


def top_rows(
    n: int, by: Sequence[tuple[str, bool]], columns: Sequence[str], *, ties: bool = False
) -> Aggregate:
    """The first n rows as an array of structs of these columns and a rank.

    ``by`` are expressions, each with whether it descends. Rows that are equal in all of them go by event
    time, then by the values of the columns, so that neither epochs nor channels change the result. With
    ``ties`` they share a rank instead, and all rows of a rank up to n are there.
    """
    definition = TopRowsDefinition(n, tuple(down for _, down in by), tuple(columns), ties)
    return Aggregate(definition, (*(text for text, _ in by), *map(quoted, columns)))


@dataclass(frozen=True, slots=True)
class TopRowsDefinition(Definition):
    """Keeps n rows of each pane and key, in Spark's order: nulls are the least."""

    name = "top_rows"
    takes = (ANYTHING,)
    variadic = True
    gives = "an array of rows"
    agreement = Agreement.CHOSEN
    detail = "rows that are equal in the order go by event time, then by their content"
    keeps_values = True

    n: int
    descending: tuple[bool, ...]
    names: tuple[str, ...]
    ties: bool = False

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """An array of structs; a rank is an int, as that of ROW_NUMBER()."""
        kinds = given[len(self.descending) :]
        if None in kinds:
            return None
        fields = zip(self.names, (kind for kind in kinds if kind is not None), strict=True)
        return f"array<{struct_of([*fields, (RANK, 'int')])}>"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """Rows go to the channel as they are; each expression once."""
        kept = {each.sql: each for each in arguments}
        places = {sql: place for place, sql in enumerate(kept)}
        order = tuple(places[each.sql] for each in arguments[: len(self.descending)])
        types = tuple(arrow_of(each) for each in kept.values())
        lists = FirstRows(self.n, tuple(zip(order, self.descending, strict=True)), types, self.ties)
        lift = Accumulated(lists, (pane.event_time(), *map(pane.input, kept.values())), "the first rows")
        values = "".join(f", {sql} AS v{place}" for sql, place in places.items())
        rows = f"collect_list(struct({pane.time} AS t{values}))"
        partial = pane.partial(States(lists, lists.state_schema()), (rows,), lift)
        shown = [each.sql for each in arguments[len(self.descending) :]]
        fields = [
            (name, places[sql], types[places[sql]]) for name, sql in zip(self.names, shown, strict=True)
        ]
        finish = Ranked(partial.columns[1], tuple(fields))
        return finish, finish.type


@dataclass(frozen=True)
class FirstRows:
    """Lists of rows with their times, sorted and cut; two of them merge into one of the same kind.

    `order` has the place of a value among those of a row, and whether it descends.
    """

    n: int
    order: tuple[tuple[int, bool], ...]
    types: tuple[Any, ...]
    ties: bool = False
    split: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"first_rows(n={self.n}{', ties' if self.ties else ''})"

    def state_schema(self) -> Any:
        """One list of rows, each with its rank."""
        values = [(f"v{place}", type_) for place, type_ in enumerate(self.types)]
        return pa.schema([("rows", pa.list_(pa.struct([("t", pa.int64()), *values, (RANK, pa.int32())])))])

    def accumulate(self, groups: Array, n: int, *columns: Any) -> Any:
        """The lists of n groups."""
        values = [each.cast(type_) for each, type_ in zip(columns[1:], self.types, strict=True)]
        return self._lists(np.asarray(groups), n, [columns[0], *values])

    def merge(self, left: Any, right: Any) -> Any:
        """The list of both sides, row by row."""
        sides = [side.column(0) for side in (left, right)]
        at = [np.repeat(np.arange(len(side)), pc.list_value_length(side)) for side in sides]
        rows = pa.concat_arrays([side.flatten() for side in sides])
        return self._lists(np.concatenate(at), len(left), rows.flatten()[:-1])

    def _lists(self, groups: Array, n: int, columns: list[Any]) -> Any:
        """Sorted by group, order, time and content, and cut; n log n in the number of rows.

        Rows are cut by the order alone at first: to compare the contents of all would cost far more.
        """
        by = {place: _ranked(columns[1 + place]) for place in {place for place, _ in self.order}}
        wanted = [~by[place] if down else by[place] for place, down in self.order]
        order = np.lexsort((*reversed(wanted), groups))
        near = order[_numbers(groups[order], [each[order] for each in wanted], ties=True) <= self.n]
        if len(near) < len(groups):
            groups, wanted = groups[near], [each[near] for each in wanted]
            columns = [each.take(pa.array(near)) for each in columns]
        time, *values = columns
        ranks = [_ranked(each) for each in values]
        when = time.to_numpy(zero_copy_only=False)
        order = np.lexsort((*reversed(ranks), when, *reversed(wanted), groups))
        numbers = _numbers(groups[order], [each[order] for each in wanted], ties=self.ties)
        kept = numbers <= self.n
        index = pa.array(order[kept])
        counts = np.bincount(groups[order][kept], minlength=n)
        offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int32())
        schema = self.state_schema()
        fields = [*(each.take(index) for each in columns), pa.array(numbers[kept], pa.int32())]
        rows = pa.StructArray.from_arrays(fields, fields=list(schema.types[0].value_type))
        return pa.RecordBatch.from_arrays(
            [pa.ListArray.from_arrays(offsets, rows).cast(schema.types[0])], schema=schema
        )


def _numbers(groups: Array, wanted: list[Array], *, ties: bool) -> Array:
    """The rank of each of the sorted rows in its group; with ties, equal rows share it."""
    place = np.arange(len(groups))
    starts = np.append(True, groups[1:] != groups[:-1])[: len(groups)]
    first = np.maximum.accumulate(np.where(starts, place, 0))
    if ties:
        for each in wanted:
            starts[1:] |= each[1:] != each[:-1]
        place = np.maximum.accumulate(np.where(starts, place, 0))
    return np.asarray(place - first + 1)


def _ranked(column: Any) -> Array:
    """Numbers in the order of values; nested values, which have no order here, go by their text."""
    if pa.types.is_nested(column.type):
        return dense_rank(pa.array([None if each is None else repr(each) for each in column.to_pylist()]))
    return dense_rank(normal(column))


@dataclass(frozen=True)
class Ranked:
    """The rows of lists with their ranks; a field has its name, its place among values, and its type."""

    column: str
    fields: tuple[tuple[str, int, Any], ...]

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Without their times and the values that are only for the order."""
        lists = columns[self.column]
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        _, *values, ranks = lists.flatten().flatten()
        chosen = [*(values[place] for _, place, _ in self.fields), ranks]
        rows = pa.StructArray.from_arrays(chosen, fields=list(self.type.value_type))
        return pa.ListArray.from_arrays(offsets, rows).cast(self.type)

    @property
    def type(self) -> Any:
        """Rows with a rank."""
        fields = [(name, type_) for name, _, type_ in self.fields]
        return pa.list_(pa.struct([*fields, (RANK, pa.int32())]))

    def __str__(self) -> str:
        return f"{self.column} with ranks"
