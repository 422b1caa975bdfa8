"""Whether a condition holds for all tuples; conditions of panes are folded like those of tuples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from penstock.aggregates.aggregate import BOOLEAN, Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.kinds import Operation
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns, Taken
from penstock.expressions.scalar import Expression

__all__ = ["BoolAndDefinition", "bool_and"]


@dataclass(frozen=True, slots=True)
class BoolAndDefinition(Definition):
    """Folds conditions; nulls are skipped."""

    name = "bool_and"
    sql_names: ClassVar[tuple[str, ...]] = ("bool_and", "every")
    takes = (BOOLEAN,)
    gives = "boolean"
    agreement = Agreement.EXACT
    ignores_repeats = True
    operation: ClassVar[Operation] = "bool_and"

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A boolean."""
        return "boolean"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """The folded condition itself."""
        return Taken(pane.folded(self.operation, arguments[0], pa.bool_())), pa.bool_()


@defined_by(BoolAndDefinition)
def bool_and(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """Whether the condition is true wherever it is not null; null where it always is.

    >>> str(bool_and("speed > 0"))
    'bool_and(speed > 0)'
    """
    return modified(Aggregate(BoolAndDefinition(), (expression,)), where, distinct)
