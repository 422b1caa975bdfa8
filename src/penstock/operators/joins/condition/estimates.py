"""Estimates of terms over the rows of an epoch, with proven errors: vectors of one side, then pairs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.operators.joins.condition.terms import Apply, Number, PairColumn, SideName, Term

__all__ = [
    "COARSE",
    "DOUBLE",
    "SINGLE",
    "Fill",
    "Interval",
    "Operand",
    "Operands",
    "Pairs",
    "Precision",
    "Rounding",
    "Unfit",
    "column_operand",
    "combined",
    "leaf",
]


class Unfit(Exception):  # noqa: N818 -- it never leaves this package
    """A term that cannot be estimated: it may be too large, undefined or of another type."""


@dataclass(frozen=True)
class Precision:
    """Of computed numbers: the relative and the least absolute error, and the largest number allowed."""

    unit: float
    least: float
    most: float


# Twice the rounding error here, which leaves room for the rounding of DuckDB's doubles.
SINGLE = Precision(2.0**-23, 2.0**-125, 1e30)
DOUBLE = Precision(2.0**-51, 2.0**-1020, 1e250)
# The same if DuckDB computes in single precision.
COARSE = Precision(2.0**-22, 2.0**-125, 1e30)
# Integers below this over the unit are exact.
_WHOLE = 0.5


@dataclass(frozen=True)
class Interval:
    """Between which values a term lies and how far its computed value may be from DuckDB's.

    `error` is measured against real arithmetic: what is computed here and what DuckDB computes are together
    at most `error` from it, so two terms that are computed further apart than their errors compare the same
    in DuckDB. `limit` is the greatest size of an integer of this type, 0 for other types.

    >>> calls = Interval(-3.0, 4.0, 0.0, 2.0**31)
    >>> calls.squared(DOUBLE).low, calls.minus(calls, DOUBLE).high
    (0.0, 7.0)
    """

    low: float
    high: float
    error: float = 0.0
    limit: float = 0.0

    @property
    def size(self) -> float:
        """The greatest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def middle(self) -> float:
        """Half way between the least and the greatest value."""
        return self.low / 2 + self.high / 2

    def rounded(self, precision: Precision) -> "Interval":
        """After one more rounding; raises Unfit if the values are too large for it."""
        if not self.size <= (self.limit or precision.most):
            raise Unfit
        if self.limit and not self.error and self.size * precision.unit < _WHOLE:
            return self
        return replace(self, error=self.error + self.size * precision.unit + precision.least)

    def moved(self, by: float) -> "Interval":
        """All values minus `by`; the next rounding adds the error of that."""
        return replace(self, low=self.low - by, high=self.high - by, limit=0.0)

    def minus(self, other: "Interval", precision: Precision) -> "Interval":
        """The difference."""
        return self._with(other, self.low - other.high, self.high - other.low).rounded(precision)

    def plus(self, other: "Interval", precision: Precision) -> "Interval":
        """The sum."""
        return self._with(other, self.low + other.low, self.high + other.high).rounded(precision)

    def times(self, other: "Interval", precision: Precision) -> "Interval":
        """The product."""
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        error = self.error * other.size + other.error * self.size + self.error * other.error
        return replace(self._with(other, min(corners), max(corners)), error=error).rounded(precision)

    def over(self, other: "Interval", precision: Precision) -> "Interval":
        """The quotient; raises Unfit if the divisor may be near 0."""
        nearest = min(abs(other.low), abs(other.high)) - other.error
        if other.low <= 0 <= other.high or nearest <= 0:
            raise Unfit
        corners = [a / b for a in (self.low, self.high) for b in (other.low, other.high)]
        size = max(map(abs, corners))
        error = (self.error + size * other.error) / nearest
        return Interval(min(corners), max(corners), error).rounded(precision)

    def absolute(self) -> "Interval":
        """The absolute value, which adds no error."""
        low = 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))
        return replace(self, low=low, high=self.size)

    def squared(self, precision: Precision) -> "Interval":
        """The square, never negative."""
        size = self.absolute()
        error = 2 * self.error * size.size + self.error**2
        return replace(size, low=size.low**2, high=size.high**2, error=error).rounded(precision)

    def root(self, precision: Precision) -> "Interval":
        """The square root; raises Unfit if the value may be negative."""
        if self.low < 0:
            raise Unfit
        return Interval(math.sqrt(self.low), math.sqrt(self.high), math.sqrt(self.error)).rounded(precision)

    def _with(self, other: "Interval", low: float, high: float) -> "Interval":
        # An integer too large for the narrower type is an error in DuckDB, and DuckDB has to raise it.
        limit = min(self.limit, other.limit)
        return Interval(low, high, self.error + other.error, limit)


