"""The state of a channel as plain tables: what lives in its segments, under the names that people know.

Every kind of segment is columns with keys among them. Rows that the kernel would not look at any more (those
that left a join, older versions of a key) are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.compile import HASH, KNOWN, TIME, TIMER
from penstock.compile.join_plan import TIE
from penstock.keyed import NO_TIMER
from penstock.runtime.join_state import Keeping
from penstock.runtime.keyed import KEY, number_keys
from penstock.runtime.records import StageRecord
from penstock.runtime.segments import PANE, Segment, read
from penstock.runtime.stage_notes import StageNote
from penstock.runtime.storage import Location

__all__ = ["StateRows", "key_columns"]

PART, PANES, MATCHED = "_part", "_panes", "_matched"
"""Columns beside those of the state: the side or part of a stage, panes that a row covers, a match so far."""

_SIDES = ("left", "right")
# Parts and columns of the state of keyed functions.
_STATES, _WAITING = "state", "rows"
_HIDDEN = {TIE, HASH, KNOWN}
_INSTANTS = {TIME, PANE, TIMER}
_TIMES = pa.timestamp("us", "UTC")


def key_columns(table: Any) -> list[str]:
    """The names of the key columns of a segment, in their order."""
    names = (KEY.format(place) for place in range(len(table.column_names)))
    return [name for name in names if name in table.column_names]


@dataclass(frozen=True)
class StateRows:
    """The state of one stage as a manifest names it."""

    folder: Location
    note: StageNote
    record: StageRecord

    def tables(self, channel: int) -> Iterator[Any]:
        """Living rows of a channel, one table for each segment or side, keys still under their own names."""
        segments = self.record.channels[channel]
        for part in dict.fromkeys(each.part for each in segments):
            own = [each for each in segments if each.part == part]
            if part in _SIDES:
                yield self._side(part, segments)
            elif part == _STATES:
                yield self._states(own)
            elif not part.endswith(" marks"):
                yield from (self._segment(each) for each in own)

    def named(self, table: Any) -> Any:
        """A table under the names that people know, times as timestamps, without what is for kernels only.

        A side of a join has its keys and its time twice, for the join and as they came; they are shown once.
        """
        shown: dict[str, Any] = {}
        for name in table.column_names:
            if name not in _HIDDEN:
                column = self._instants(name, table[name]) if name in _INSTANTS else table[name]
                shown.setdefault(self._name(name), column)
        return pa.table(shown)

    def _segment(self, segment: Segment) -> Any:
        table = read(self.folder, segment)
        if segment.part == _WAITING and self.record.frontiers:
            table = _from_on(table, self.record.frontiers[0])
        if segment.length:
            panes = pa.array(np.full(table.num_rows, segment.length, np.int64))
            return table.append_column(PANES, panes)
        return table.append_column(PART, pa.array([segment.part] * table.num_rows, pa.string()))

    def _side(self, part: str, segments: Sequence[Segment]) -> Any:
        """A side of a join: rows that can still match, and whether each has matched where that is kept."""
        marked = any(each.part == f"{part} marks" for each in segments)
        held = Keeping(self.folder, "", part, None, marked).load(segments, self._alive_from(part)).held()
        table = held.rows.append_column(PART, pa.array([part] * held.rows.num_rows, pa.string()))
        return table.append_column(MATCHED, pa.array(held.matched)) if marked else table

    def _states(self, segments: Sequence[Segment]) -> Any:
        """The states of a keyed function: the newest version of each key that is not forgotten."""
        together = pa.concat_tables([read(self.folder, each) for each in segments]).combine_chunks()
        keys = together.select(key_columns(together)).columns
        numbers, _ = number_keys(keys, together.num_rows)
        newest = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
        # Segments are from the oldest to the newest, and the largest place of a number wins.
        np.maximum.at(newest, numbers, np.arange(len(numbers)))
        table = together.take(pa.array(newest))
        alive = table[KNOWN].to_numpy() | (table[TIMER].to_numpy() != NO_TIMER)
        table = table.filter(pa.array(alive))
        return table.append_column(PART, pa.array([_STATES] * table.num_rows, pa.string()))

    def _alive_from(self, part: str) -> int | None:
        """Rows leave when the frontier of the other side has passed their reach."""
        if self.note.distance is None or not self.record.frontiers:
            return None
        other = self.record.frontiers[1 - _SIDES.index(part)]
        return None if other is None else other - self.note.distance

    def _instants(self, name: str, column: Any) -> Any:
        if name == PANE and self.note.pane is None:
            return column
        values = column.to_numpy()
        if name == PANE:
            assert self.note.pane is not None
            values = values * self.note.pane + self.note.offset
        unset = values == NO_TIMER if name == TIMER else None
        return pa.array(values, mask=unset).cast(_TIMES)

    def _name(self, name: str) -> str:
        for place, key in enumerate(self.note.keys):
            if name == KEY.format(place):
                return key
        if name == TIME:
            return "_time"
        if name == PANE:
            return "_pane"
        if name == TIMER:
            return "_timer"
        return self.note.columns.get(name, name)


def _from_on(table: Any, time: int | None) -> Any:
    """Rows that wait for the frontier; those that it has passed lie in front."""
    return table if time is None else table.slice(int(np.searchsorted(table[TIME].to_numpy(), time)))
