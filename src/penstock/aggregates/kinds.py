"""Kinds of partial that several aggregates share: counts, folds and extreme rows.

A kind says which columns hold a partial in a segment, and turns them into the lanes of a merge and back.
Loading sees all rows that one channel works on together, so values without a native order in numpy
(strings, decimals, pairs) are ranked among each other once and merged as integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates import limbs
from penstock.aggregates.merges import Array, Elementwise, Lanes, Merge, Optional
from penstock.state.keys import normal

__all__ = ["Count", "ExtremeRow", "Fold", "Kind", "Loaded", "Operation", "dense_rank"]

Operation = Literal["sum", "min", "max", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or"]


class Loaded(Protocol):
    """Partials of one kind in memory: the merge, the lanes of all rows, and the way back to Arrow."""

    @property
    def merge(self) -> Merge:
        """How to combine the lanes."""
        ...

    @property
    def lanes(self) -> Lanes:
        """One element per row that was loaded."""
        ...

    def store(self, lanes: Lanes) -> list[Any]:
        """Columns of the kind's fields for the given lanes."""
        ...


class Kind(Protocol):
    """One kind of partial."""

    @property
    def types(self) -> tuple[Any, ...]:
        """Arrow types of the columns that hold a partial."""
        ...

    @property
    def summary(self) -> str:
        """One sentence on the accuracy of an approximation; empty for an exact partial."""
        ...

    def load(self, columns: Sequence[Any]) -> Loaded:
        """Take up the partials of all rows of a channel."""
        ...


@dataclass(frozen=True)
class _Native:
    """Lanes that are the columns themselves, with an optional lane for presence."""

    merge: Merge
    lanes: Lanes
    type: Any

    def store(self, lanes: Lanes) -> list[Any]:
        absent = ~lanes[-1] if isinstance(self.merge, Optional) else None
        return [_from_numpy(lanes[0], self.type, absent)]


@dataclass(frozen=True)
class _Ranked:
    """Lanes that are ranks into sorted rows; `-1` or the largest integer stand for absent."""

    merge: Merge
    lanes: Lanes
    columns: tuple[Any, ...]
    order: Array

    def store(self, lanes: Lanes) -> list[Any]:
        rank = lanes[0]
        absent = (rank < 0) | (rank >= len(self.order))
        row = self.order[np.where(absent, 0, rank)] if len(self.order) else np.zeros(len(rank), np.int64)
        index = pa.array(row, mask=absent)
        return [column.take(index) for column in self.columns]


@dataclass(frozen=True)
class _Limbed:
    """Exact sums in 32-bit limbs, for decimals and for integers that may overflow."""

    merge: Merge
    lanes: Lanes
    type: Any

    def store(self, lanes: Lanes) -> list[Any]:
        nullable = isinstance(self.merge, Optional)
        parts, absent = (lanes[:-1], ~lanes[-1]) if nullable else (lanes, None)
        return [limbs.join(parts, self.type, absent)]


@dataclass(frozen=True)
class Count:
    """A number of tuples; never null."""

    summary: ClassVar[str] = ""

    @property
    def types(self) -> tuple[Any, ...]:
        """One bigint."""
        return (pa.int64(),)

    def load(self, columns: Sequence[Any]) -> Loaded:
        """Counts add up."""
        lane = pc.fill_null(columns[0], 0).to_numpy(zero_copy_only=False)
        return _Native(Elementwise(np.add, 0, (np.dtype(np.int64),)), (lane,), pa.int64())


@dataclass(frozen=True)
class Fold:
    """One value folded by an SQL aggregate that is its own merge; null while nothing was folded."""

    operation: Operation
    type: Any
    summary: ClassVar[str] = ""

    @property
    def types(self) -> tuple[Any, ...]:
        """The value's own type."""
        return (self.type,)

    def load(self, columns: Sequence[Any]) -> Loaded:
        """Numbers as they are, decimals in limbs, everything else by rank."""
        column = columns[0]
        if self.operation in {"min", "max"} and not _has_native_order(self.type):
            return _rank((column,), self.operation, column)
        if self.operation == "sum" and _needs_limbs(column):
            lanes = limbs.split(column)
            return _Limbed(*_present(limbs.MERGE[len(lanes)], lanes, column), self.type)
        merge = _elementwise(self.operation, self.type)
        lane = _to_numpy(column, self.type, merge.start)
        return _Native(*_present(merge, (lane,), column), self.type)


