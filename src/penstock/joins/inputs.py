"""All rows of one side in an epoch: the kept ones, then the new ones.

What is kept was checked when it was new, and nothing of it is looked at before it is needed: an epoch that
brings nothing costs no more than a glance at the kept times.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import BadJoin
from penstock.joins.join import REACH, Side
from penstock.joins.numbering import key_columns
from penstock.joins.spans import Rows
from penstock.joins.state import Mask

__all__ = ["Input"]


@dataclass(frozen=True)
class Input:
    """A side's rows, of which the first `kept` were kept from earlier epochs, and the times of the new ones.

    No kept row has a null in its key, for such a row can match nothing and does not stay.
    """

    side: Side
    types: tuple[Any, ...]
    rows: Any
    kept: int
    new_time: Rows

    @classmethod
    def of(cls, side: Side, types: tuple[Any, ...], kept: Any, new: Any) -> "Input":
        """Put kept and new rows one after another, without a copy."""
        column = new[side.time]
        if column.null_count:
            raise BadJoin(
                f"{column.null_count} rows of a join have no {side.time!r}; reject rows without a time before"
            )
        if column.type != pa.int64() and not (
            pa.types.is_timestamp(column.type) and column.type.unit == "us"
        ):
            raise BadJoin(f"{side.time!r} is {column.type}; give microseconds, as timestamps or as int64")
        time = _joined(_micros(column))
        if len(time) and not -REACH < time.min() <= time.max() < REACH:
            raise BadJoin(f"{side.time!r} has values beyond 2**61; give times in microseconds")
        return cls(side, types, pa.concat_tables([kept, new]), kept.num_rows, time)

    def __len__(self) -> int:
        return self.kept + len(self.new_time)

    @cached_property
    def time(self) -> Rows:
        """The times of all rows."""
        return _joined(_micros(self.rows[self.side.time]))

    @cached_property
    def oldest(self) -> int:
        """The least time of a kept row; beyond all times if there is none."""
        return min((int(each.min()) for each in self._kept_times()), default=REACH)

    @cached_property
    def newest(self) -> int:
        """The greatest time of a kept row; before all times if there is none."""
        return max((int(each.max()) for each in self._kept_times()), default=-REACH)

    def keys(self, rows: Rows | range) -> list[Any]:
        """The key columns of some rows, in the types in which they are compared."""
        chosen = self.rows.select(self.side.keys)
        if isinstance(rows, range):
            chosen = chosen.slice(rows.start, rows.stop - rows.start)
        else:
            chosen = chosen.take(pa.array(rows))
        return key_columns(chosen, self.side.keys, self.types)

    @cached_property
    def new_keys(self) -> list[Any]:
        """The key columns of the new rows."""
        return self.keys(range(self.kept, len(self)))

    def joinable(self, rows: Mask) -> Mask:
        """Of some rows, in place, those without a null in their key; others match nothing."""
        for column in self.new_keys:
            if column.null_count:
                rows[self.kept :] &= pc.is_valid(column).to_numpy()
        return rows

    def from_on(self, frontier: int | None) -> Mask:
        """Which rows a frontier has not passed."""
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
