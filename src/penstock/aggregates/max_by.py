"""The value of the tuple with the greatest other value: the greatest pair of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from penstock.aggregates.aggregate import PLAIN, Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.kinds import ExtremeRow
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Inputs, Lowered, PaneColumns, Taken, arrow_of
from penstock.expressions.scalar import Expression

__all__ = ["MaxByDefinition", "max_by"]


@dataclass(frozen=True, slots=True)
class MaxByDefinition(Definition):
    """Keeps both values of one tuple; tuples with a null in the second are skipped.

    Spark picks any of several tuples with the greatest second value. Here it is the one that is greatest in
    the first value too, in Spark's order, where null comes before all values.
    """

    name = "max_by"
    sql_names = ("max_by",)
    takes = (PLAIN, PLAIN)
    gives = "the first argument's type"
    agreement = Agreement.CHOSEN
    ignores_repeats = True
    detail = "of several the greatest"
    extreme: ClassVar[Literal["min", "max"]] = "max"

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """The type of the value."""
        return given[0]

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """The value of the extreme pair."""
        value, by = arguments
        pair = self.pair(value.sql, by.sql)
        types = (arrow_of(by), arrow_of(value))
        lift = Inputs((pane.input(by), pane.input(value)), types)
        partial = pane.partial(ExtremeRow(self.extreme, types), (f"({pair}).b", f"({pair}).v"), lift)
        return Taken(partial.columns[1]), arrow_of(value)

    def spark_sql(self, arguments: Sequence[str], _time: str) -> str:
        """One of the values that Spark may pick."""
        return f"({self.pair(*arguments)}).v"

    def pair(self, value: str, by: str) -> str:
        """The extreme of both values in Spark SQL."""
        return f"{self.extreme}(struct({by} AS b, {value} AS v)) FILTER (WHERE {by} IS NOT NULL)"


@defined_by(MaxByDefinition)
def max_by(expression: str, by: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The value of the expression where ``by`` is greatest; of several tuples the greatest value.

    Tuples with a null in ``by`` are skipped; a null in the expression counts as the least value.

    >>> str(max_by("vehicle", "speed"))
    'max_by(vehicle, speed)'
    """
    return modified(Aggregate(MaxByDefinition(), (expression, by)), where, distinct)
