"""Terms of a condition over the rows at hand: vectors of one side as far as they go, then pairs.

What only one side has a part in is computed once for each row, in double precision. Where both sides meet,
vectors are moved by a common amount before they are rounded to the precision of pairs, so that the error goes
with how far values differ and not with how large they are: times of one minute lose nothing by their year.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.joins.extent import DOUBLE, Extent, Precision, Unfit
from penstock.joins.terms import Apply, Column, Number, SideName, Term

__all__ = ["Fill", "Operand", "Operands", "Pairs", "Rounding", "column_operand", "combined", "leaf"]

Vector = NDArray[np.float64]
_UNARY = {"abs", "sqrt", "square", "double", "near"}


class Pairs(Protocol):
    """The pairs that are looked at, and buffers for what is computed of them."""

    def pick(self, side: SideName, values: NDArray[Any]) -> Any:
        """The values of the pairs' rows of one side."""
        ...

    def buffer(self, slot: int) -> Any:
        """An array for numbers, or None for a new one."""
        ...

    def flags(self, slot: int) -> Any:
        """An array for truth values, or None for a new one."""
        ...


# Gives an array for pairs; the slot is the first buffer that it may overwrite.
Fill = Callable[[Pairs, int], Any]


@dataclass(frozen=True)
class Rounding:
    """In what pairs are computed, and what that and DuckDB's own arithmetic cost."""

    pairs: Any
    of_pairs: Precision
    of_rows: Precision = DOUBLE

    @property
    def moves(self) -> bool:
        """Whether vectors are moved before they meet; doubles keep whole numbers exact as they are."""
        return bool(self.pairs == np.float32)


@dataclass(frozen=True)
class Operand:
    """A term: a constant, the vector of a side, or a fill of pairs; exactly one of the three."""

    extent: Extent
    constant: float | None = None
    side: SideName | None = None
    vector: Vector | None = None
    fill: Fill | None = None
    kind: Literal["number", "timestamp", "date"] = "number"


def mapped(function: Any, part: Fill) -> Fill:
    """A function of what a fill gives."""
    return lambda pairs, slot: function(part(pairs, slot), out=pairs.buffer(slot))


def combined(function: Any, one: Fill, other: Fill) -> Fill:
    """A function of what two fills give; the other one has the buffers after the first."""
    return lambda pairs, slot: function(one(pairs, slot), other(pairs, slot + 1), out=pairs.buffer(slot))


def leaf(operand: Operand, rounding: Rounding, by: float = 0.0) -> tuple[Fill, Extent]:
    """What pairs see of an operand after it was moved down by an amount, with the extent of that."""
    if operand.fill is not None:
        return operand.fill, operand.extent
    extent = operand.extent.moved(by) if by else operand.extent
    if by or rounding.pairs != np.float64:
        extent = extent.rounded(rounding.of_pairs)
    if operand.constant is not None:
        value = operand.constant - by
        return (lambda _pairs, _slot: value), extent
    assert operand.side is not None
    assert operand.vector is not None
    side, moved = operand.side, operand.vector - by if by else operand.vector
    values = moved.astype(rounding.pairs, copy=False)
    return (lambda pairs, _slot: pairs.pick(side, values)), extent


