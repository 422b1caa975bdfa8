"""The sum of numbers; sums of panes add up, integers and decimals exactly."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.aggregates.aggregate import NUMBER, Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns, Taken, arrow_of
from penstock.expressions import types
from penstock.expressions.scalar import Expression

__all__ = ["sum", "sum_type"]


@dataclass(frozen=True, slots=True)
class SumDefinition(Definition):
    """Adds numbers; a sum that does not fit its type is an AggregateOverflow, never a wrapped number."""

    name = "sum"
    sql_names = ("sum",)
    takes = (NUMBER,)
    gives = "bigint for integers, double for floating point, ten digits wider for decimals"
    agreement = Agreement.ROUNDED

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """Spark's type of a sum."""
        (kind,) = given
        if kind is None or types.is_integer(kind):
            return kind and "bigint"
        if types.is_floating(kind):
            return "double"
        precision, scale = map(int, re.findall(r"\d+", kind))
        return f"decimal({min(precision + 10, 38)},{scale})"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """The sum itself."""
        (value,) = arguments
        type_ = sum_type(arrow_of(value))
        return Taken(pane.folded("sum", value, type_)), type_


def sum_type(type_: Any) -> Any:
    """The Arrow type of a sum.

    >>> sum_type(pa.decimal128(10, 2))
    Decimal128Type(decimal128(20, 2))
    """
    if pa.types.is_integer(type_):
        return pa.int64()
    if pa.types.is_decimal(type_):
        return pa.decimal128(min(type_.precision + 10, 38), type_.scale)
    return pa.float64()


@defined_by(SumDefinition)
def sum(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:  # noqa: A001 -- users write ps.sum
    """The sum; a bigint for integers, a double for floating point, ten digits wider for decimals.

    Null where there is no value.

    >>> str(sum("speed"))
    'sum(speed)'
    """
    return modified(Aggregate(SumDefinition(), (expression,)), where, distinct)
