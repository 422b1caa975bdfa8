"""The first value by event time: the least pair of time and value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from penstock.aggregates.aggregate import Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.kinds import ExtremeRow
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Inputs, Lowered, PaneColumns, Taken, arrow_of
from penstock.expressions.scalar import Expression

__all__ = ["FirstDefinition", "first"]


@dataclass(frozen=True, slots=True)
class FirstDefinition(Definition):
    """Keeps the time and the value of one tuple; nulls are skipped."""

    name = "first"
    sql_names = ("first", "first_value")
    gives = "the argument's type"
    agreement = Agreement.CHOSEN
    ignores_repeats = True
    detail = "that of the least event time, of several the least; nulls are skipped"
    extreme: ClassVar[Literal["min", "max"]] = "min"

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """The type of the value."""
        return given[0]

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """The value of the extreme pair."""
        (value,) = arguments
        row = f"struct({pane.time} AS t, {value.sql} AS v)"
        pair = f"{self.extreme}({row}) FILTER (WHERE {value.sql} IS NOT NULL)"
        types = (pa.int64(), arrow_of(value))
        lift = Inputs((pane.event_time(), pane.input(value)), types)
        partial = pane.partial(ExtremeRow(self.extreme, types, 1), (f"({pair}).t", f"({pair}).v"), lift)
        return Taken(partial.columns[1]), arrow_of(value)

    def spark_sql(self, arguments: Sequence[str], time: str) -> str:
        """Spark's first() goes by arrival; by event time it is the extreme of pairs."""
        (value,) = arguments
        row = f"struct({time} AS t, {value} AS v)"
        return f"({self.extreme}({row}) FILTER (WHERE {value} IS NOT NULL)).v"


@defined_by(FirstDefinition)
def first(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The value with the least event time; of several the least value; nulls are skipped.

    >>> str(first("speed"))
    'first(speed)'
    """
    return modified(Aggregate(FirstDefinition(), (expression,)), where, distinct)
