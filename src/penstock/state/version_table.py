"""The newest version of each key: states of keyed functions, with timers.

Each epoch adds one segment with the keys that it touched, sorted by hash; the newest version of a key counts.
A lookup of k keys among n costs O(k log n), on columns in place. If there are more than about eight segments,
they are merged, small ones first. A key without state and timer is forgotten: its version is left out as soon
as no older segment can have the key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.state.compaction import budget, to_merge, to_rewrite
from penstock.state.keys import find, key_columns, newest
from penstock.state.segments import ChannelStore, Held, Segment, read
from penstock.state.storage import Location
from penstock.state.table import HASH, TABLE, Table, instants

__all__ = ["KNOWN", "NO_TIMER", "TIMER", "OpenVersionTable", "VersionTable", "Versions"]

TIMER = "_ps_timer"
"""The column of timers, in microseconds since 1970 UTC."""
KNOWN = "_ps_known"
"""The column that says whether a key has a state."""
NO_TIMER = 2**63 - 1

# All versions are merged if the older segments have at most this number of rows per forgotten key.
_MOST_OLDER = 4


@dataclass(frozen=True)
class VersionTable(Table):
    """Versions with key columns, `HASH`, `TIMER`, `KNOWN` and the columns of the state.

    `HASH` is any hash of the key columns that never changes for a key; keys are normal (see `keys`).
    """

    kind: ClassVar[str] = "version"
    usual_labels: ClassVar[dict[str, str]] = {HASH: "", KNOWN: "", TIMER: "_timer"}

    def open(self, store: ChannelStore, schema: Any) -> "OpenVersionTable":
        """The versions of a channel, with this `schema`."""
        return OpenVersionTable(self, store, schema)

    def bounds(self, rows: Any, level: int) -> tuple[int, int]:
        """The first timer, and the time after the last; empty bounds if there is none."""
        del level
        timers = rows[TIMER].to_numpy()
        timers = timers[timers != NO_TIMER]
        return (int(timers.min()), int(timers.max()) + 1) if len(timers) else (NO_TIMER, -NO_TIMER)

    def show(
        self, folder: Location, segments: Sequence[Segment], frontiers: Sequence[int | None]
    ) -> Iterator[Any]:
        """The newest version of each key that is not forgotten."""
        del frontiers
        tables = [read(folder, each) for each in self.own(segments)]
        if tables:
            rows = without_forgotten(newest(tables, HASH, key_columns(tables[0].column_names)))
            yield rows.append_column(TABLE, pa.array([self.name] * rows.num_rows, pa.string()))

    def readable(self, name: str, column: Any) -> Any:
        """Show timers as times, or as null."""
        if name == TIMER:
            return instants(column, unset=column.to_numpy() == NO_TIMER)
        return super().readable(name, column)


def without_forgotten(rows: Any) -> Any:
    """The rows without keys that have neither state nor timer."""
    alive = rows[KNOWN].to_numpy() | (rows[TIMER].to_numpy() != NO_TIMER)
    return rows if alive.all() else rows.filter(pa.array(alive))


@dataclass(frozen=True, eq=False)
class Versions:
    """The newest versions of keys that were looked up, in the order of the keys.

    `state` has nulls if a key is not `known`; `timers` are `NO_TIMER` if there is none; `present` says
    which keys have any version at all, even one that marks them as forgotten.
    """

    state: Any
    known: NDArray[np.bool_]
    timers: NDArray[np.int64]
    present: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class OpenVersionTable:
    """The versions of one channel at the start of an epoch."""

    table: VersionTable
    store: ChannelStore
    schema: Any

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments at the start of the epoch, oldest first."""
        return self.store.of(self.table.name)

    def find(self, hashes: NDArray[np.uint64], keys: Any) -> Versions:
        """Look up keys, newest segment first; the search for a key ends at its first match."""
        chosen = [self.schema.empty_table()]
        places = np.full(len(hashes), -1, np.int64)
        asked, start = np.arange(len(hashes)), 0
        for run in reversed(self._runs):
            if not len(asked):
                break
            at = run.find(hashes[asked], keys.take(pa.array(asked)))
            hit = at >= 0
            places[asked[hit]] = start + np.arange(np.count_nonzero(hit))
            chosen.append(run.rows.take(pa.array(at[hit])))
            start += chosen[-1].num_rows
            asked = asked[~hit]
        found = pa.concat_tables(chosen).combine_chunks()
        present = places >= 0
        known = present & _taken(found[KNOWN].to_numpy(), places, False)
        timers = _taken(found[TIMER].to_numpy(), places, NO_TIMER)
        state = found.drop_columns([*self._keys, HASH, TIMER, KNOWN])
        return Versions(state.take(pa.array(places, mask=~known)), known, timers, present)

    def due(self, after: int, until: int) -> Any:
        """The keys and hashes whose timers are later than `after` and not later than `until`.

        Timers up to `after` have already fired; only segments with timers in between are scanned.
        """
        found = []
        for number, run in enumerate(self._runs):
            if run.segment.end <= after + 1 or run.segment.first > until:
                continue
            timers = run.rows[TIMER].to_numpy()
            at = np.flatnonzero((timers > after) & (timers <= until))
            at = at[run.held.owns(at)]
            for newer in self._runs[number + 1 :]:
                at = at[newer.find(run.hashes[at], run.keys.take(pa.array(at))) < 0]
            found.append(run.rows.select([*self._keys, HASH]).take(pa.array(at)))
        schema = pa.schema([self.schema.field(name) for name in [*self._keys, HASH]])
        return pa.concat_tables([schema.empty_table(), *found])

    def close(self, changed: Any = None) -> list[Segment]:
        """The segments after an epoch that leaves these versions, each key once, in any order."""
        segments = self._rewritten()
        changed = self.schema.empty_table() if changed is None else changed
        if not segments:
            changed = without_forgotten(changed)
        written: dict[str, Any] = {}
        if changed.num_rows:
            by_hash = np.argsort(changed[HASH].to_numpy().view(np.uint64))
            changed = changed.take(pa.array(by_hash)).combine_chunks()
            segments.append(self._stored(changed))
            written[segments[-1].name] = changed
        merging = segments if self._worth_clearing(changed) else self._worth_merging(segments)
        if not merging:
            return segments
        tables = [written[each.name] if each.name in written else self.store.read(each) for each in merging]
        merged = newest(tables, HASH, self._keys)
        start = segments.index(merging[0])
        if not start:
            merged = without_forgotten(merged)
        new = [self._stored(merged.combine_chunks())] if merged.num_rows else []
        return [*segments[:start], *new, *segments[start + len(merging) :]]

    def _rewritten(self) -> list[Segment]:
        """The segments after as many of the moved ones were rewritten as the budget allows.

        What is rewritten keeps its place: the order of segments decides which version is newest.
        """
        segments = [each for each in map(self.store.counted, self.segments) if each.rows]
        moved = [bool(each.views) for each in segments]
        if not any(moved):
            return segments
        start = moved.index(True)
        stop = moved.index(False, start) if False in moved[start:] else len(moved)
        chosen = to_rewrite(segments[start:stop], budget(segments))
        tables = [self.store.open(each).first(count) for each, count in chosen]
        rows = tables[0] if len(tables) == 1 else newest(tables, HASH, self._keys)
        rows = rows if start else without_forgotten(rows)
        rest = [left for each, count in chosen for left in self.store.rest(each, count)]
        new = [self._stored(rows.combine_chunks())] if rows.num_rows else []
        return [*segments[:start], *new, *rest, *segments[start + len(chosen) :]]

    @staticmethod
    def _worth_merging(segments: list[Segment]) -> list[Segment]:
        """Of those after the last moved one: what moved is rewritten as the budget allows."""
        moved = [place for place, each in enumerate(segments) if each.views]
        return list(to_merge(segments[moved[-1] + 1 :] if moved else segments))

    def _worth_clearing(self, changed: Any) -> bool:
        """Whether the share of forgotten keys is so large that rewriting all others costs little."""
        if any(each.views for each in self.segments):
            return False
        forgotten = changed.num_rows - without_forgotten(changed).num_rows
        return bool(0 < sum(each.rows for each in self.segments) <= _MOST_OLDER * forgotten)

    def _stored(self, rows: Any) -> Segment:
        first, end = self.table.bounds(rows, 0)
        return self.store.store(rows, table=self.table.name, first=first, end=end)

    @cached_property
    def _runs(self) -> "list[_Run]":
        return [_Run(each, self.store.open(each), self._keys) for each in self.segments]

    @cached_property
    def _keys(self) -> list[str]:
        return key_columns(self.schema.names)