@dataclass(frozen=True)
class ExtremeRow:
    """The least or the greatest row of several columns, compared column by column in Spark's order.

    Null comes before every value and NaN after every number. Rows with a null in column `present` are
    skipped. Equal rows are equal in every column, so it does not matter which one stays.
    """

    extreme: Literal["min", "max"]
    types: tuple[Any, ...]
    present: int = 0
    summary: ClassVar[str] = ""

    def load(self, columns: Sequence[Any]) -> Loaded:
        """All columns are ranked together."""
        return _rank(tuple(columns), self.extreme, columns[self.present])


def _present(merge: Merge, lanes: Lanes, column: Any) -> tuple[Merge, Lanes]:
    """Add the presence lane only where a null makes it necessary."""
    if not column.null_count:
        return merge, lanes
    return Optional(merge), (*lanes, column.is_valid().to_numpy(zero_copy_only=False))


def _rank(columns: tuple[Any, ...], operation: str, value: Any) -> Loaded:
    """Rank rows by their columns in turn; equal rows may have any order among themselves."""
    held = np.flatnonzero(value.is_valid().to_numpy(zero_copy_only=False))
    taken = [column.take(pa.array(held)) for column in columns]
    # Equal values of the last column are equal rows, whichever of them is taken.
    ranks = [*(dense_rank(normal(column)) for column in taken[:-1]), dense_rank(taken[-1])]
    order = held[np.lexsort(ranks[::-1])] if len(held) else held
    absent = np.iinfo(np.int64).max if operation == "min" else -1
    lane = np.full(len(value), absent, np.int64)
    lane[order] = np.arange(len(order))
    ufunc = np.minimum if operation == "min" else np.maximum
    return _Ranked(Elementwise(ufunc, absent, (np.dtype(np.int64),)), (lane,), columns, order)


def dense_rank(column: Any) -> Array:
    """Integers in Spark's order of the values, null first and NaN last.

    >>> dense_rank(pa.array([0.5, float("nan"), None, 0.5, -1.0])).tolist()
    [1, 2, -1, 1, 0]
    """
    if pa.types.is_int64(column.type) and not column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    return np.asarray(rank[encoded.indices.fill_null(len(order)).to_numpy()])


def _has_native_order(type_: Any) -> bool:
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_temporal(type_)
        or pa.types.is_boolean(type_)
    )


def _needs_limbs(column: Any) -> bool:
    """Decimals always; integers when the sum of all rows could leave 64 bits."""
    if pa.types.is_decimal(column.type):
        return True
    if not pa.types.is_integer(column.type) or not len(column):
        return False
    extremes = pc.min_max(column)
    largest = max(abs(extremes["min"].as_py() or 0), abs(extremes["max"].as_py() or 0))
    return bool(largest * len(column) >= 2**63)


def _storage(type_: Any) -> Any:
    """The integer type under a temporal one, since a sentinel is no valid date."""
    if pa.types.is_date32(type_):
        return pa.int32()
    if pa.types.is_temporal(type_):
        return pa.int64()
    return type_


def _to_numpy(column: Any, type_: Any, absent: Any) -> Array:
    if pa.types.is_temporal(type_):
        column = column.cast(_storage(type_))
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(absent, column.type))
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _from_numpy(lane: Array, type_: Any, absent: Array | None) -> Any:
    if absent is not None and absent.any():
        lane = np.where(absent, np.zeros(1, lane.dtype), lane)
    return pa.array(lane, mask=absent).cast(_storage(type_)).cast(type_)


def _elementwise(operation: str, type_: Any) -> Elementwise:
    storage = _storage(type_)
    dtype = np.dtype(storage.to_pandas_dtype())
    if operation in {"sum", "bit_or", "bit_xor"}:
        ufunc = {"sum": np.add, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}[operation]
        return Elementwise(ufunc, 0.0 if dtype.kind == "f" else 0, (dtype,))
    if operation == "bit_and":
        return Elementwise(np.bitwise_and, -1, (dtype,))
    if operation in {"bool_and", "bool_or"} or dtype.kind == "b":
        conjunction = operation in {"bool_and", "min"}
        return Elementwise(np.logical_and if conjunction else np.logical_or, conjunction, (dtype,))
    return _extreme(operation, dtype)


def _extreme(operation: str, dtype: np.dtype[Any]) -> Elementwise:
    least: Any
    most: Any
    smaller: np.ufunc
    if dtype.kind == "f":
        # NaN is the largest value in SQL: fmin skips it, maximum keeps it.
        least, most, smaller = -np.inf, np.nan, np.fmin
    else:
        bounds = np.iinfo(dtype)
        least, most, smaller = bounds.min, bounds.max, np.minimum
    if operation == "min":
        return Elementwise(smaller, most, (dtype,))
    return Elementwise(np.maximum, least, (dtype,))
