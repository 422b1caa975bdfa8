"""The middle of the sorted values, exactly: the percentile at one half."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.aggregates.aggregate import NUMBER, Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.bags import bag_of
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns
from penstock.aggregates.percentile import Interpolated
from penstock.expressions.scalar import Expression

__all__ = ["median"]


@dataclass(frozen=True, slots=True)
class MedianDefinition(Definition):
    """Keeps each value of a pane and key once, with its count."""

    name = "median"
    sql_names = ("median",)
    takes = (NUMBER,)
    gives = "double"
    agreement = Agreement.EXACT
    keeps_values = True

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A double over every number."""
        return "double"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """From the partial that percentiles of the value share."""
        return Interpolated(bag_of(arguments[0], pane), 0.5), pa.float64()


@defined_by(MedianDefinition)
def median(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The value in the middle of the sorted values, of two the mean, as a double; null where there is none.

    State holds each value of a pane once; if that is too much, see ``quantile``.

    >>> str(median("speed"))
    'median(speed)'
    """
    return modified(Aggregate(MedianDefinition(), (expression,)), where, distinct)
