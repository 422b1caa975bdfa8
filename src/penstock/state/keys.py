"""Keys in Arrow tables: compared, numbered, ordered, looked up and merged, without a loop over rows.

A hash only says where a key may be; the keys themselves decide, so two keys with one hash stay separate. Null
is a key like any other, all NaNs are equal, and so are both zeros.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.columns import KEY

__all__ = [
    "KEY",
    "Ordered",
    "find",
    "key_columns",
    "newest",
    "normal",
    "normal_keys",
    "number_keys",
    "ordered",
    "same_keys",
]

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


def key_columns(names: Sequence[str]) -> list[str]:
    """The key columns among the column names, in the order of their numbers.

    >>> key_columns(["_ps_pane", "_ps_key1", "_ps_key0", "n"])
    ['_ps_key0', '_ps_key1']
    """
    present = set(names)
    return [name for name in map(KEY.format, range(len(names))) if name in present]


def normal(column: Any) -> Any:
    """The column with equal bits for equal values: to Spark all NaNs are equal, and so are both zeros.

    >>> normal(pa.array([-0.0, None])).to_pylist()
    [0.0, None]
    """
    if not pa.types.is_floating(column.type):
        return column
    nan, zero = (pa.scalar(value, column.type) for value in (float("nan"), 0.0))
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))


def normal_keys(keys: Any) -> Any:
    """A table of keys in which equal keys have equal bits."""
    return pa.table([normal(column) for column in keys.columns], schema=keys.schema)


def same_keys(left: Any, right: Any) -> NDArray[np.bool_]:
    """For each row, whether two tables of normal keys have the same key; one comparison per column.

    >>> same_keys(pa.table({"k": ["a", None, "b"]}), pa.table({"k": ["a", None, None]})).tolist()
    [True, True, False]
    """
    found = np.ones(left.num_rows, np.bool_)
    for ours, theirs in zip(left.columns, right.columns, strict=True):
        equal = pc.fill_null(pc.equal(ours, theirs), False)
        if ours.null_count and theirs.null_count:
            equal = pc.or_(equal, pc.and_(pc.is_null(ours), pc.is_null(theirs)))
        if pa.types.is_floating(ours.type):
            nan = pc.and_(pc.is_nan(ours), pc.is_nan(theirs))
            equal = pc.or_(equal, pc.fill_null(nan, False))
        found &= equal.to_numpy(zero_copy_only=False) if isinstance(equal, pa.Array) else equal.to_numpy()
    return found


def number_keys(columns: list[Any], rows: int) -> tuple[Places, list[Any]]:
    """A number for every distinct combination of keys, and the distinct keys by number, which are normal.

    One pass of hashing per column.

    >>> numbers, keys = number_keys([pa.chunked_array([["a", None, "a"]])], 3)
    >>> numbers.tolist(), keys[0].to_pylist()
    ([0, 1, 0], ['a', None])
    """
    if not columns:
        return np.zeros(rows, np.int64), []
    columns = [normal(column).combine_chunks() for column in columns]
    encoded = [column.dictionary_encode(null_encoding="encode") for column in columns]
    numbers = encoded[0].indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if len(columns) == 1:
        return numbers, [encoded[0].dictionary]
    for each in encoded[1:]:
        numbers = numbers * len(each.dictionary) + each.indices.to_numpy(zero_copy_only=False)
        # Numbered again after every column, so that the product of many columns cannot overflow.
        joint = pa.array(numbers).dictionary_encode()
        numbers = joint.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.empty(len(joint.dictionary), np.int64)
    first[numbers[::-1]] = np.arange(rows)[::-1]
    return numbers, [column.take(pa.array(first)) for column in columns]


@dataclass(frozen=True, eq=False)
class Ordered:
    """Row numbers by key, then time; the key number of each row; where the rows of each key begin."""

    order: Places
    groups: Places
    first: Places


def ordered(hashes: Hashes, times: Places, keys: Any) -> Ordered:
    """Order rows by the hash of their key, then key, then time; rows with one time keep their order.

    >>> found = ordered(np.array([9, 2, 9], np.uint64), np.array([5, 0, 3]), pa.table({"k": ["a", "b", "a"]}))
    >>> found.order.tolist(), found.groups.tolist()
    ([1, 2, 0], [0, 1, 1])
    """
    order = _by_hash(hashes, times)
    changes = np.diff(hashes[order]) != 0
    if not same_keys(*_neighbours(keys, order, ~changes)).all():
        numbers, _ = number_keys(keys.columns, keys.num_rows)
        order = np.lexsort((times, numbers, hashes))
        changes = (np.diff(hashes[order]) != 0) | (np.diff(numbers[order]) != 0)
    first = np.flatnonzero(np.concatenate([np.ones(min(len(order), 1), np.bool_), changes]))
    groups = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
    return Ordered(order, groups, first)


def find(hashes: Hashes, keys: Any, wanted: Hashes, wanted_keys: Any) -> Places:
    """The row of each wanted key in a table of ascending `hashes` and their `keys`, -1 if it has none.

    A lookup of k keys among n rows costs O(k log n).

    >>> known = np.array([1, 4, 4], np.uint64), pa.table({"k": ["a", "b", "c"]})
    >>> find(*known, np.array([4, 4, 9], np.uint64), pa.table({"k": ["c", "d", "a"]})).tolist()
    [2, -1, -1]
    """
    found = np.full(len(wanted), -1, np.int64)
    asked = np.arange(len(wanted))
    at = np.searchsorted(hashes, wanted)
    while len(asked):
        inside = np.minimum(at, max(0, len(hashes) - 1))
        alike = (at < len(hashes)) & (hashes[inside] == wanted[asked]) if len(hashes) else at < 0
        asked, at = asked[alike], at[alike]
        same = same_keys(keys.take(pa.array(at)), wanted_keys.take(pa.array(asked)))
        found[asked[same]] = at[same]
        asked, at = asked[~same], at[~same] + 1
    return found


def newest(tables: list[Any], hashed: str, keys: list[str]) -> Any:
    """One table of the newest row of every key, in hash order; `tables` go from oldest to newest.

    It takes memory for all tables and O(rows log rows) time.

    >>> old = pa.table({"h": pa.array([1, 5]), "k": ["a", "b"], "n": [1, 1]})
    >>> new = pa.table({"h": pa.array([5]), "k": ["b"], "n": [2]})
    >>> newest([old, new], "h", ["k"])["n"].to_pylist()
    [1, 2]
    """
    together = pa.concat_tables(tables).combine_chunks()
    age = np.repeat(np.arange(len(tables))[::-1], [table.num_rows for table in tables])
    hashes = together[hashed].to_numpy().view(np.uint64)
    found = ordered(hashes, age, together.select(keys))
    return together.take(pa.array(found.order[found.first]))


def _by_hash(hashes: Hashes, times: Places) -> Places:
    by_time = None if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable")
    # The high bits of a hash above a position sort as one number, ten times faster than a stable sort.
    bits = np.uint64(max(1, len(hashes).bit_length()))
    low = (np.uint64(1) << bits) - np.uint64(1)
    packed = (hashes if by_time is None else hashes[by_time]) & ~low
    packed |= np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    places = (packed & low).astype(np.int64)
    order = places if by_time is None else by_time[places]
    found = hashes[order]
    if (found[1:] < found[:-1]).any():
        # Two hashes that differ only in their low bits may be interleaved.
        return np.lexsort((times, hashes))
    return order


def _neighbours(keys: Any, order: Places, alike: NDArray[np.bool_]) -> tuple[Any, Any]:
    """The keys of adjacent rows with one hash."""
    at = np.flatnonzero(alike)
    return keys.take(pa.array(order[at])), keys.take(pa.array(order[at + 1]))
