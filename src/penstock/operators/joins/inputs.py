"""The rows of one side in an epoch, and the numbers of the keys that a new row may meet."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import BadJoin
from penstock.expressions.duck import evaluate
from penstock.operators.joins.keys import comparable, may_have_key, number_by_new
from penstock.operators.joins.spans import Mask, Numbers, Rows
from penstock.operators.joins.spec import REACH, Alone, Pair, Side
from penstock.state.chosen_rows import ChosenRows

__all__ = ["NumberedRows", "SideRows", "number_rows", "with_wanted_keys"]

# Numbering this many rows costs less than finding out which need no number.
_FEW = 1 << 14


@dataclass(frozen=True)
class SideRows:
    """All rows of one side in an epoch: the first `kept` are from earlier epochs, the others are new.

    No kept row has a null in its key or fails a condition on its side alone: such a row matches nothing and
    does not stay. Kept rows were checked
    when they were new, and nothing of them is read before it is needed: an epoch without new rows costs only
    a look at the kept times.
    """

    side: Side
    types: tuple[Any, ...]
    rows: ChosenRows
    kept: int
    new_time: Rows
    alone: Alone | None = None

    @classmethod
    def of(
        cls, side: Side, types: tuple[Any, ...], kept: Any, new: Any, alone: Alone | None = None
    ) -> "SideRows":
        """Kept rows, then new rows, without a copy; a row has to meet what is asked of it `alone`."""
        column = new[side.time]
        if column.null_count:
            raise BadJoin(
                f"{column.null_count} rows of a join have no {side.time!r}; "
                "reject rows without a time before the join"
            )
        if column.type != pa.int64() and not (
            pa.types.is_timestamp(column.type) and column.type.unit == "us"
        ):
            raise BadJoin(f"{side.time!r} is {column.type}; give microseconds, as timestamps or as int64")
        time = _joined(_micros(column))
        if len(time) and not -REACH < time.min() <= time.max() < REACH:
            raise BadJoin(f"{side.time!r} has values beyond 2**61; give times in microseconds")
        if not isinstance(kept, ChosenRows):
            kept = ChosenRows.of([(kept, None)], kept.schema)
        return cls(side, types, kept.and_those(new), kept.num_rows, time, alone)

    def __len__(self) -> int:
        return self.kept + len(self.new_time)

    @cached_property
    def time(self) -> Rows:
        """The times of all rows."""
        return _joined(_micros(self.rows[self.side.time]))

    @cached_property
    def oldest(self) -> int:
        """The least time of a kept row; after all times if there is none."""
        return min((int(each.min()) for each in self._kept_times()), default=REACH)

    @cached_property
    def newest(self) -> int:
        """The greatest time of a kept row; before all times if there is none."""
        return max((int(each.max()) for each in self._kept_times()), default=-REACH)

    def keys(self, rows: Rows | range) -> list[Any]:
        """The key columns of some rows, in the types in which they are compared."""
        if isinstance(rows, range):
            columns = [self.rows[name].slice(rows.start, len(rows)) for name in self.side.keys]
        else:
            columns = [_chunked(each) for each in self.rows.taken(self.side.keys, rows)]
        return comparable(columns, self.types)

    @cached_property
    def new_keys(self) -> list[Any]:
        """The key columns of the new rows."""
        return self.keys(range(self.kept, len(self)))

    def joinable(self, rows: Mask) -> Mask:
        """Clear the mask, in place, for rows that match nothing.

        These have a null in their key, or the condition cannot be true whatever the other row is.
        """
        if self._new_joinable is not None:
            rows[self.kept :] &= self._new_joinable
        return rows

    @cached_property
    def _new_joinable(self) -> Mask | None:
        """Which new rows can match; None if all can."""
        if not len(self.new_time):
            return None
        able = [pc.is_valid(column).to_numpy() for column in self.new_keys if column.null_count]
        if self.alone is not None:
            true = " AND ".join(f"coalesce({each}, false)" for each in self.alone.parts)
            new = self.rows.table(self.alone.columns).slice(self.kept)
            found = evaluate(f"SELECT {true} AS able FROM input", new)
            able.append(found["able"].to_numpy())
        return np.logical_and.reduce(able) if able else None

    def from_on(self, frontier: int | None) -> Mask:
        """Which rows the frontier has not passed."""
        if frontier is None or (self.oldest >= frontier and not (self.new_time < frontier).any()):
            return np.ones(len(self), np.bool_)
        if not len(self.new_time) and self.newest < frontier:
            return np.zeros(len(self), np.bool_)
        return self.time >= frontier

    @property
    def is_new(self) -> Mask:
        """Which rows are new."""
        new = np.zeros(len(self), np.bool_)
        new[self.kept :] = True
        return new

    def _kept_times(self) -> Iterator[Rows]:
        return _micros(self.rows[self.side.time].slice(0, self.kept))


def _chunked(column: Any) -> Any:
    return pa.chunked_array([column]) if isinstance(column, pa.Array) else column


def _micros(column: Any) -> Iterator[Rows]:
    """The times of a column without nulls, chunk by chunk and without a copy."""
    for chunk in column.chunks:
        if len(chunk):
            yield chunk.view(pa.int64()).to_numpy()


def _joined(parts: Iterator[Rows]) -> Rows:
    several = list(parts)
    if len(several) == 1:
        return several[0]
    return np.concatenate(several) if several else np.zeros(0, np.int64)


@dataclass(frozen=True)
class NumberedRows:
    """Rows of one side, by their places in its table, and the numbers of their keys."""

    rows: Rows
    key: Numbers


def with_wanted_keys(side: SideRows, rows: Rows | range, wanted: list[list[Any]]) -> Rows:
    """The kept rows that may have a wanted key; all given rows if there are no keys or few rows."""
    if not side.side.keys or len(rows) < _FEW:
        return np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows
    if isinstance(rows, range):
        return may_have_key(side.keys(rows), wanted) + rows.start
    return rows[may_have_key(side.keys(rows), wanted)]


def number_rows(left: SideRows, right: SideRows, new: Pair[Rows], old: Pair[Rows]) -> Pair[NumberedRows]:
    """The old and new rows of both sides whose key some new row has; equal keys get equal numbers."""
    chosen = [(left, new.left), (right, new.right), (left, old.left), (right, old.right)]
    if not left.side.keys:
        numbers = [np.zeros(len(rows), np.int64) for _, rows in chosen]
    else:
        columns = [side.keys(_neighbours(rows)) for side, rows in chosen]
        ours, theirs = number_by_new(columns[:2], columns[2:])
        numbers = [*ours, *theirs]
    held = [_numbered(rows, number) for (_, rows), number in zip(chosen, numbers, strict=True)]
    return Pair(_both(held[2], held[0]), _both(held[3], held[1]))


def _numbered(rows: Rows, number: Numbers) -> NumberedRows:
    if not len(number) or number.min() >= 0:
        return NumberedRows(rows, number)
    at = np.flatnonzero(number >= 0)
    return NumberedRows(rows[at], number[at])


def _both(old: NumberedRows, new: NumberedRows) -> NumberedRows:
    return NumberedRows(np.concatenate([old.rows, new.rows]), np.concatenate([old.key, new.key]))


def _neighbours(rows: Rows) -> Rows | range:
    """Adjacent rows as a range, which needs no copy."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return range(int(rows[0]), int(rows[-1]) + 1)
    return rows
