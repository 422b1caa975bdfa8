"""The given rows of each stream by epoch, and a source that may promise that no more will come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connect import Ahead, Offset, SourceNote
from penstock.connect.sources.rows import RowsReader
from penstock.connect.sources.rows import rows as given_rows
from penstock.query import Stream

__all__ = ["Given", "Reader", "Rows"]

Given = Mapping[str, Sequence[Sequence[Mapping[str, object]]]]
"""For each stream by name: its epochs, each a list of rows with a value per column; times are datetimes."""

_NEVER_MORE = 2**60
"""An event time after every row."""


@dataclass(frozen=True)
class Rows:
    """The given rows of each stream by epoch, and as Arrow tables."""

    streams: tuple[Stream, ...]
    given: Mapping[str, list[list[Any]]]
    sources: Mapping[str, Any]

    @classmethod
    def of(cls, streams: Sequence[Stream], epochs: Given, *, whole: bool) -> "Rows":
        given = {each.name: [list(batch) for batch in epochs.get(each.name, ())] for each in streams}
        if whole:
            given = {name: [[row for batch in every for row in batch]] for name, every in given.items()}
        sources = {
            each.name: given_rows(given[each.name]).conform(each.name, each.schema) for each in streams
        }
        return cls(tuple(streams), given, sources)

    @property
    def epochs(self) -> int:
        """How many there are."""
        return max(map(len, self.given.values()), default=0)

    def read_in(self, epoch: int) -> list[Stream]:
        """The streams that are not at their end before an epoch."""
        return [each for each in self.streams if epoch < len(self.given[each.name])]

    def fits(self, stream: Stream, epoch: int, now: int) -> Any:
        """Which rows of an epoch fit the schema and the clock, as a mask."""
        table = self.sources[stream.name].batches[epoch]
        times = table[stream.time].cast(pa.int64())
        known = [table[each.name].is_valid() for each in stream.schema.columns if not each.nullable]
        fits = np.logical_and.reduce([np.asarray(each) for each in [times.is_valid(), *known]])
        return fits if stream.ahead is None else fits & (times.fill_null(0).to_numpy() <= now + stream.ahead)

    def latest(self, stream: Stream, epoch: int, fits: Any) -> int | None:
        """The latest event time of those that fit."""
        times = self.sources[stream.name].batches[epoch][stream.time].cast(pa.int64())
        return pc.max(times.filter(pa.array(fits))).as_py()


class Reader(RowsReader):
    """Rows; where it is told to, it promises after the last of them that no more will come."""

    promises = False

    def ahead(self, after: Offset) -> Ahead | None:
        """The next rows, or the promise."""
        found = super().ahead(after)
        if found is not None or not self.promises or "ended" in after:
            return found
        return Ahead({**after, "ended": True})

    def note(self, upto: Offset) -> SourceNote:
        """The promise."""
        return SourceNote(least=_NEVER_MORE) if "ended" in upto else SourceNote()
