"""The least and the greatest value; extremes of panes are folded like values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from penstock.aggregates.aggregate import Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns, Taken, arrow_of
from penstock.expressions.scalar import Expression

__all__ = ["MinDefinition", "min"]


@dataclass(frozen=True, slots=True)
class MinDefinition(Definition):
    """Folds values in Spark's order: nulls are skipped, NaN is greater than every number."""

    name = "min"
    sql_names = ("min",)
    gives = "the argument's type"
    agreement = Agreement.EXACT
    ignores_repeats = True
    extreme: ClassVar[Literal["min", "max"]] = "min"

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """The type of the value."""
        return given[0]

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """The extreme itself."""
        (value,) = arguments
        return Taken(pane.folded(self.extreme, value, arrow_of(value))), arrow_of(value)


@defined_by(MinDefinition)
def min(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:  # noqa: A001 -- users write ps.min
    """The least value; null where there is no value.

    >>> str(min("speed"))
    'min(speed)'
    """
    return modified(Aggregate(MinDefinition(), (expression,)), where, distinct)
