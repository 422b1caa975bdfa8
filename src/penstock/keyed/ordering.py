"""Rows by key and time: grouped by a hash that is verified, so that two keys of one hash stay apart.

Order never depends on arrival: rows of one key and one time go by their content.
"""

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.keyed.same_keys import same_keys

__all__ = ["Ordered", "in_event_order", "ordered"]

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ordered:
    """Row numbers by key, then time; the number of the key of each; where the rows of each key begin."""

    order: Places
    groups: Places
    first: Places


def ordered(hashes: Hashes, times: Places, keys: Any) -> Ordered:
    """Put rows in order of their keys' hashes, then keys, then times; rows of one time stay as they are.

    >>> found = ordered(np.array([9, 2, 9], np.uint64), np.array([5, 0, 3]), pa.table({"k": ["a", "b", "a"]}))
    >>> found.order.tolist(), found.groups.tolist()
    ([1, 2, 0], [0, 1, 1])
    """
    order = _by_hash(hashes, times)
    changes = np.diff(hashes[order]) != 0
    if not same_keys(*_neighbours(keys, order, ~changes)).all():
        numbers = _numbers(keys)
        order = np.lexsort((times, numbers, hashes))
        changes = (np.diff(hashes[order]) != 0) | (np.diff(numbers[order]) != 0)
    first = np.flatnonzero(np.concatenate([np.ones(min(len(order), 1), np.bool_), changes]))
    groups = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
    return Ordered(order, groups, first)


def in_event_order(found: Ordered, times: Places, content: Any) -> Ordered:
    """The same with rows of one key and one time sorted by their content; costs nothing if there are none."""
    moments = times[found.order]
    tied = (np.diff(moments) == 0) & (np.diff(found.groups) == 0)
    if not tied.any():
        return found
    places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
    runs = np.cumsum(~np.append(False, tied))[places]
    rows = found.order[places]
    order = found.order.copy()
    order[places] = rows[np.lexsort((_ranks(content.take(pa.array(rows))), runs))]
    return Ordered(order, found.groups, found.first)


def _by_hash(hashes: Hashes, times: Places) -> Places:
    by_time = _by_time(times)
    # The high bits of a hash and a place below them sort as one number, ten times as fast as a stable sort.
    bits = np.uint64(max(1, len(hashes).bit_length()))
    low = (np.uint64(1) << bits) - np.uint64(1)
    packed = (hashes if by_time is None else hashes[by_time]) & ~low
    packed |= np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    places = (packed & low).astype(np.int64)
    order = places if by_time is None else by_time[places]
    found = hashes[order]
    if (found[1:] < found[:-1]).any():
        # Two hashes that differ only in their low bits lie mixed.
        return np.lexsort((times, hashes))
    return order


def _by_time(times: Places) -> Places | None:
    """Row numbers by time, None if the rows are in that order already."""
    return None if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable")


def _neighbours(keys: Any, order: Places, alike: NDArray[np.bool_]) -> tuple[Any, Any]:
    """The keys of rows that follow each other under one hash."""
    at = np.flatnonzero(alike)
    return keys.take(pa.array(order[at])), keys.take(pa.array(order[at + 1]))


def _numbers(keys: Any) -> Places:
    """A number for every distinct key; null is a value like any other."""
    numbers = np.zeros(keys.num_rows, np.int64)
    for column in keys.columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode")
        joint = numbers * max(1, len(codes.dictionary)) + codes.indices.to_numpy(zero_copy_only=False)
        numbers = np.unique(joint, return_inverse=True)[1].astype(np.int64)
    return numbers


def _ranks(content: Any) -> Places:
    """Places of rows among each other by all columns; equal rows in any order."""
    plain = pa.table({str(place): _sortable(column) for place, column in enumerate(content.columns)})
    ranks = np.empty(content.num_rows, np.int64)
    if not plain.num_columns:
        return np.zeros(content.num_rows, np.int64)
    order = pc.sort_indices(plain, [(name, "ascending") for name in plain.column_names])
    ranks[order.to_numpy()] = np.arange(content.num_rows)
    return ranks


def _sortable(column: Any) -> Any:
    if not pa.types.is_nested(column.type):
        return column
    with duckdb.connect() as engine:
        engine.register("input", pa.table({"c": column}))
        return engine.sql("SELECT hash(c) AS c FROM input").to_arrow_table()["c"]
