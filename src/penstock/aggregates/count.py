"""The number of tuples, or of values that are not null; counts of panes add up."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from penstock.aggregates.aggregate import ANYTHING, Aggregate, Agreement, Definition, check_count, defined_by
from penstock.aggregates.count_distinct import count_distinct
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns, Taken
from penstock.errors import BadAggregate, BadExpression
from penstock.expressions.parsing import Tree, render
from penstock.expressions.scalar import Expression

__all__ = ["count"]


@dataclass(frozen=True, slots=True)
class CountDefinition(Definition):
    """Counts tuples; in SQL also count(*), and count(DISTINCT x, …), which is `count_distinct`."""

    name = "count"
    sql_names = ("count",)
    takes = (ANYTHING,)
    gives = "bigint"
    agreement = Agreement.EXACT
    never_null = True
    reads_distinct = True

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A bigint over whatever is counted."""
        return "bigint"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """The count itself."""
        return Taken(pane.counted(*arguments)), pa.int64()

    @classmethod
    def of_sql(cls, name: str, arguments: Sequence[Tree]) -> Aggregate:
        """The forms that no other aggregate has."""
        if not arguments:
            raise BadExpression("count() got nothing to count; write count(*) for the number of tuples")
        if isinstance(arguments[0], exp.Star):
            return count()
        if isinstance(arguments[0], exp.Distinct):
            return count_distinct(*map(render, arguments[0].expressions))
        check_count(name, arguments, 1, 1)
        return count(render(arguments[0]))


@defined_by(CountDefinition)
def count(expression: str | None = None, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The number of tuples, or of those for which the expression is not null.

    >>> str(count()), str(count("speed"))
    ('count()', 'count(speed)')
    """
    if not distinct:
        return modified(
            Aggregate(CountDefinition(), () if expression is None else (expression,)), where, distinct
        )
    if expression is None:
        raise BadAggregate("count() got distinct=True without an expression; give one, such as 'vehicle'")
    return count_distinct(expression, where=where)
