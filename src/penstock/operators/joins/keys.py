"""Keys of rows: numbers that are equal for equal keys, and a cheap test for which rows need one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.operators.joins.spans import Numbers, Rows
from penstock.state.keys import normal

__all__ = ["comparable", "may_have_key", "number_by_new"]

# Places of the bitmap of close integers for each new value, and how many are always allowed.
_DENSE_ROOM, _LEAST_DENSE_ROOM = 16, 1 << 16
# Slots of the bitmap of hashed keys for each key, so that at most one in 32 of the other keys passes.
_SLOTS = 32
_LEAST_BITS, _MOST_BITS = 10, 24
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Rows hashed at a time: what a block needs stays in the cache.
_BLOCK = 1 << 14


def comparable(columns: Sequence[Any], types: tuple[Any, ...]) -> list[Any]:
    """Key columns in the types in which they are compared."""
    return [
        normal(column if column.type == type_ else column.cast(type_))
        for column, type_ in zip(columns, types, strict=True)
    ]


def number_by_new(new: list[list[Any]], kept: list[list[Any]]) -> tuple[list[Numbers], list[Numbers]]:
    """Numbers of the rows of new and of kept tables, each given as its key columns.

    Equal keys get equal numbers. A key that no new row has gets -1, and so does a key with a null. Only
    distinct new keys enter a hash table, and a kept row costs one look-up per key column. Integers that lie
    close together need no hash table: their number is the distance from the least one, and a bitmap says
    which are new; that takes a fifth of the time.

    >>> ab, bc = [pa.chunked_array([["a", "b", None]])], [pa.chunked_array([["b", "c"]])]
    >>> [each.tolist() for part in number_by_new([ab], [bc]) for each in part]
    [[0, 1, -1], [1, -1]]
    """
    tables = new + kept
    numbers, *others = [_codes(columns, len(new)) for columns in zip(*tables, strict=True)]
    for codes in others:
        width = 1 + max((int(each.max()) for each in codes if len(each)), default=0)
        joint = [
            np.where((one < 0) | (other < 0), -1, one * width + other)
            for one, other in zip(numbers, codes, strict=True)
        ]
        # Numbers are made dense again at every column, so that the product of many columns cannot overflow.
        numbers = _codes([pa.chunked_array([pa.array(each, mask=each < 0)]) for each in joint], len(new))
    return numbers[: len(new)], numbers[len(new) :]


def _codes(columns: Any, new: int) -> list[Numbers]:
    """A number for every value that is in one of the first `new` columns; -1 for others."""
    dense = _dense(columns, new) if pa.types.is_integer(columns[0].type) else None
    if dense is not None:
        return dense
    chunks = [chunk for column in columns[:new] for chunk in column.chunks]
    values = pc.drop_null(pc.unique(pa.chunked_array(chunks, columns[0].type)))
    return [
        pc.fill_null(pc.index_in(column, value_set=values), -1).to_numpy().astype(np.int64)
        for column in columns
    ]


def _dense(columns: Any, new: int) -> list[Numbers] | None:
    """Distances from the least new value, or None if the new values are too far apart for a bitmap."""
    found = [(_integers(column), _valid(column)) for column in columns]
    fresh = [values[valid] if valid is not None else values for values, valid in found[:new]]
    held = [values for values in fresh if len(values)]
    if not held:
        return [np.full(len(values), -1, np.int64) for values, _ in found]
    least, most = min(int(each.min()) for each in held), max(int(each.max()) for each in held)
    if most - least >= _DENSE_ROOM * sum(len(each) for each in held) + _LEAST_DENSE_ROOM:
        return None
    # The last place belongs to no value: values outside go there.
    known = np.zeros(most - least + 2, np.bool_)
    for each in held:
        known[each - least] = True
    return [_distances(values, valid, known, least, most) for values, valid in found]


def _distances(values: Any, valid: Any, known: Any, least: int, most: int) -> Numbers:
    inside = (values >= least) & (values <= most)
    if valid is not None:
        inside &= valid
    place = np.where(inside, values - least, most - least + 1)
    numbers: Numbers = np.where(known[place], place, -1)
    return numbers


def _integers(column: Any) -> Numbers:
    """The values in 64 bits: differences of narrower ones would wrap around."""
    values: Numbers = pc.fill_null(column, 0).to_numpy().astype(np.int64, copy=False)
    return values


def _valid(column: Any) -> Any:
    return pc.is_valid(column).to_numpy() if column.null_count else None


def may_have_key(columns: list[Any], wanted: list[list[Any]]) -> Rows:
    """Places of the rows whose key may be one of the wanted keys; both are given as key columns.

    No row with a wanted key is missed. Only one column is tested, a number if there is one; it has no nulls.
    Numbers go through a bitmap of hashed wanted keys that stays in the cache, at 2-4 ns a row; other types
    through the hash table of Arrow, at 12-16 ns. The rows that pass are numbered exactly afterwards, so a
    collision only costs time.

    >>> may_have_key([pa.chunked_array([["a", "b", "c"]])], [[pa.chunked_array([["c", "a", None]])]]).tolist()
    [0, 2]
    """
    chosen = next((place for place, each in enumerate(columns) if _is_number(each.type)), 0)
    column = columns[chosen]
    chunks = [chunk for key in wanted for chunk in key[chosen].chunks]
    values = pc.drop_null(pc.unique(pa.chunked_array(chunks, column.type)))
    if not len(values):
        return np.zeros(0, np.int64)
    if _is_number(column.type):
        return _by_bitmap(column, _words(values))
    return np.flatnonzero(pc.is_in(column, value_set=values).to_numpy())


def _is_number(type_: Any) -> bool:
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_date(type_)
        or pa.types.is_duration(type_)
    )


def _words(array: Any) -> Any:
    """Numbers of any width as 64-bit words; equal numbers of one type give equal words."""
    plain = array.view(f"int{array.type.bit_width}").to_numpy()
    return plain.astype(np.int64, copy=False).view(np.uint64)


def _by_bitmap(column: Any, wanted: Any) -> Rows:
    bits = min(max(_LEAST_BITS, (_SLOTS * len(wanted) - 1).bit_length()), _MOST_BITS)
    shift = np.uint64(64 - bits)
    held = np.zeros(1 << bits, np.bool_)
    held[(wanted * _GOLDEN) >> shift] = True
    found, start = [np.zeros(0, np.int64)], 0
    for chunk in column.chunks:
        words = _words(chunk)
        for first in range(0, len(words), _BLOCK):
            slots = words[first : first + _BLOCK] * _GOLDEN
            slots >>= shift
            # Every slot is in range; "clip" only saves numpy the check.
            passed = np.flatnonzero(held.take(slots.view(np.int64), mode="clip"))
            passed += start + first
            found.append(passed)
        start += len(words)
    return np.concatenate(found)
