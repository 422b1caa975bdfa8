"""A kind of partial that is the set of values itself, for exact counts of distinct ones.

A pane holds each value of a key once; `member_pool` says how sets are merged. The sets of windows exist only
while these are closed: n windows that close at once take 4 bytes for each member of about 3 n sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.kinds import Loaded
from penstock.aggregates.member_pool import MemberPool, Union
from penstock.aggregates.merges import Array, Lanes, Merge
from penstock.aggregates.partials import Lift
from penstock.state.keys import normal

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
        pool = MemberPool(len(distinct), counted=False)
        sets = pool.added((codes,), lengths)
        if _has_floats(self.element):
            # What Spark collected may hold two spellings of one value.
            sets = pool.united(*pool.gathered(sets), len(lists))
        return _LoadedSets(Union(pool), (np.where(lengths > 0, sets, -1),), pool, distinct)


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


@dataclass(frozen=True)
class _LoadedSets:
    merge: Merge
    lanes: Lanes
    pool: MemberPool
    distinct: Any

    def store(self, lanes: Lanes) -> list[Any]:
        lengths, (codes,) = self.pool.runs(lanes[0])
        ends = np.cumsum(lengths)
        offsets = pa.array(np.append(0, ends).astype(np.int32), mask=np.append(lanes[0] < 0, False))
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
        encoded = normal(column).dictionary_encode(null_encoding="encode")
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
