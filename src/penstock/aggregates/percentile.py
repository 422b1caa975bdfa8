"""The value at a fraction of the sorted values, exactly: the values of each pane with their counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.aggregates.aggregate import NUMBER, Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.bags import bag_of, members
from penstock.aggregates.kinds import dense_rank
from penstock.aggregates.merges import Array
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns, cast_as_spark
from penstock.errors import BadAggregate
from penstock.expressions.scalar import Expression

__all__ = ["Interpolated", "percentile"]


@dataclass(frozen=True, slots=True)
class PercentileDefinition(Definition):
    """Keeps each value of a pane and key once, with its count; between two values it interpolates.

    State grows with the number of distinct values of a pane; `quantile` has a bound.
    """

    name = "percentile"
    sql_names = ("percentile",)
    numbers = {"percentile": (1, 1)}  # noqa: RUF012 -- a ClassVar of the base
    takes = (NUMBER,)
    gives = "double"
    agreement = Agreement.EXACT
    keeps_values = True
    examples = ({"p": 0.3}, {"p": 1.0})

    p: float

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A double over every number."""
        return "double"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """All percentiles of a value share one partial."""
        return Interpolated(bag_of(arguments[0], pane), self.p), pa.float64()

    def spark_sql(self, arguments: Sequence[str], _time: str) -> str:
        """Spark's own."""
        return f"percentile({arguments[0]}, {self.p}D)"


@dataclass(frozen=True)
class Interpolated:
    """Linear between the two values around the position (count - 1) * p, as Spark does it."""

    column: str
    p: float

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Null where there is no value."""
        found = members(columns[self.column])
        groups = len(columns[self.column])
        order = np.lexsort((dense_rank(found.values), found.owners))
        total = np.bincount(found.owners, weights=found.counts, minlength=groups).astype(np.int64)
        known = total > 0
        position = (total[known] - 1) * self.p
        low, high = np.floor(position), np.ceil(position)
        reached = np.cumsum(found.counts[order])
        base = (np.cumsum(total) - total)[known]
        ends = [np.searchsorted(reached, base + each.astype(np.int64), "right") for each in (low, high)]
        below, above = (_doubles(found.values.take(pa.array(order[each]))) for each in ends)
        with np.errstate(invalid="ignore", over="ignore"):
            between = below + (position - low) * (above - below)
        result = np.zeros(groups)
        result[known] = np.where((low == high) | (below == above), below, between)
        return pa.array(result, mask=~known)

    def __str__(self) -> str:
        return f"percentile({self.column}, {self.p})"


def _doubles(values: Any) -> Array:
    if pa.types.is_decimal(values.type):
        # Two for each result; Arrow's cast may miss the nearest double.
        return np.array([float(each) for each in values.to_pylist()], np.float64)
    return np.asarray(cast_as_spark(values, pa.float64()).to_numpy(zero_copy_only=False))


@defined_by(PercentileDefinition)
def percentile(expression: str, p: float, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The value at the fraction p of the sorted values, exactly, as a double; null where there is none.

    Where the position falls between two values it is interpolated, as in Spark. NaN is the largest value.
    State holds each value of a pane once; if that is too much, see ``quantile``.

    >>> str(percentile("speed", 0.95))
    'percentile(speed, p=0.95)'
    """
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise BadAggregate(f"percentile() got p={p!r}; give one number from 0 to 1")
    return modified(Aggregate(PercentileDefinition(float(p)), (expression,)), where, distinct)
