"""A kind of partial that is the values themselves, each with the number of its tuples.

A channel numbers all values that it works on together once, so a bag is a run of ascending numbers with their
counts, and merging any number of pairs of bags is one sort of numbers. A pane holds each value of a key once.
Exact percentiles and modes follow from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.kinds import Loaded, one_spelling
from penstock.aggregates.merges import Array, Lanes, Merge
from penstock.aggregates.partials import Lift, PaneColumns, arrow_of
from penstock.expressions.scalar import Expression

__all__ = ["Bags", "Members", "bag_of", "members"]


def bag_of(value: Expression, pane: PaneColumns) -> str:
    """The column with the values of an expression and how often each is there; nulls are left out."""
    type_ = arrow_of(value)
    combine = f"transform(collect_list({value.sql}), v -> struct(v AS v, 1L AS n))"
    return pane.partial(Bags(type_), (combine,), _OfOneValue(pane.input(value), type_)).name


@dataclass(frozen=True)
class Bags:
    """The values of a pane and key with their counts as a list without nulls; null for none."""

    element: Any
    summary: ClassVar[str] = ""

    @property
    def types(self) -> tuple[Any, ...]:
        """One list of pairs."""
        return (_list_of(self.element),)

    def load(self, columns: Sequence[Any]) -> Loaded:
        """Equal values of all rows get one number, and each bag has each value once."""
        (lists,) = columns
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        pairs = lists.flatten()
        codes, distinct = _numbered(pairs.field("v"))
        pool = _BagPool(len(distinct))
        owners = np.repeat(np.arange(len(lists), dtype=np.int64), lengths)
        bags = pool.united(owners, codes, pairs.field("n").to_numpy(zero_copy_only=False), len(lists))
        return _LoadedBags(_Union(pool), (np.where(lengths > 0, bags, -1),), pool, distinct)


class _BagPool:
    """Bags of numbers below `kinds`, end to end in two arrays, each known by its place among them."""

    def __init__(self, kinds: int) -> None:
        self._bits = np.int64(max(1, int(kinds).bit_length()))
        self._codes, self._counts, self._used = np.empty(0, np.int32), np.empty(0, np.int64), 0
        self._lengths, self._starts = np.empty(0, np.int64), np.empty(0, np.int64)

    def gathered(self, bags: Array) -> tuple[Array, Array, Array]:
        """For each member of each of the given bags: the place of its bag, the member, its count."""
        lengths = self._lengths[bags]
        owners = np.repeat(np.arange(len(bags), dtype=np.int64), lengths)
        shift = self._starts[bags] - (np.cumsum(lengths) - lengths)
        at = np.arange(len(owners)) + np.repeat(shift, lengths)
        return owners, self._codes[at], self._counts[at]

    def united(self, owners: Array, codes: Array, counts: Array, count: int) -> Array:
        """New bags 0 to `count` - 1, each of the codes with its number as owner; n log n."""
        pairs = (owners << self._bits) | codes
        order = np.argsort(pairs, kind="stable")
        pairs, counts = pairs[order], counts[order]
        if len(pairs):
            first = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
            pairs, counts = pairs[first], np.add.reduceat(counts, first)
        lengths = np.bincount(pairs >> self._bits, minlength=count)
        starts = np.cumsum(lengths) - lengths + self._used
        self._append(pairs & ((np.int64(1) << self._bits) - np.int64(1)), counts)
        known = len(self._lengths)
        self._lengths = np.concatenate([self._lengths, lengths])
        self._starts = np.concatenate([self._starts, starts])
        return np.arange(known, known + count, dtype=np.int64)

    def _append(self, codes: Array, counts: Array) -> None:
        needed = self._used + len(codes)
        if needed > len(self._codes):
            # Twice the room each time, so that many small merges copy every member a few times only.
            room = max(needed, 2 * len(self._codes))
            self._codes, self._counts = (
                np.concatenate([held[: self._used], np.empty(room - self._used, held.dtype)])
                for held in (self._codes, self._counts)
            )
        self._codes[self._used : needed], self._counts[self._used : needed] = codes, counts
        self._used = needed


@dataclass(frozen=True)
class _Union:
    """A cell holds the number of its bag in the pool, or -1 for the empty bag."""

    pool: _BagPool

    def identity(self, cells: int) -> Lanes:
        """Empty bags."""
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
            owners, codes, counts = self.pool.gathered(held[~alone])
            lane[shared] = self.pool.united(place[cell[~alone]][owners], codes, counts, len(shared))
        return (lane,)

    def combine(self, left: Lanes, right: Lanes, out: Lanes) -> None:
        """Pairs of which one side is empty cost nothing."""
        one, other = np.broadcast_arrays(left[0], right[0])
        both = (one >= 0) & (other >= 0)
        result = np.maximum(one, other)
        if both.any():
            sides = [self.pool.gathered(side[both]) for side in (one, other)]
            owners, codes, counts = (np.concatenate(pair) for pair in zip(*sides, strict=True))
            result[both] = self.pool.united(owners, codes, counts, int(both.sum()))
        np.copyto(out[0], result)


@dataclass(frozen=True)
class _LoadedBags:
    merge: Merge
    lanes: Lanes
    pool: _BagPool
    distinct: Any

    def store(self, lanes: Lanes) -> list[Any]:
        held = lanes[0] >= 0
        owners, codes, counts = self.pool.gathered(lanes[0][held])
        lengths = np.zeros(len(held), np.int64)
        lengths[held] = np.bincount(owners, minlength=int(held.sum()))
        return [_lists(lengths, ~held, self.distinct.take(pa.array(codes)), pa.array(counts))]


@dataclass(frozen=True)
class _OfOneValue(Lift):
    """The bag of the value of one row."""

    input: str
    type: Any

    def columns(self, rows: Any) -> list[Any]:
        """No bag where the value is null."""
        value = rows[self.input].cast(self.type)
        held = value.is_valid().to_numpy(zero_copy_only=False)
        kept = value.filter(pa.array(held))
        return [_lists(held.astype(np.int64), ~held, kept, pa.array(np.ones(len(kept), np.int64)))]


@dataclass(frozen=True)
class Members:
    """The members of many bags: the bag of each, its value, and how often it is there."""

    owners: Array
    values: Any
    counts: Array


def members(lists: Any) -> Members:
    """What is in a column of bags."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    pairs = lists.flatten()
    owners = np.repeat(np.arange(len(lists), dtype=np.int64), lengths)
    return Members(owners, pairs.field("v"), pairs.field("n").to_numpy(zero_copy_only=False))


def _list_of(element: Any) -> Any:
    return pa.list_(pa.struct([("v", element), ("n", pa.int64())]))


def _lists(lengths: Array, absent: Array, values: Any, counts: Any) -> Any:
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32), mask=np.append(absent, False))
    pairs = pa.StructArray.from_arrays([values, counts], names=["v", "n"])
    return pa.ListArray.from_arrays(offsets, pairs).cast(_list_of(values.type))


def _numbered(column: Any) -> tuple[Array, Any]:
    """A number for each value and the distinct values by number; all NaNs are one, and both zeros."""
    encoded = one_spelling(column).dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary
