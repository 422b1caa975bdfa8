"""The arithmetic mean, from a sum and a count that other aggregates can share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.aggregate import NUMBER, Aggregate, Definition, defined_by
from penstock.aggregates.partials import Lowered, PaneColumns, arrow_of
from penstock.aggregates.sum import sum_type
from penstock.expressions.scalar import Expression

__all__ = ["avg"]


@dataclass(frozen=True, slots=True)
class AvgDefinition(Definition):
    """Divides the sum by the count; decimals are added exactly before."""

    name = "avg"
    sql_names = ("avg", "mean")
    takes = (NUMBER,)
    gives = "double"
    differs = "a double for decimals too, where Spark gives a decimal"

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A double over every number."""
        return "double"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """Integers are added as doubles, as Spark does it."""
        (value,) = arguments
        exact = pa.types.is_decimal(arrow_of(value))
        total = pane.folded("sum", value, sum_type(arrow_of(value)) if exact else pa.float64())
        return Average(total, pane.counted(value)), pa.float64()

    def spark_sql(self, arguments: Sequence[str], _time: str) -> str:
        """Spark's mean as a double."""
        return f"cast(avg({arguments[0]}) AS double)"


@dataclass(frozen=True)
class Average:
    """Sum over count; null where nothing was counted."""

    total: str
    count: str

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """In double precision."""
        # The sum is null where the count is zero, so no division by zero is looked at.
        total = columns[self.total].cast(pa.float64())
        return pc.divide(total, columns[self.count].cast(pa.float64()))


@defined_by(AvgDefinition)
def avg(expression: str) -> Aggregate:
    """The arithmetic mean as a double; null where there is no value.

    >>> str(avg("speed"))
    'avg(speed)'
    """
    return Aggregate(AvgDefinition(), (expression,))
