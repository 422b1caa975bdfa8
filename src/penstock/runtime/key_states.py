"""States of keys in segments: each epoch adds one with the keys that it touched, sorted by hash.

The newest version of a key counts. Looking k keys up among n costs O(k log n), on columns in place; more than
about eight segments are merged, small ones first. A key without state and timer is left out as soon as no
older segment can have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.compile import HASH, KNOWN, TIMER, ProcessPlan
from penstock.keyed import NO_TIMER, find, newest
from penstock.runtime.compaction import hollow, to_merge
from penstock.runtime.segments import Segment, read, store
from penstock.runtime.storage import Location

__all__ = ["STATE", "KeyStates", "Standing"]

STATE = "state"
"""The part of a process's segments that are states."""

# All states are written anew when the older segments have at most so many rows for each forgotten key.
_MOST_OLDER = 4


@dataclass(frozen=True, eq=False)
class Standing:
    """Keys as they stand: states (null where not known), who is known, timers, who has any version at all."""

    state: Any
    known: NDArray[np.bool_]
    timers: NDArray[np.int64]
    there: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class KeyStates:
    """The states of one channel as an epoch finds them."""

    plan: ProcessPlan
    folder: Location
    label: str
    segments: tuple[Segment, ...]

    def standing(self, hashes: NDArray[np.uint64], keys: Any) -> Standing:
        """Keys looked up, newest segment first; each is looked for until it is found."""
        chosen = [self.plan.kept.empty_table()]
        places = np.full(len(hashes), -1, np.int64)
        asked, start = np.arange(len(hashes)), 0
        for level in reversed(self._levels):
            if not len(asked):
                break
            at = find(level.hashes, level.keys, hashes[asked], keys.take(pa.array(asked)))
            hit = at >= 0
            places[asked[hit]] = start + np.arange(np.count_nonzero(hit))
            chosen.append(level.table.take(pa.array(at[hit])))
            start += chosen[-1].num_rows
            asked = asked[~hit]
        return self._standing(pa.concat_tables(chosen).combine_chunks(), places)

    def due(self, after: int, until: int) -> Any:
        """The keys and hashes whose timers stand after one time and not after the other.

        Timers up to `after` have fired already; only segments with timers in between are scanned.
        """
        found = []
        for number, level in enumerate(self._levels):
            if level.segment.end <= after + 1 or level.segment.first > until:
                continue
            timers = level.table[TIMER].to_numpy()
            at = np.flatnonzero((timers > after) & (timers <= until))
            for newer in self._levels[number + 1 :]:
                again = find(newer.hashes, newer.keys, level.hashes[at], level.keys.take(pa.array(at)))
                at = at[again < 0]
            found.append(level.table.select([*self._keys, HASH]).take(pa.array(at)))
        schema = pa.schema([self.plan.kept.field(name) for name in [*self._keys, HASH]])
        return pa.concat_tables([schema.empty_table(), *found])

    def saved(self, table: Any) -> list[Segment]:
        """The segments after an epoch that leaves these keys, in any order, each once."""
        # Written anew in its place: versions count by the order of their segments.
        segments = [self._stored(read(self.folder, s)) if hollow(s) else s for s in self.segments]
        tables: dict[str, Any] = {}
        if not segments:
            table = _without_forgotten(table)
        if table.num_rows:
            by_hash = np.argsort(table[HASH].to_numpy().view(np.uint64))
            table = table.take(pa.array(by_hash)).combine_chunks()
            segments.append(self._stored(table))
            tables[segments[-1].name] = table
        merging = segments if self._worth_clearing(table) else list(to_merge(segments))
        if not merging:
            return segments
        held = [tables[each.name] if each.name in tables else read(self.folder, each) for each in merging]
        merged = newest(held, HASH, self._keys)
        remaining = segments[: len(segments) - len(merging)]
        if not remaining:
            merged = _without_forgotten(merged)
        return [*remaining, self._stored(merged.combine_chunks())] if merged.num_rows else remaining

    def _worth_clearing(self, table: Any) -> bool:
        """Whether so many keys are forgotten that writing all others anew costs little beside it."""
        forgotten = table.num_rows - _without_forgotten(table).num_rows
        return bool(0 < sum(each.rows for each in self.segments) <= _MOST_OLDER * forgotten)

    def _stored(self, table: Any) -> Segment:
        timers = table[TIMER].to_numpy()
        timers = timers[timers != NO_TIMER]
        first, end = (int(timers.min()), int(timers.max()) + 1) if len(timers) else (NO_TIMER, -NO_TIMER)
        return store(self.folder, f"{self.label}-{STATE}", table, first=first, end=end, part=STATE)

    def _standing(self, found: Any, places: NDArray[np.int64]) -> Standing:
        there = places >= 0
        known = there & _taken(found[KNOWN].to_numpy(), places, False)
        timers = _taken(found[TIMER].to_numpy(), places, NO_TIMER)
        state = found.select(self.plan.shapes.state.names)
        return Standing(state.take(pa.array(places, mask=~known)), known, timers, there)

    @cached_property
    def _levels(self) -> "list[_Level]":
        return [_Level(each, read(self.folder, each), self._keys) for each in self.segments]

    @property
    def _keys(self) -> list[str]:
        return [key.name for key in self.plan.keys]


class _Level:
    """A segment of states with its sorted hashes, in place."""

    def __init__(self, segment: Segment, table: Any, keys: Sequence[str]) -> None:
        self.segment, self.table = segment, table
        self.hashes = table[HASH].to_numpy().view(np.uint64)
        self.keys = table.select(keys)


def _taken(values: NDArray[Any], places: NDArray[np.int64], otherwise: Any) -> NDArray[Any]:
    return np.append(values, values.dtype.type(otherwise))[places]


def _without_forgotten(table: Any) -> Any:
    """Without keys that have neither state nor timer."""
    alive = table[KNOWN].to_numpy() | (table[TIMER].to_numpy() != NO_TIMER)
    return table if alive.all() else table.filter(pa.array(alive))
