"""Which pairs may satisfy a condition and which must, from estimates, for tiles and for formed pairs."""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.operators.joins.condition.estimates import (
    COARSE,
    DOUBLE,
    SINGLE,
    Fill,
    Operand,
    Operands,
    Pairs,
    Rounding,
    Unfit,
    column_operand,
    combined,
    leaf,
)
from penstock.operators.joins.condition.terms import AllOf, Compare, Logic, PairColumn, SideName, Unknown
from penstock.operators.joins.spans import Rows

__all__ = ["FormedPairs", "Sieve", "passing"]

Wanted = Literal["possible", "certain"]
# Slack for the arithmetic of errors, which is itself rounded.
_SLACK = 1.01
# Numpy is slow on runs shorter than 4,096; a tile of this size has 128 KB in single precision.
_ACROSS, _SIZE = 8_192, 1 << 16


class Sieve:
    """A condition over some rows of both sides, given as tables of the columns that it reads.

    Every comparison widens or narrows its bound by the sum of all errors, so the possible pairs include every
    pair for which DuckDB says true, and the certain pairs include no other. Nulls are NaN, which compares as
    false. A column that contains NaN or infinity itself is left to DuckDB, which gives them an order.
    """

    def __init__(self, logic: Logic, left: Any, right: Any) -> None:
        """Converts no column before it is needed."""
        self._logic = logic
        self._tables = {"l": left, "r": right}
        self._known: dict[PairColumn, Operand | None] = {}
        types = [*left.schema.types, *right.schema.types]
        self._coarse = any(pa.types.is_float32(each) for each in types)

    def possible(self) -> Fill | None:
        """Which pairs may match, in single precision; None if all may."""
        rounding = Rounding(np.float32, COARSE if self._coarse else SINGLE, self._rows)
        return _bound(self._logic, Operands(self._column, rounding), "possible")

    def exact(self) -> tuple[Fill | None, Fill | None]:
        """Which pairs may match, in double precision, and which must; None if that is known of no pair."""
        operands = Operands(self._column, Rounding(np.float64, self._rows, self._rows))
        return _bound(self._logic, operands, "possible"), _bound(self._logic, operands, "certain")

    @property
    def _rows(self) -> Any:
        return COARSE if self._coarse else DOUBLE

    def _column(self, column: PairColumn) -> Operand:
        if column not in self._known:
            self._known[column] = self._converted(column)
        found = self._known[column]
        if found is None:
            raise Unfit
        return found

    def _converted(self, column: PairColumn) -> Operand | None:
        table = self._tables[column.side]
        if column.name not in table.column_names:
            return None
        try:
            found = column_operand(column.side, table[column.name])
            # DuckDB rounds a number to single precision when it is combined with a single.
            return replace(found, interval=found.interval.rounded(COARSE)) if self._coarse else found
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
    # With an unknown part, a pair is possible if the rest allows it, and certain if the rest alone proves it.
    if not known or (len(known) < len(parts) and every != (wanted == "possible")):
        return None
    return reduce(_both if every else _either, known)


def _compared(logic: Compare, operands: Operands, wanted: Wanted) -> Fill | None:
    one, other = operands.of(logic.one), operands.of(logic.other)
    if one.kind != other.kind or (one.constant is not None and other.constant is not None):
        raise Unfit
    if logic.relation in {"<", "<="}:
        return _ordered(one, other, operands, wanted, strict=logic.relation == "<")
    exact = not (one.interval.error or other.interval.error) and not operands.rounding.moves
    if logic.relation == "=":
        if wanted == "certain" and not exact:
            return None
        return _both(
            _ordered(one, other, operands, wanted, strict=False),
            _ordered(other, one, operands, wanted, strict=False),
        )
    # Two inequalities, because NaN stands for null and is unequal to everything.
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
        by = one.interval.middle / 2 + other.interval.middle / 2
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


class _Tile:
    """A block of left rows by a block of right rows, with the longer side along the second axis."""

    def __init__(self, *, right_across: bool) -> None:
        self._across_side: SideName = "r" if right_across else "l"
        self._memory: dict[tuple[type, int], NDArray[Any]] = {}
        self._cut: dict[tuple[type, int], NDArray[Any]] = {}
        self._down = self._across = slice(0, 0)

    def move(self, down: slice, across: slice) -> None:
        """Move to another place."""
        if self._down.stop - self._down.start != down.stop - down.start or self._across != across:
            self._cut.clear()
        self._down, self._across = down, across

    def pick(self, side: SideName, values: NDArray[Any]) -> Any:
        """The values of the tile's rows of one side, along their axis."""
        return values[None, self._across] if side == self._across_side else values[self._down, None]

    def buffer(self, slot: int) -> Any:
        """An array for numbers."""
        return self._shaped((np.float32, slot))

    def flags(self, slot: int) -> Any:
        """An array for truth values."""
        return self._shaped((np.bool_, slot))

    def _shaped(self, key: tuple[type, int]) -> Any:
        if key not in self._cut:
            memory = self._memory.setdefault(key, np.empty(_SIZE, key[0]))
            shape = self._down.stop - self._down.start, self._across.stop - self._across.start
            self._cut[key] = memory[: shape[0] * shape[1]].reshape(shape)
        return self._cut[key]


class FormedPairs:
    """Pairs that are already formed, each given by the places of its rows."""

    def __init__(self, left: Rows, right: Rows) -> None:
        """Both have the same length."""
        self._places = {"l": left, "r": right}

    def pick(self, side: SideName, values: NDArray[Any]) -> Any:
        """The values of the pairs' rows of one side."""
        return values[self._places[side]]

    def buffer(self, _slot: int) -> Any:
        """A new array."""
        return None

    def flags(self, _slot: int) -> Any:
        """A new array."""
        return None


def passing(fill: Fill, left: int, right: int, most: int) -> Iterator[tuple[Rows, Rows]]:
    """Places of the pairs that pass, of all pairs of `left` and `right` rows, at most `most` at once.

    `most` is at least the size of a tile. A tile and all that is computed from it stay in the cache.
    """
    assert most >= _SIZE
    found: list[tuple[Rows, Rows]] = []
    count = 0
    for down, across in _passing_by_tile(fill, left, right):
        if count + len(down) > most:
            yield _together(found, right_across=right >= left)
            found, count = [], 0
        found.append((down, across))
        count += len(down)
    if found:
        yield _together(found, right_across=right >= left)


def _passing_by_tile(fill: Fill, left: int, right: int) -> Iterator[tuple[Rows, Rows]]:
    tile = _Tile(right_across=right >= left)
    wide, high = max(left, right), min(left, right)
    for start in range(0, wide, _ACROSS):
        across = slice(start, min(start + _ACROSS, wide))
        width = across.stop - start
        rows = max(1, _SIZE // width)
        for first in range(0, high, rows):
            tile.move(slice(first, min(first + rows, high)), across)
            places = fill(tile, 0).reshape(-1).nonzero()[0]
            if len(places):
                down = places // width
                yield down + first, places - down * width + start


def _together(found: list[tuple[Rows, Rows]], *, right_across: bool) -> tuple[Rows, Rows]:
    down = np.concatenate([each for each, _ in found])
    across = np.concatenate([each for _, each in found])
    return (down, across) if right_across else (across, down)
