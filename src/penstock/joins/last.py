"""Spans of the last n rows of the other side, of the same key, that precede a row in event order.

Rows take part once the frontiers have passed them, for only then it is known what precedes them: event
order decides and arrival order does not (transparent merging: 002, section III.E). Of the rows that took
part a side keeps the last n of every key; what only the passing of newer rows can end, nothing else ends.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.joins.numbering import Numbers
from penstock.joins.spans import Rows, Spans
from penstock.joins.state import Mask

__all__ = ["Ordered", "in_order", "last_rows", "preceding"]


@dataclass(frozen=True)
class Ordered:
    """Rows of one side by (key, event order): their places in its table and codes, `width` to a key."""

    rows: Rows
    codes: Rows
    width: int

    @classmethod
    def of(cls, rows: Rows, key: Numbers, rank: Rows, width: int) -> "Ordered":
        """Sort rows whose rank in event order is below `width`."""
        codes = key * width + rank
        order = np.argsort(codes)
        return cls(rows[order], codes[order], width)

    def at(self, chosen: Mask) -> "Ordered":
        """Some of the rows, chosen by their places in the table."""
        held = np.flatnonzero(chosen[self.rows])
        return Ordered(self.rows[held], self.codes[held], self.width)


def in_order(times: Rows, ties: list[pa.ChunkedArray], right: Mask) -> Rows:
    """The rank of every row in event order: by time, then ties, then left before right, then as given."""
    if ties:
        columns = {"time": pa.array(times), **{str(i): each for i, each in enumerate(ties)}, "right": right}
        order = pc.sort_indices(
            pa.table(columns), sort_keys=[(name, "ascending") for name in columns]
        ).to_numpy()
    else:
        order = np.lexsort((right, times))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def preceding(probe: Ordered, build: Ordered, count: int) -> Spans:
    """For each probing row the last `count` rows of its key before it."""
    before = np.searchsorted(build.codes, probe.codes)
    start = np.searchsorted(build.codes, probe.codes // probe.width * probe.width)
    low = np.maximum(start, before - count)
    hits = np.flatnonzero(before > low)
    return Spans(probe.rows[hits], build.rows, low[hits], before[hits])


def last_rows(ordered: Ordered, count: int) -> Mask:
    """Which rows are among the last `count` of their key."""
    end = np.searchsorted(ordered.codes, (ordered.codes // ordered.width + 1) * ordered.width)
    return end - np.arange(len(end)) <= count
