"""A kind of partial that is the values themselves, each with the number of its tuples.

A pane holds each value of a key once; `member_pool` says how bags are merged. Exact percentiles and modes
follow from it.
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
from penstock.aggregates.partials import Lift, PaneColumns, arrow_of
from penstock.aggregates.sets import numbered
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
        codes, distinct = numbered(pairs.field("v"))
        pool = MemberPool(len(distinct), counted=True)
        owners = np.repeat(np.arange(len(lists), dtype=np.int64), lengths)
        counts = pairs.field("n").to_numpy(zero_copy_only=False)
        bags = pool.united(owners, (codes, counts), len(lists))
        return _LoadedBags(Union(pool), (np.where(lengths > 0, bags, -1),), pool, distinct)


@dataclass(frozen=True)
class _LoadedBags:
    merge: Merge
    lanes: Lanes
    pool: MemberPool
    distinct: Any

    def store(self, lanes: Lanes) -> list[Any]:
        lengths, (codes, counts) = self.pool.runs(lanes[0])
        return [_lists(lengths, lanes[0] < 0, self.distinct.take(pa.array(codes)), pa.array(counts))]


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
