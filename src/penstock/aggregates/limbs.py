"""Exact sums of 64- and 128-bit integers as sums of 32-bit limbs.

A number is split into limbs of 32 bits, each kept in an int64 lane, so 2^31 rows can be added
lane by lane before a carry could be lost; joining propagates the carries and checks the range.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.aggregates.merges import Array, Elementwise, Lanes
from penstock.errors import AggregateOverflow

__all__ = ["MERGE", "join", "split"]

_INT64 = np.dtype(np.int64)
MERGE = {count: Elementwise(np.add, 0, (_INT64,) * count) for count in (2, 4)}
_MASK = (1 << 32) - 1


def split(column: Any) -> Lanes:
    """The limbs of a bigint or decimal column, lowest first; the highest carries the sign.

    >>> [lane.tolist() for lane in split(pa.array([-1, 2**40]))]
    [[4294967295, 0], [-1, 256]]
    """
    words = _words(column)
    low = tuple(words[:, place].astype(np.int64) for place in range(words.shape[1] - 1))
    lanes = (*low, words[:, -1].view(np.int32).astype(np.int64))
    if column.null_count:
        absent = column.is_null().to_numpy(zero_copy_only=False)
        for lane in lanes:
            lane[absent] = 0
    return lanes


def join(lanes: Lanes, type_: Any, absent: Array | None) -> Any:
    """The column of the given type that the limbs stand for; AggregateOverflow when one does not fit.

    >>> join(split(pa.array([-5, 7])), pa.int64(), None).to_pylist()
    [-5, 7]
    """
    carry = np.zeros(len(lanes[0]), np.int64)
    words = np.empty((len(carry), len(lanes)), np.uint32)
    for place, lane in enumerate(lanes):
        total = lane + carry
        words[:, place] = (total & _MASK).astype(np.uint32)
        carry = total >> 32
    top = words[:, -1].view(np.int32) >> 31
    if np.any(carry != top):
        raise _overflow(type_)
    nulls = None if absent is None else pa.array(~absent).buffers()[1]
    wide = type_ if pa.types.is_integer(type_) else pa.decimal128(38, type_.scale)
    column = pa.Array.from_buffers(wide, len(words), [nulls, pa.py_buffer(np.ascontiguousarray(words))])
    try:
        return column.cast(type_)
    except pa.ArrowInvalid as error:
        raise _overflow(type_) from error


def _words(column: Any) -> Array:
    if pa.types.is_integer(column.type):
        values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(values).view(np.uint32).reshape(-1, 2)
    raw = np.frombuffer(column.buffers()[1], np.uint32)[: (column.offset + len(column)) * 4]
    return raw.reshape(-1, 4)[column.offset :]


def _overflow(type_: Any) -> AggregateOverflow:
    return AggregateOverflow(
        f"a sum does not fit its result type {type_}; cast the column to a wider decimal or to double"
    )
