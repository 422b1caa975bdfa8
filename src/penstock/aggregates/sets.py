"""A kind of partial that is the set of values itself, for exact counts of distinct ones.

A channel numbers all values that it works on together once, so a set is a run of ascending numbers. Merging
any number of pairs of sets is one sort of numbers, whatever the values are. A pane holds each value of a key
once. The sets of windows exist only while these are closed: n windows that close at once take 4 bytes for
each member of about 3 n sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.kinds import Loaded, one_spelling
from penstock.aggregates.merges import Array, Lanes, Merge
from penstock.aggregates.partials import Lift

__all__ = ["OfOneRow", "Sets", "collected_set", "numbered"]


@dataclass(frozen=True)
class Sets:
    """The distinct values of a pane and key as a list without nulls; null for none."""

    element: Any
    summary: ClassVar[str] = ""

    @property
    def types(self) -> tuple[Any, ...]:
        """One list."""
        return (pa.list_(self.element),)

    def load(self, columns: Sequence[Any]) -> Loaded:
        """Equal values of all rows get one number."""
        (lists,) = columns
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        codes, distinct = numbered(lists.flatten())
        pool = _SetPool(codes, lengths, len(distinct))
        sets = np.arange(len(lists), dtype=np.int64)
        if _has_floats(self.element):
            # What Spark collected may hold two spellings of one value.
            sets = pool.united(*pool.gathered(sets), len(lists))
        return _LoadedSets(_Union(pool), (np.where(lengths > 0, sets, -1),), pool, distinct)


@dataclass(frozen=True)
class OfOneRow(Lift):
    """The set of the value of one row, or of its values together.

    A null alone makes no set, and one among several values neither, unless they are taken as a `whole`.
    """

    inputs: tuple[str, ...]
    kinds: tuple[Any, ...]
    whole: bool = False

    @property
    def element(self) -> Any:
        """The type of a member."""
        if len(self.kinds) == 1:
            return self.kinds[0]
        return pa.struct([(f"v{place}", kind) for place, kind in enumerate(self.kinds)])

    def columns(self, rows: Any) -> list[Any]:
        """No set where a null counts for nothing."""
        values = [rows[name].cast(kind) for name, kind in zip(self.inputs, self.kinds, strict=True)]
        absent = np.zeros(rows.num_rows, np.bool_)
        for each in () if self.whole and len(values) > 1 else values:
            absent |= each.is_null().to_numpy(zero_copy_only=False)
        member = (
            values[0] if len(values) == 1 else pa.StructArray.from_arrays(values, fields=list(self.element))
        )
        held = np.flatnonzero(~absent)
        ends = np.cumsum(~absent)
        offsets = pa.array(np.append(0, ends).astype(np.int32), mask=np.append(absent, False))
        return [pa.ListArray.from_arrays(offsets, member.take(pa.array(held))).cast(pa.list_(self.element))]


def collected_set(values: Sequence[str], *, whole: bool = False) -> str:
    """The set of values as Spark collects it.

    >>> collected_set(["a", "b"])
    'collect_set(struct(a AS v0, b AS v1)) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)'
    """
    if len(values) == 1:
        return f"collect_set({values[0]})"
    joint = ", ".join(f"{each} AS v{place}" for place, each in enumerate(values))
    known = " AND ".join(f"{each} IS NOT NULL" for each in values)
    return f"collect_set(struct({joint}))" + ("" if whole else f" FILTER (WHERE {known})")


class _SetPool:
    """Sets of numbers below `kinds`, end to end in one array, each known by its place among them."""

    def __init__(self, codes: Array, lengths: Array, kinds: int) -> None:
        self._bits = np.int64(max(1, int(kinds).bit_length()))
        # Sets of many overlapping windows are in memory together, so half the bytes matter.
        self._codes, self._used = codes.astype(np.int32), len(codes)
        self._lengths, self._starts = lengths, np.cumsum(lengths) - lengths

    def gathered(self, sets: Array) -> tuple[Array, Array]:
        """For each member of each of the given sets, the place of its set among them, and the member."""
        lengths = self._lengths[sets]
        owners = np.repeat(np.arange(len(sets), dtype=np.int64), lengths)
        shift = self._starts[sets] - (np.cumsum(lengths) - lengths)
        return owners, self._codes[np.arange(len(owners)) + np.repeat(shift, lengths)]

    def united(self, owners: Array, codes: Array, count: int) -> Array:
        """New sets 0 to `count` - 1, each of the codes with its number as owner; n log n."""
        pairs = (owners << self._bits) | codes
        pairs.sort()
        if len(pairs):
            pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
        lengths = np.bincount(pairs >> self._bits, minlength=count)
        starts = np.cumsum(lengths) - lengths + self._used
        self._append(pairs & ((np.int64(1) << self._bits) - np.int64(1)))
        first = len(self._lengths)
        self._lengths = np.concatenate([self._lengths, lengths])
        self._starts = np.concatenate([self._starts, starts])
        return np.arange(first, first + count, dtype=np.int64)

    def _append(self, codes: Array) -> None:
        needed = self._used + len(codes)
        if needed > len(self._codes):
            # Twice the room each time, so that many small merges copy every code a few times only.
            grown = np.empty(max(needed, 2 * len(self._codes)), np.int32)
            grown[: self._used] = self._codes[: self._used]
            self._codes = grown
        self._codes[self._used : needed] = codes
        self._used = needed


@dataclass(frozen=True)
class _Union:
    """A cell holds the number of its set in the pool, or -1 for the empty set."""

    pool: _SetPool

    def identity(self, cells: int) -> Lanes:
        """Empty sets."""
        return (np.full(cells, -1, np.int64),)

    def scatter(self, cells: int, at: Array, rows: Lanes) -> Lanes:
        """One sort of all members of all rows, unless each cell has one row and nothing is to merge."""
        present = np.flatnonzero(rows[0] >= 0)
        cell, held = at[present], rows[0][present]
        (lane,) = self.identity(cells)
        times = np.bincount(cell, minlength=cells)
        alone = times[cell] == 1
        lane[cell[alone]] = held[alone]
        if not alone.all():
            shared = np.flatnonzero(times > 1)
            place = np.empty(cells, np.int64)
            place[shared] = np.arange(len(shared))
            owners, codes = self.pool.gathered(held[~alone])
            lane[shared] = self.pool.united(place[cell[~alone]][owners], codes, len(shared))
        return (lane,)

    def combine(self, left: Lanes, right: Lanes, out: Lanes) -> None:
        """Pairs of which one side is empty cost nothing."""
        one, other = np.broadcast_arrays(left[0], right[0])
        both = (one >= 0) & (other >= 0) & (one != other)
        result = np.maximum(one, other)
        if both.any():
            sides = [self.pool.gathered(side[both]) for side in (one, other)]
            owners, codes = (np.concatenate(pair) for pair in zip(*sides, strict=True))
            result[both] = self.pool.united(owners, codes, int(both.sum()))
        np.copyto(out[0], result)


@dataclass(frozen=True)
class _LoadedSets:
    merge: Merge
    lanes: Lanes
    pool: _SetPool
    distinct: Any

    def store(self, lanes: Lanes) -> list[Any]:
        held = lanes[0] >= 0
        owners, codes = self.pool.gathered(lanes[0][held])
        lengths = np.zeros(len(held), np.int64)
        lengths[held] = np.bincount(owners, minlength=int(held.sum()))
        ends = np.cumsum(lengths)
        offsets = pa.array(np.append(0, ends).astype(np.int32), mask=np.append(~held, False))
        return [pa.ListArray.from_arrays(offsets, self.distinct.take(pa.array(codes)))]


def _has_floats(type_: Any) -> bool:
    if pa.types.is_nested(type_):
        return any(_has_floats(type_.field(place).type) for place in range(type_.num_fields))
    return bool(pa.types.is_floating(type_))


def numbered(column: Any) -> tuple[Array, Any]:
    """A number for each value and the distinct values by number.

    Equal is what Spark's DISTINCT takes for equal: all NaNs are, and both zeros, inside of arrays and structs
    too.

    >>> numbers, values = numbered(pa.array([0.0, 2.5, -0.0]))
    >>> numbers.tolist(), values.to_pylist()
    ([0, 1, 0], [0.0, 2.5])
    >>> numbered(pa.array([["a", None], [], ["a", None]]))[0].tolist()
    [0, 1, 0]
    """
    if not pa.types.is_nested(column.type):
        encoded = one_spelling(column).dictionary_encode(null_encoding="encode")
        return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary
    encoded = _spelled(column).dictionary_encode(null_encoding="encode")
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.empty(len(encoded.dictionary), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return numbers, column.take(pa.array(first))


def _spelled(column: Any) -> Any:
    """For each array or struct the numbers of its members as bytes, which are equal where the values are."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_struct(column.type):
        members = [numbered(each)[0] for each in column.flatten()]
        numbers = np.stack(members, axis=1) if members else np.empty((len(column), 0), np.int64)
        lengths = np.full(len(column), numbers.shape[1] * 8, np.int64)
    else:
        # flatten() leaves out what stands behind a null.
        numbers, _ = numbered(column.flatten())
        lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False) * np.int64(8)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    buffers = [
        pa.array(valid).buffers()[1],
        pa.py_buffer(offsets),
        pa.py_buffer(np.ascontiguousarray(numbers)),
    ]
    return pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
