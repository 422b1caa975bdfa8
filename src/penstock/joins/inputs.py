"""All rows of one side in an epoch: the kept ones, then the new ones."""

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
    """A side's rows, of which the first `kept` were kept from earlier epochs."""

    side: Side
    types: tuple[Any, ...]
    rows: Any
    kept: int
    time: Rows

    @classmethod
    def of(cls, side: Side, types: tuple[Any, ...], kept: Any, new: Any) -> "Input":
        """Put kept and new rows one after another, without a copy."""
        rows = pa.concat_tables([kept, new])
        column = rows[side.time]
        if column.null_count:
            raise BadJoin(
                f"{column.null_count} rows of a join have no {side.time!r}; reject rows without a time before"
            )
        if column.type != pa.int64() and not (
            pa.types.is_timestamp(column.type) and column.type.unit == "us"
        ):
            raise BadJoin(f"{side.time!r} is {column.type}; give microseconds, as timestamps or as int64")
        time = column.cast(pa.int64()).to_numpy()
        if len(time) and not -REACH < time.min() <= time.max() < REACH:
            raise BadJoin(f"{side.time!r} has values beyond 2**61; give times in microseconds")
        return cls(side, types, rows, kept.num_rows, time)

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def keys(self) -> list[Any]:
        """The key columns, in the types in which they are compared."""
        return key_columns(self.rows, self.side.keys, self.types)

    @cached_property
    def joinable(self) -> Mask:
        """Which rows have no null in their key; others match nothing."""
        held = np.ones(len(self), np.bool_)
        for column in self.keys:
            if column.null_count:
                held &= pc.is_valid(column).to_numpy()
        return held

    def from_on(self, frontier: int | None) -> Mask:
        """Which rows a frontier has not passed."""
        return np.ones(len(self), np.bool_) if frontier is None else self.time >= frontier

    @property
    def is_new(self) -> Mask:
        """Which rows are new."""
        return np.arange(len(self)) >= self.kept