class Operands:
    """Makes operands from terms over the columns of both sides, each column converted once."""

    def __init__(self, columns: Callable[[Column], Operand], rounding: Rounding) -> None:
        """`columns` finds a column's operand or raises Unfit."""
        self._columns, self.rounding = columns, rounding

    def of(self, term: Term) -> Operand:
        """The operand of a term; Unfit if it cannot be estimated."""
        if isinstance(term, Column):
            return self._columns(term)
        if isinstance(term, Number):
            error = 0.0 if term.whole else abs(term.value) * self.rounding.of_rows.unit
            limit = float("inf") if term.whole else 0.0
            return Operand(Extent(term.value, term.value, error, limit), constant=term.value)
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
                return _mapped(np.absolute, part, part.extent.absolute())
            case "square":
                return _mapped(np.square, part, part.extent.squared(rounding))
            case "sqrt":
                root = part.extent.root(rounding)
                # What is no sum of squares may be computed a little below 0.
                least = part if _counts(term.parts[0]) else _mapped(_not_negative, part, part.extent)
                return _mapped(np.sqrt, least, root)
            case "double":
                return replace(part, extent=replace(part.extent, limit=0.0))
            case _:
                if part.extent.size > 2.0**31:
                    raise Unfit
                wider = Extent(part.extent.low - 1, part.extent.high + 1, part.extent.error + 1)
                return replace(part, extent=wider)

    def _binary(self, term: Apply, one: Operand, other: Operand) -> Operand:
        function, combine = _ARITHMETIC[term.operator]
        if one.fill is None and other.fill is None and (one.side or other.side) == (other.side or one.side):
            extent = combine(one.extent, other.extent, self.rounding.of_rows)
            return _on_rows(function, one, other, extent)
        by = self._shift(term, one, other)
        first, mine = leaf(one, self.rounding, by)
        second, theirs = leaf(other, self.rounding, -by if term.operator == "+" else by)
        extent = combine(
            replace(one.extent, error=mine.error),
            replace(other.extent, error=theirs.error),
            self.rounding.of_pairs,
        )
        return Operand(extent, fill=combined(function, first, second))

    def _shift(self, term: Apply, one: Operand, other: Operand) -> float:
        """How far to move two vectors before they meet: sums and differences stay what they are."""
        if not self.rounding.moves or one.vector is None or other.vector is None:
            return 0.0
        if term.operator == "-":
            return one.extent.middle / 2 + other.extent.middle / 2
        return one.extent.middle / 2 - other.extent.middle / 2 if term.operator == "+" else 0.0


_ARITHMETIC: dict[str, tuple[Any, Callable[[Extent, Extent, Precision], Extent]]] = {
    "+": (np.add, Extent.plus),
    "-": (np.subtract, Extent.minus),
    "*": (np.multiply, Extent.times),
    "/": (np.divide, Extent.over),
}


def _counts(term: Term) -> bool:
    """Whether a term is computed from such as are never negative by such as keep them so."""
    if isinstance(term, Apply) and term.operator in {"+", "*", "/", "double"}:
        return all(_counts(part) for part in term.parts)
    if isinstance(term, Apply):
        return term.operator in {"square", "abs", "sqrt"}
    return isinstance(term, Number) and term.value >= 0


def _not_negative(values: Any, out: Any = None) -> Any:
    return np.maximum(values, 0.0, out=out)


def _mapped(function: Any, part: Operand, extent: Extent) -> Operand:
    if part.fill is not None:
        return replace(part, extent=extent, fill=mapped(function, part.fill))
    if part.constant is not None:
        return replace(part, extent=extent, constant=float(function(part.constant)))
    return replace(part, extent=extent, vector=function(part.vector))


def _on_rows(function: Any, one: Operand, other: Operand, extent: Extent) -> Operand:
    values = function(
        one.vector if one.constant is None else one.constant,
        other.vector if other.constant is None else other.constant,
    )
    side = one.side or other.side
    if side is None:
        return Operand(extent, constant=float(values))
    return Operand(extent, side=side, vector=values)


def column_operand(side: SideName, column: Any) -> Operand:
    """A column as a vector of doubles, nulls as NaN; Unfit if it holds no numbers or not only finite ones."""
    kind, limit = _kind(column.type)
    plain = column.cast(pa.int64()) if kind == "timestamp" else column
    plain = plain.cast(pa.int32()) if kind == "date" else plain
    vector = plain.cast(pa.float64(), safe=False).to_numpy()
    finite = vector[np.isfinite(vector)]
    if len(finite) + plain.null_count < len(vector):
        raise Unfit
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    extent = Extent(low, high, 0.0, limit)
    exact = limit and extent.size < 2.0**53
    error = 0.0 if exact or pa.types.is_floating(column.type) else extent.size * 2.0**-52
    return Operand(replace(extent, error=error), side=side, vector=vector, kind=kind)  # type: ignore[arg-type]


def _kind(type_: Any) -> tuple[str, float]:
    """What a column holds, and the greatest integer of its type."""
    if pa.types.is_signed_integer(type_):
        return "number", 2.0 ** (type_.bit_width - 1) - 1
    if pa.types.is_float32(type_) or pa.types.is_float64(type_) or pa.types.is_decimal(type_):
        return "number", 0.0
    if pa.types.is_timestamp(type_) and type_.unit == "us":
        return "timestamp", 2.0**63
    if pa.types.is_date32(type_):
        return "date", 2.0**31
    raise Unfit
