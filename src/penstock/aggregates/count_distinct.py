"""How many distinct values there are, exactly: the set of values of each pane."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.aggregate import Aggregate, Agreement, Definition, Parameter, check_count, defined_by
from penstock.aggregates.partials import Lift, Lowered, PaneColumns, arrow_of
from penstock.aggregates.sets import Sets
from penstock.errors import BadAggregate
from penstock.expressions.parsing import Tree, render
from penstock.expressions.scalar import Expression

__all__ = ["count_distinct"]

_COMPARABLE: Final = Parameter(
    "values that can be compared", lambda type_: "map<" not in type_, "take its keys or a value of it"
)


@dataclass(frozen=True, slots=True)
class CountDistinctDefinition(Definition):
    """Keeps each value once for a pane and key; tuples with a null among the values are left out.

    State grows with the number of distinct values of a pane; `approx_count_distinct` has a bound.
    """

    name = "count_distinct"
    sql_names = ("count_distinct",)
    takes = (_COMPARABLE,)
    variadic = True
    gives = "bigint"
    agreement = Agreement.EXACT
    keeps_values = True
    never_null = True

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A bigint over whatever is counted."""
        return "bigint"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """Spark collects the sets of its rows, or a row is a set of one."""
        lift = _OfOneRow(tuple(map(pane.input, arguments)), tuple(map(arrow_of, arguments)))
        if len(arguments) == 1:
            combine = f"collect_set({arguments[0].sql})"
        else:
            joint = ", ".join(f"{each.sql} AS v{place}" for place, each in enumerate(arguments))
            known = " AND ".join(f"{each.sql} IS NOT NULL" for each in arguments)
            combine = f"collect_set(struct({joint})) FILTER (WHERE {known})"
        return Sizes(pane.partial(Sets(lift.element), (combine,), lift).name), pa.int64()

    def spark_sql(self, arguments: Sequence[str], _time: str) -> str:
        """Spark's own."""
        return f"count(DISTINCT {', '.join(arguments)})"

    @classmethod
    def of_sql(cls, name: str, arguments: Sequence[Tree]) -> Aggregate:
        """Any number of values, but one at least."""
        check_count(name, arguments, 1, 100)
        return count_distinct(*map(render, arguments))


@dataclass(frozen=True)
class Sizes:
    """How many members the sets have."""

    column: str

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Zero where there is none."""
        return pc.list_value_length(columns[self.column]).fill_null(0).cast(pa.int64())

    def __str__(self) -> str:
        return f"size({self.column})"


@dataclass(frozen=True)
class _OfOneRow(Lift):
    """The set of the value of one row, or of its values together."""

    inputs: tuple[str, ...]
    kinds: tuple[Any, ...]

    @property
    def element(self) -> Any:
        """The type of a member."""
        if len(self.kinds) == 1:
            return self.kinds[0]
        return pa.struct([(f"v{place}", kind) for place, kind in enumerate(self.kinds)])

    def columns(self, rows: Any) -> list[Any]:
        """No set where a value is null."""
        values = [rows[name].cast(kind) for name, kind in zip(self.inputs, self.kinds, strict=True)]
        absent = np.zeros(rows.num_rows, np.bool_)
        for each in values:
            absent |= each.is_null().to_numpy(zero_copy_only=False)
        member = (
            values[0] if len(values) == 1 else pa.StructArray.from_arrays(values, fields=list(self.element))
        )
        held = np.flatnonzero(~absent)
        ends = np.cumsum(~absent)
        offsets = pa.array(np.append(0, ends).astype(np.int32), mask=np.append(absent, False))
        return [pa.ListArray.from_arrays(offsets, member.take(pa.array(held))).cast(pa.list_(self.element))]


@defined_by(CountDistinctDefinition)
def count_distinct(expression: str, *more: str) -> Aggregate:
    """How many distinct values there are, exactly; with several expressions, how many distinct combinations.

    Tuples with a null in one of the expressions are left out; an empty text is a value. All NaNs are one
    value, and so are both zeros. State holds each value of a pane once; if that is too much, see
    ``approx_count_distinct``.

    >>> str(count_distinct("vehicle")), str(count_distinct("vehicle", "lane"))
    ('count_distinct(vehicle)', 'count_distinct(vehicle, lane)')
    """
    for each in (expression, *more):
        if not isinstance(each, str):
            raise BadAggregate(
                f"count_distinct() got {each!r}; give SQL texts such as 'vehicle'. It is exact and has no "
                "options; the estimate is approx_count_distinct()"
            )
    return Aggregate(CountDistinctDefinition(), (expression, *more))