class _Run:
    """A segment of versions with its sorted hashes, in place; rows of other channels may be among them."""

    def __init__(self, segment: Segment, held: Held, keys: Sequence[str]) -> None:
        self.segment, self.held, self.rows = segment, held, held.table
        self.hashes = self.rows[HASH].to_numpy().view(np.uint64)
        self.keys = self.rows.select(keys)

    def find(self, hashes: NDArray[np.uint64], keys: Any) -> NDArray[np.int64]:
        """The positions of these keys, -1 for those that are not here or belong to another channel."""
        found = np.full(len(hashes), -1, np.int64)
        if not len(self.hashes):
            return found
        # Segments that were rewritten part by part have a range of the hashes each.
        near = np.flatnonzero((hashes >= self.hashes[0]) & (hashes <= self.hashes[-1]))
        if len(near):
            at = find(self.hashes, self.keys, hashes[near], keys.take(pa.array(near)))
            hit = np.flatnonzero(at >= 0)
            at[hit[~self.held.owns(at[hit])]] = -1
            found[near] = at
        return found


def _taken(values: NDArray[Any], places: NDArray[np.int64], otherwise: Any) -> NDArray[Any]:
    """The values at these positions, another value for position -1."""
    return np.append(values, values.dtype.type(otherwise))[places]
