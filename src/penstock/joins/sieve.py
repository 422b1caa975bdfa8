"""Which pairs may satisfy a condition and which must, from estimates with proven errors.

Each comparison widens or narrows its bound by all errors together, so what passes as possible holds every
pair for which DuckDB says true, and what passes as certain holds no other. Nulls are NaN, which compares as
false; a column with a NaN or an infinity of its own is left to DuckDB, which gives them an order.
"""

from dataclasses import replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from penstock.joins.extent import COARSE, DOUBLE, SINGLE, Unfit
from penstock.joins.operands import Fill, Operand, Operands, Pairs, Rounding, column_operand, combined, leaf
from penstock.joins.terms import AllOf, Column, Compare, Logic, Unknown

__all__ = ["Sieve"]

Wanted = Literal["possible", "certain"]
# Slack for the arithmetic of errors, which is itself rounded.
_SLACK = 1.01


class Sieve:
    """A condition over some rows of both sides, given as tables of the columns that it reads."""

    def __init__(self, logic: Logic, left: Any, right: Any) -> None:
        """Converts no column before it is needed."""
        self._logic = logic
        self._tables = {"l": left, "r": right}
        self._known: dict[Column, Operand | None] = {}
        types = [*left.schema.types, *right.schema.types]
        self._coarse = any(pa.types.is_float32(each) for each in types)

    def possible(self) -> Fill | None:
        """Tells in single precision which pairs may match; None if all may."""
        rounding = Rounding(np.float32, COARSE if self._coarse else SINGLE, self._rows)
        return _bound(self._logic, Operands(self._column, rounding), "possible")

    def exact(self) -> tuple[Fill | None, Fill | None]:
        """The same in double precision, and which pairs must match; None if that is known of none."""
        operands = Operands(self._column, Rounding(np.float64, self._rows, self._rows))
        return _bound(self._logic, operands, "possible"), _bound(self._logic, operands, "certain")

    @property
    def _rows(self) -> Any:
        return COARSE if self._coarse else DOUBLE

    def _column(self, column: Column) -> Operand:
        if column not in self._known:
            self._known[column] = self._converted(column)
        found = self._known[column]
        if found is None:
            raise Unfit
        return found

    def _converted(self, column: Column) -> Operand | None:
        table = self._tables[column.side]
        if column.name not in table.column_names:
            return None
        try:
            found = column_operand(column.side, table[column.name])
            # Beside a single, DuckDB rounds other numbers to singles too.
            return replace(found, extent=found.extent.rounded(COARSE)) if self._coarse else found
        except Unfit:
            return None


def _bound(logic: Logic, operands: Operands, wanted: Wanted) -> Fill | None:
    """Truth values of pairs; None stands for "all may" or for "none must"."""
    if isinstance(logic, Unknown):
        return None
    if isinstance(logic, Compare):
        try:
            return _compared(logic, operands, wanted)
        except Unfit:
            return None
    every = isinstance(logic, AllOf)
    parts = [_bound(part, operands, wanted) for part in logic.parts]
    known = [part for part in parts if part is not None]
    # What is not known leaves possible what the rest allows, and certain what the rest alone makes so.
    if not known or (len(known) < len(parts) and every != (wanted == "possible")):
        return None
    return reduce(_both if every else _either, known)


def _compared(logic: Compare, operands: Operands, wanted: Wanted) -> Fill | None:
    one, other = operands.of(logic.one), operands.of(logic.other)
    if one.kind != other.kind or (one.constant is not None and other.constant is not None):
        raise Unfit
    if logic.relation in {"<", "<="}:
        return _ordered(one, other, operands, wanted, strict=logic.relation == "<")
    exact = not (one.extent.error or other.extent.error) and not operands.rounding.moves
    if logic.relation == "=":
        if wanted == "certain" and not exact:
            return None
        return _both(
            _ordered(one, other, operands, wanted, strict=False),
            _ordered(other, one, operands, wanted, strict=False),
        )
    # Two inequalities, since NaN, which is a null, is unequal to everything.
    if wanted == "possible" and not exact:
        return None
    return _either(
        _ordered(one, other, operands, wanted, strict=True),
        _ordered(other, one, operands, wanted, strict=True),
    )


def _ordered(one: Operand, other: Operand, operands: Operands, wanted: Wanted, *, strict: bool) -> Fill:
    """Whether one is less than the other, or may be."""
    rounding, by = operands.rounding, 0.0
    if rounding.moves and one.fill is None and other.fill is None:
        by = one.extent.middle / 2 + other.extent.middle / 2
    mine, theirs = leaf(one, rounding, by)[1], leaf(other, rounding, by)[1]
    margin = _SLACK * (mine.error + theirs.error)
    step = margin if wanted == "possible" else -margin
    compare = np.less if strict and (wanted == "certain" or not margin) else np.less_equal
    if other.fill is None:
        first, second = leaf(one, rounding, by)[0], leaf(other, rounding, by - step)[0]
    elif one.fill is None:
        first, second = leaf(one, rounding, by + step)[0], leaf(other, rounding, by)[0]
    else:
        widened = (
            replace(other, fill=combined(np.add, other.fill, lambda _pairs, _slot: step)) if step else other
        )
        first, second = leaf(one, rounding)[0], leaf(widened, rounding)[0]
    return _compare(compare, first, second)


def _compare(function: Any, one: Fill, other: Fill) -> Fill:
    def fill(pairs: Pairs, slot: int) -> Any:
        return function(one(pairs, 0), other(pairs, 1), out=pairs.flags(slot))

    return fill


def _both(one: Fill, other: Fill) -> Fill:
    def fill(pairs: Pairs, slot: int) -> Any:
        first = one(pairs, slot)
        return np.logical_and(first, other(pairs, slot + 1), out=pairs.flags(slot)) if first.any() else first

    return fill


def _either(one: Fill, other: Fill) -> Fill:
    def fill(pairs: Pairs, slot: int) -> Any:
        return np.logical_or(one(pairs, slot), other(pairs, slot + 1), out=pairs.flags(slot))

    return fill