Vector = NDArray[np.float64]
_UNARY = {"abs", "sqrt", "square", "double", "near"}


class Pairs(Protocol):
    """The pairs under examination, and buffers for what is computed from them."""

    def pick(self, side: SideName, values: NDArray[Any]) -> Any:
        """The values of the pairs' rows of one side."""
        ...

    def buffer(self, slot: int) -> Any:
        """An array for numbers, or None for a new one."""
        ...

    def flags(self, slot: int) -> Any:
        """An array for truth values, or None for a new one."""
        ...


# Computes an array for pairs; the slot is the first buffer that it may overwrite.
Fill = Callable[[Pairs, int], Any]


@dataclass(frozen=True)
class Rounding:
    """The type in which pairs are computed, and the errors of that and of DuckDB's own arithmetic."""

    pairs: Any
    of_pairs: Precision
    of_rows: Precision = DOUBLE

    @property
    def moves(self) -> bool:
        """Whether vectors are shifted before they are combined; doubles keep integers exact without it."""
        return bool(self.pairs == np.float32)


@dataclass(frozen=True)
class Operand:
    """A term: a constant, the vector of a side, or a fill of pairs; exactly one of the three."""

    interval: Interval
    constant: float | None = None
    side: SideName | None = None
    vector: Vector | None = None
    fill: Fill | None = None
    kind: Literal["number", "timestamp", "date"] = "number"


def mapped(function: Any, part: Fill) -> Fill:
    """A function of the array of a fill."""
    return lambda pairs, slot: function(part(pairs, slot), out=pairs.buffer(slot))


def combined(function: Any, one: Fill, other: Fill) -> Fill:
    """A function of the arrays of two fills; the second fill uses the buffers after the first."""
    return lambda pairs, slot: function(one(pairs, slot), other(pairs, slot + 1), out=pairs.buffer(slot))


def leaf(operand: Operand, rounding: Rounding, by: float = 0.0) -> tuple[Fill, Interval]:
    """The values of an operand for pairs, shifted down by an amount, and their interval."""
    if operand.fill is not None:
        return operand.fill, operand.interval
    interval = operand.interval.moved(by) if by else operand.interval
    if by or rounding.pairs != np.float64:
        interval = interval.rounded(rounding.of_pairs)
    if operand.constant is not None:
        value = operand.constant - by
        return (lambda _pairs, _slot: value), interval
    assert operand.side is not None
    assert operand.vector is not None
    side, moved = operand.side, operand.vector - by if by else operand.vector
    values = moved.astype(rounding.pairs, copy=False)
    return (lambda pairs, _slot: pairs.pick(side, values)), interval


class Operands:
    """Makes operands from terms over the columns of both sides; each column is converted once.

    A term of one side is computed once for each row, in double precision. Where both sides are combined,
    vectors are shifted by a common amount before they are rounded to the precision of pairs, so that the
    error depends on how far values differ and not on how large they are: times of one minute lose nothing by
    their year.
    """

    def __init__(self, columns: Callable[[PairColumn], Operand], rounding: Rounding) -> None:
        """`columns` finds the operand of a column or raises Unfit."""
        self._columns, self.rounding = columns, rounding

    def of(self, term: Term) -> Operand:
        """The operand of a term; raises Unfit if it cannot be estimated."""
        if isinstance(term, PairColumn):
            return self._columns(term)
        if isinstance(term, Number):
            error = 0.0 if term.whole else abs(term.value) * self.rounding.of_rows.unit
            limit = float("inf") if term.whole else 0.0
            return Operand(Interval(term.value, term.value, error, limit), constant=term.value)
        parts = [self.of(part) for part in term.parts]
        if term.operator == "micros":
            if parts[0].kind != "timestamp":
                raise Unfit
            return replace(parts[0], kind="number")
        if any(part.kind != "number" for part in parts):
            raise Unfit
        return self._unary(term, parts[0]) if term.operator in _UNARY else self._binary(term, *parts)

    def _unary(self, term: Apply, part: Operand) -> Operand:
        rounding = self.rounding.of_pairs if part.fill else self.rounding.of_rows
        match term.operator:
            case "abs":
                return _mapped(np.absolute, part, part.interval.absolute())
            case "square":
                return _mapped(np.square, part, part.interval.squared(rounding))
            case "sqrt":
                root = part.interval.root(rounding)
                # A term that is not a sum of squares may come out slightly below 0.
                least = part if _counts(term.parts[0]) else _mapped(_not_negative, part, part.interval)
                return _mapped(np.sqrt, least, root)
            case "double":
                return replace(part, interval=replace(part.interval, limit=0.0))
            case _:
                if part.interval.size > 2.0**31:
                    raise Unfit
                wider = Interval(part.interval.low - 1, part.interval.high + 1, part.interval.error + 1)
                return replace(part, interval=wider)

    def _binary(self, term: Apply, one: Operand, other: Operand) -> Operand:
        function, combine = _ARITHMETIC[term.operator]
        if one.fill is None and other.fill is None and (one.side or other.side) == (other.side or one.side):
            interval = combine(one.interval, other.interval, self.rounding.of_rows)
            return _on_rows(function, one, other, interval)
        by = self._shift(term, one, other)
        first, mine = leaf(one, self.rounding, by)
        second, theirs = leaf(other, self.rounding, -by if term.operator == "+" else by)
        interval = combine(
            replace(one.interval, error=mine.error),
            replace(other.interval, error=theirs.error),
            self.rounding.of_pairs,
        )
        return Operand(interval, fill=combined(function, first, second))

    def _shift(self, term: Apply, one: Operand, other: Operand) -> float:
        """How far to shift two vectors before they are combined; their sum or difference stays the same."""
        if not self.rounding.moves or one.vector is None or other.vector is None:
            return 0.0
        if term.operator == "-":
            return one.interval.middle / 2 + other.interval.middle / 2
        return one.interval.middle / 2 - other.interval.middle / 2 if term.operator == "+" else 0.0


