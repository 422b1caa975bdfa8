"""How many distinct values there are, exactly: the set of values of each pane."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.aggregate import Aggregate, Agreement, Definition, check_count, defined_by
from penstock.aggregates.approx_count_distinct import approx_count_distinct
from penstock.aggregates.modifiers import COMPARABLE, modified
from penstock.aggregates.partials import Lowered, PaneColumns, arrow_of
from penstock.aggregates.sets import OfOneRow, Sets, collected_set
from penstock.errors import BadAggregate
from penstock.expressions.parsing import Tree, render
from penstock.expressions.scalar import Expression

__all__ = ["count_distinct"]


@dataclass(frozen=True, slots=True)
class CountDistinctDefinition(Definition):
    """Keeps each value once for a pane and key; tuples with a null among the values are left out.

    State grows with the number of distinct values of a pane; `approx_count_distinct` has a bound.
    """

    name = "count_distinct"
    sql_names = ("count_distinct",)
    takes = (COMPARABLE,)
    variadic = True
    gives = "bigint"
    agreement = Agreement.EXACT
    keeps_values = True
    never_null = True
    ignores_repeats = True

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A bigint over whatever is counted."""
        return "bigint"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """Spark collects the sets of its rows, or a row is a set of one."""
        lift = OfOneRow(tuple(map(pane.input, arguments)), tuple(map(arrow_of, arguments)))
        combine = collected_set([each.sql for each in arguments])
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


@defined_by(CountDistinctDefinition)
def count_distinct(expression: str, *more: str, exact: bool = True, where: str | None = None) -> Aggregate:
    """How many distinct values there are, exactly; with several expressions, how many distinct combinations.

    Tuples with a null in one of the expressions are left out; an empty text is a value. All NaNs are one
    value, and so are both zeros. State holds each value of a pane once; if that is too much, ``exact=False``
    gives the estimate of ``approx_count_distinct``.

    >>> str(count_distinct("vehicle")), str(count_distinct("vehicle", "lane"))
    ('count_distinct(vehicle)', 'count_distinct(vehicle, lane)')
    """
    for each in (expression, *more):
        if not isinstance(each, str):
            raise BadAggregate(
                f"count_distinct() got {each!r}; give SQL texts such as 'vehicle', and exact=False for an "
                "estimate"
            )
    if exact:
        return modified(Aggregate(CountDistinctDefinition(), (expression, *more)), where, distinct=False)
    if more:
        raise BadAggregate(
            f"count_distinct() got {1 + len(more)} expressions and exact=False; an estimate takes one: give "
            "a single value that tells them apart"
        )
    return approx_count_distinct(expression, where=where)
