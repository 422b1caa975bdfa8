"""The population covariance of two numbers, from the same partial as their correlation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isinf, prod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.aggregates.aggregate import NUMBER, Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.corr import joint_moments
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns
from penstock.expressions.scalar import Expression

__all__ = ["CovarPopDefinition", "covar_pop"]


@dataclass(frozen=True, slots=True)
class CovarPopDefinition(Definition):
    """Products of deviations over the count; pairs with a null are skipped."""

    name = "covar_pop"
    sql_names: ClassVar[tuple[str, ...]] = ("covar_pop",)
    takes = (NUMBER, NUMBER)
    gives = "double"
    agreement = Agreement.ROUNDED
    least: ClassVar[int] = 1

    def result_type(self, _given: Sequence[str | None]) -> str:
        """A double over every number."""
        return "double"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """From the joint moments."""
        columns = joint_moments(arguments, pane)
        return Covariance(columns[0], columns[5], self.least), pa.float64()

    def estimates(self, columns: Sequence[Sequence[Any]]) -> bool:
        """Where products leave the range of a double, Spark gives NaN or infinity by the order of rows."""
        pairs = [pair for pair in zip(*columns, strict=True) if None not in pair]
        reach = prod(
            max((abs(float(each)) for each in side), default=0.0) for side in zip(*pairs, strict=True)
        )
        return isinf(reach * len(pairs) * 4)

    def measured_error(self, found: Any, columns: Sequence[Sequence[Any]]) -> float:
        """None, as long as it shows."""
        pairs = [pair for pair in zip(*columns, strict=True) if None not in pair]
        shows = found is None if len(pairs) < self.least else not isfinite(found)
        return 0.0 if shows else inf


@dataclass(frozen=True)
class Covariance:
    """Products of deviations over the degrees of freedom; null for fewer than `least` pairs."""

    count: str
    products: str
    least: int

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """From the joint moments."""
        count, products = (
            columns[each].to_numpy(zero_copy_only=False) for each in (self.count, self.products)
        )
        known = count >= self.least
        value = np.divide(products, count - self.least + 1, out=np.zeros(len(count)), where=known)
        return pa.array(value, mask=~known)


@defined_by(CovarPopDefinition)
def covar_pop(expression: str, other: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The population covariance as a double; pairs with a null are skipped. Null where there is no pair.

    >>> str(covar_pop("speed", "length"))
    'covar_pop(speed, length)'
    """
    return modified(Aggregate(CovarPopDefinition(), (expression, other)), where, distinct)