_ARITHMETIC: dict[str, tuple[Any, Callable[[Interval, Interval, Precision], Interval]]] = {
    "+": (np.add, Interval.plus),
    "-": (np.subtract, Interval.minus),
    "*": (np.multiply, Interval.times),
    "/": (np.divide, Interval.over),
}


def _counts(term: Term) -> bool:
    """Whether a term is never negative: its parts are not, and its operator keeps that."""
    if isinstance(term, Apply) and term.operator in {"+", "*", "/", "double"}:
        return all(_counts(part) for part in term.parts)
    if isinstance(term, Apply):
        return term.operator in {"square", "abs", "sqrt"}
    return isinstance(term, Number) and term.value >= 0


def _not_negative(values: Any, out: Any = None) -> Any:
    return np.maximum(values, 0.0, out=out)


def _mapped(function: Any, part: Operand, interval: Interval) -> Operand:
    if part.fill is not None:
        return replace(part, interval=interval, fill=mapped(function, part.fill))
    if part.constant is not None:
        return replace(part, interval=interval, constant=float(function(part.constant)))
    return replace(part, interval=interval, vector=function(part.vector))


def _on_rows(function: Any, one: Operand, other: Operand, interval: Interval) -> Operand:
    values = function(
        one.vector if one.constant is None else one.constant,
        other.vector if other.constant is None else other.constant,
    )
    side = one.side or other.side
    if side is None:
        return Operand(interval, constant=float(values))
    return Operand(interval, side=side, vector=values)


def column_operand(side: SideName, column: Any) -> Operand:
    """A column as a vector of doubles, nulls as NaN; raises Unfit if it is not all finite numbers."""
    kind, limit = _kind(column.type)
    plain = column.cast(pa.int64()) if kind == "timestamp" else column
    plain = plain.cast(pa.int32()) if kind == "date" else plain
    vector = plain.cast(pa.float64(), safe=False).to_numpy()
    finite = vector[np.isfinite(vector)]
    if len(finite) + plain.null_count < len(vector):
        raise Unfit
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    interval = Interval(low, high, 0.0, limit)
    exact = limit and interval.size < 2.0**53
    error = 0.0 if exact or pa.types.is_floating(column.type) else interval.size * 2.0**-52
    return Operand(replace(interval, error=error), side=side, vector=vector, kind=kind)  # type: ignore[arg-type]


def _kind(type_: Any) -> tuple[str, float]:
    """The kind of values of a column, and the greatest integer of its type."""
    if pa.types.is_signed_integer(type_):
        return "number", 2.0 ** (type_.bit_width - 1) - 1
    if pa.types.is_float32(type_) or pa.types.is_float64(type_) or pa.types.is_decimal(type_):
        return "number", 0.0
    if pa.types.is_timestamp(type_) and type_.unit == "us":
        return "timestamp", 2.0**63
    if pa.types.is_date32(type_):
        return "date", 2.0**31
    raise Unfit
