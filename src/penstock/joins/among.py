"""Which of many kept rows may have the key of one of a few new rows; none that does is missed.

Numbers go through a bitmap of hashed new keys that stays in the cache, at 2-4 ns a row; other types through
Arrow's hash table, at 12-16 ns. What passes is numbered exactly afterwards, so a collision costs time only.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.joins.spans import Rows

__all__ = ["among"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Slots for each new key, so that a 32nd of other keys passes at most.
_ROOM = 32
_LEAST_BITS, _MOST_BITS = 10, 24
# Rows at a time: what a block needs stays in the cache.
_BLOCK = 1 << 14


def among(columns: list[Any], wanted: list[list[Any]]) -> Rows:
    """Places of the rows whose key may be one of the wanted ones, each given as its key columns.

    Only one column is looked at, a number if there is one; it has no nulls.

    >>> among([pa.chunked_array([["a", "b", "c"]])], [[pa.chunked_array([["c", "a", None]])]]).tolist()
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
    bits = min(max(_LEAST_BITS, (_ROOM * len(wanted) - 1).bit_length()), _MOST_BITS)
    shift = np.uint64(64 - bits)
    held = np.zeros(1 << bits, np.bool_)
    held[(wanted * _GOLDEN) >> shift] = True
    found, start = [np.zeros(0, np.int64)], 0
    for chunk in column.chunks:
        words = _words(chunk)
        for first in range(0, len(words), _BLOCK):
            slots = words[first : first + _BLOCK] * _GOLDEN
            slots >>= shift
            # Every slot is in range; "clip" only spares numpy the check.
            passed = np.flatnonzero(held.take(slots.view(np.int64), mode="clip"))
            passed += start + first
            found.append(passed)
        start += len(words)
    return np.concatenate(found)
