"""Rows of a channel that wait for the frontier: segments in the order of time, each read from its front.

What the frontier has passed is always the front of a segment, so no row is written again for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.compile import TIME
from penstock.runtime.compaction import hollow, to_merge
from penstock.runtime.segments import Segment, read, store
from penstock.runtime.storage import Location

__all__ = ["ROWS", "HeldRows"]

ROWS = "rows"
"""The part of a process's segments that are rows."""


@dataclass(frozen=True)
class HeldRows:
    """Where the rows of a channel wait; `before` and `after` are the frontiers around the epoch."""

    folder: Location
    label: str
    before: int
    after: int

    def released(self, segments: Sequence[Segment], new: Any) -> list[Any]:
        """The rows that the frontier has passed in this epoch, as tables."""
        tables = []
        for each in segments:
            if each.part == ROWS and each.first < self.after:
                table = read(self.folder, each)
                start, end = np.searchsorted(table[TIME].to_numpy(), [self.before, self.after]).tolist()
                tables.append(table.slice(start, end - start))
        if new is not None:
            passed = new[TIME].to_numpy() < self.after
            tables.append(new if passed.all() else new.filter(pa.array(passed)))
        return [table for table in tables if table.num_rows]

    def held(self, segments: Sequence[Segment], new: Any) -> list[Segment]:
        """The segments of rows after the epoch, with those of the new rows that wait."""
        kept = [each for each in segments if each.part == ROWS and each.end > self.after]
        if new is not None:
            waits = new[TIME].to_numpy() >= self.after
            if waits.any():
                kept.append(self._stored([new if waits.all() else new.filter(pa.array(waits))]))
        merging = [*to_merge(kept)]
        merging += [each for each in kept if hollow(each) and each not in merging]
        if merging:
            tables = [read(self.folder, each) for each in merging]
            kept = [each for each in kept if each not in merging]
            left = [_from_on(table, self.after) for table in tables]
            kept += [self._stored(left)] if any(table.num_rows for table in left) else []
        return kept

    def _stored(self, tables: list[Any]) -> Segment:
        rows = pa.concat_tables(tables).combine_chunks()
        times = rows[TIME].to_numpy()
        if (times[1:] < times[:-1]).any():
            rows = rows.take(pa.array(np.argsort(times, kind="stable"))).combine_chunks()
            times = rows[TIME].to_numpy()
        first, last = int(times[0]), int(times[-1])
        return store(self.folder, f"{self.label}-{ROWS}", rows, first=first, end=last + 1, part=ROWS)


def _from_on(table: Any, time: int) -> Any:
    return table.slice(int(np.searchsorted(table[TIME].to_numpy(), time)))
