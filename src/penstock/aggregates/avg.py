"""The arithmetic mean, from a sum and a count that other aggregates can share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.aggregate import NUMBER, Aggregate, Agreement, Definition, defined_by
from penstock.aggregates.merges import Array
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns, arrow_of
from penstock.aggregates.sum import sum_type
from penstock.errors import AggregateOverflow
from penstock.expressions import types
from penstock.expressions.scalar import Expression

__all__ = ["avg"]

_DIGITS: Final = 38  # that a decimal has at most
_WIDE: Final = Context(prec=120)


@dataclass(frozen=True, slots=True)
class AvgDefinition(Definition):
    """Divides the sum by the count; decimals are added exactly before, and rounded once."""

    name = "avg"
    sql_names = ("avg", "mean")
    takes = (NUMBER,)
    gives = "double, for decimals four digits wider, all of them in the fraction"
    agreement = Agreement.ROUNDED

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """Spark's type of a mean."""
        (kind,) = given
        if kind is None:
            return None
        return (
            "double"
            if not kind.startswith("decimal")
            else types.from_arrow(mean_type(types.arrow_type(kind)))
        )

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """Integers are added as doubles, as Spark does it."""
        (value,) = arguments
        type_ = mean_type(arrow_of(value))
        exact = pa.types.is_decimal(type_)
        total = pane.folded("sum", value, sum_type(arrow_of(value)) if exact else pa.float64())
        return Average(total, pane.counted(value), type_), type_


def mean_type(type_: Any) -> Any:
    """The Arrow type of a mean.

    >>> mean_type(pa.decimal128(10, 2)), mean_type(pa.int32())
    (Decimal128Type(decimal128(14, 6)), DataType(double))
    """
    if not pa.types.is_decimal(type_):
        return pa.float64()
    return pa.decimal128(min(type_.precision + 4, _DIGITS), min(type_.scale + 4, _DIGITS))


@dataclass(frozen=True)
class Average:
    """Sum over count; null where nothing was counted."""

    total: str
    count: str
    type: Any

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """In double precision, or in decimals with the last digit rounded half away from zero."""
        total, count = columns[self.total], columns[self.count]
        if pa.types.is_decimal(self.type):
            return _decimal_mean(total, count, self.type)
        # The sum is null where the count is zero, so no division by zero is looked at.
        return pc.divide(total, count.cast(pa.float64()))

    def __str__(self) -> str:
        return f"{self.total} / {self.count}"


def _decimal_mean(total: Any, count: Any, type_: Any) -> Any:
    """Quotients of whole numbers in the unit of the result's last digit."""
    absent = total.is_null().to_numpy(zero_copy_only=False)
    raised = 10 ** (type_.scale - total.type.scale)
    units = total.cast(pa.decimal128(38, total.type.scale)).fill_null(Decimal(0))
    counts = np.maximum(count.to_numpy(zero_copy_only=False), 1)
    largest = pc.max(pc.abs(units)).as_py()
    if largest is None or _whole(largest, units.type.scale) * raised < 2**62:
        words = np.frombuffer(units.buffers()[1], np.int64)[2 * units.offset :: 2][: len(units)]
        size = np.abs(words) * raised
        quotient, rest = np.divmod(size, counts)
        rounded = np.sign(words) * (quotient + (rest >= counts - rest))
        means = _decimals(rounded, type_.scale)
    else:
        pairs = zip(units.to_pylist(), counts.tolist(), strict=True)
        means = pa.array([_mean(value, each, type_) for value, each in pairs], pa.decimal128(38, type_.scale))
    # A mean that small fits, since the sum did.
    return pc.if_else(pa.array(absent), pa.scalar(None, means.type), means).cast(type_)


def _decimals(units: Array, scale: int) -> Any:
    """Whole numbers of the last digit as decimals, without a step through Python."""
    words = np.empty((len(units), 2), np.int64)
    words[:, 0], words[:, 1] = units, units >> 63
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(units), [None, pa.py_buffer(words)])


def _mean(value: Decimal, count: int, type_: Any) -> Decimal:
    """Rounded once, half away from zero."""
    units = _whole(value, type_.scale)
    quotient, rest = divmod(abs(units), count)
    size = quotient + (2 * rest >= count)
    found = size if units >= 0 else -size
    if abs(found) >= 10**type_.precision:
        raise _overflow(type_)
    return Decimal(found).scaleb(-type_.scale, _WIDE)


def _whole(value: Decimal, scale: int) -> int:
    """How often the last digit of a scale is in the value."""
    return int(value.scaleb(scale, _WIDE))


def _overflow(type_: Any) -> AggregateOverflow:
    return AggregateOverflow(f"a mean does not fit its result type {type_}; cast the column to double")


@defined_by(AvgDefinition)
def avg(expression: str, *, where: str | None = None, distinct: bool = False) -> Aggregate:
    """The arithmetic mean; null where there is no value.

    A double, or over decimals a decimal with four more digits of fraction, 38 digits at most.

    >>> str(avg("speed"))
    'avg(speed)'
    """
    return modified(Aggregate(AvgDefinition(), (expression,)), where, distinct)
