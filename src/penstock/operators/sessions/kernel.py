"""The channels of session windows: partials of panes in, closed sessions out.

All rows of a key in one slice of time that is as long as the gap are in one session. So rows are combined by
such panes, on the map side or in the channel, and a partial brings the times of its first and last row. A
channel takes the partials of a key and its open sessions, sorts them by time and cuts where the gap is
longer: O(n log n) in the partials of the keys that the epoch touches, whatever else is open.

Open sessions are kept by key, with a timer at the end of the one that closes first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.aggregates.merges import take
from penstock.operators.aggregate_columns import combine_of
from penstock.operators.event_order import ALWAYS, EventOrderKernel, or_never, released
from penstock.operators.exchange import HASH, Bucket, Exchange
from penstock.operators.group_partials import GroupPartials, HeldKeys, compile_groups
from penstock.operators.kernel import Channel, Describe, StagePosition
from penstock.operators.sessions.node import Late, Sessions
from penstock.operators.windows.block import PaneBlock
from penstock.operators.windows.sliding import Partials
from penstock.state.pane_table import PANE
from penstock.state.segments import Segment
from penstock.state.table import Table
from penstock.state.time_table import OpenTimeTable, TimeTable
from penstock.state.version_table import NO_TIMER, TIMER, VersionTable

__all__ = ["SessionKernel", "Settled", "compile_sessions", "session_starts"]

_OPEN, _WAITING = "sessions", "rows"

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class SessionKernel(EventOrderKernel):
    """Session windows in channels."""

    groups: GroupPartials
    gap: int
    late: Late

    # What it sends, keeps and gives.

    @property
    def schema(self) -> Any:
        """The event time, which is the end of the session, its start, the keys, the aggregates."""
        return pa.schema(self.groups.fields)

    @property
    def judges(self) -> bool:
        """Whether a tuple is late depends on the sessions of its key."""
        return self.late == "count"

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Rows or partials of panes by their keys."""
        combine = None if self.waits else combine_of(self.groups.forms, self.groups.partial_columns)
        parts = bool(self.groups.keys) and self.groups.accumulates and not self.waits
        return (self.groups.exchange(Bucket(PANE, 0, self.gap), combine, parts=parts),)

    @property
    def waits(self) -> bool:
        """Whether rows wait for the frontier: where order matters to an aggregate of the user."""
        return self.groups.forms == ("rows",)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Open sessions by key, and rows that wait for the frontier."""
        return (self._sessions, self._rows) if self.waits else (self._sessions,)

    @property
    def _sessions(self) -> VersionTable:
        labels = {**self.groups.labels, PANE: "", TIMER: "_closes_after"}
        return VersionTable(_OPEN, keys=self.groups.sent_keys, labels=labels)

    @property
    def _rows(self) -> TimeTable:
        names = self.groups.sent_keys
        return TimeTable(_WAITING, keys=names, labels={**self.groups.labels, PANE: ""}, lives=(0, 0))

    def forming_words(self) -> list[str]:
        """Where partials are formed and why."""
        forms, columns = self.groups.forms, self.groups.partial_columns
        if forms == ("combined",):
            where = "Spark SQL on the map side: some partials only Spark can form"
        elif forms == ("rows",):
            who = dict.fromkeys(each.accumulated.reason for each in columns if each.accumulated)
            where = f"Arrow in the channel: {' and '.join(who)} need the rows themselves"
        else:
            where = "Arrow on the map side; raw rows instead where that hardly shrinks them"
        keys = [key.name for key in self.groups.keys]
        lines = [f"partials: {where}", f"  GROUP BY {', '.join([*keys, 'pane'])}"]
        if self.waits:
            lines.append("  order matters to an aggregate: a tuple waits until the frontier has passed it")
        return lines + [f"  {', '.join(each.columns)} := {each.source}" for each in columns]

    # How far it comes.

    def bound(self, position: StagePosition, port: int) -> int | None:
        """The frontier where tuples below it are late; otherwise channels judge."""
        return super().bound(position, port) if self.late == "drop" else None

    # What a channel does.

    @property
    def partials(self) -> Any:
        """The columns of partials."""
        return self.groups.schema

    def form(self, rows: Any) -> Any:
        """The partials of raw rows."""
        return self.groups.formed(rows)

    def received(self, combined: Any) -> Any:
        """The partials of what Spark has combined."""
        return self.groups.received(combined)

    def merge(self, partials: Any) -> Any:
        """One partial for each pane and key."""
        return self.groups.merged(partials)

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Merge new rows into sessions, and close those that the frontier has passed."""
        before, after = (or_never(each.frontier(0)) for each in (channel.before, channel.after))
        until = ALWAYS if channel.ended else after - 1
        (new,) = channel.new
        segments: list[Segment] = []
        if self.waits:
            new, segments = self._taken(channel, new, ALWAYS if channel.ended else after)
        fresh = new
        states = self._sessions.open(channel.store, self.groups.kept())
        due = states.due(before - 1, until)
        changed = None
        if fresh is not None or due.num_rows:
            held = self.groups.numbered(states, fresh, due)
            block = held.block(fresh, held.numbers, raw=channel.form == "rows")
            settled = Settled.of(self, block, held, before, until)
            settled.report(channel)
            if settled.closed.any():
                channel.emit(self._results(settled))
            changed = settled.versions()
        return (*states.close(changed), *segments)

    def _taken(self, channel: Channel, new: Any, until: int) -> tuple[Any, list[Segment]]:
        """The rows that the frontier has passed, and the segments of those that wait."""
        schema = self.groups.raw
        new = None if new is None else new.select(schema.names).cast(schema)
        waiting: OpenTimeTable = self._rows.open(channel.store, schema, channel.before.frontiers)
        taken = [each for each in released(channel, waiting, new, until) if each.num_rows]
        return pa.concat_tables(taken) if taken else None, waiting.close_by_time(until, new)

    def _results(self, settled: "Settled") -> Any:
        """The sessions that are closed."""
        at = np.flatnonzero(settled.closed)
        stored = settled.block.stored(tuple(take(lane, at) for lane in settled.sessions.lanes))
        keys = settled.held.keys.take(pa.array(settled.sessions.key[at]))
        return self.groups.finished((settled.first[at], settled.ends[at]), keys, stored)


@dataclass(frozen=True, eq=False)
class Settled:
    """The sessions of the keys that an epoch touches, by key and time, and what becomes of each.

    `rows` are their partials in the same order, of which `fresh` ones are new; `at` is the session of each. A
    session is from `first` to `ends`, one gap after its last row. It is `late` if it was closed before and no
    part of it was kept, `closed` if the frontier has passed its end, and stays otherwise.
    """

    block: PaneBlock
    held: HeldKeys
    rows: Partials
    fresh: Mask
    at: Places
    sessions: Partials
    first: Places
    ends: Places
    late: Mask
    closed: Mask

    @classmethod
    def of(
        cls, kernel: SessionKernel, block: PaneBlock, held: HeldKeys, before: int, until: int
    ) -> "Settled":
        """Merge all partials; `before` is the frontier before the epoch, sessions end up to `until`."""
        groups, rows = kernel.groups, block.rows
        fresh = np.arange(len(block)) >= held.rows.num_rows
        first = groups.lane(rows.lanes, groups.first)
        # What is kept goes before what is new of the same time, so that it stays on the left of a merge.
        order = np.lexsort((fresh, first, rows.key))
        rows, fresh = rows.at(order), fresh[order]
        first, last = (groups.lane(rows.lanes, name) for name in (groups.first, groups.last))
        starts = session_starts(rows.key, first, last, kernel.gap)
        at = np.cumsum(starts) - 1
        count = int(np.count_nonzero(starts))
        lanes = tuple(
            merge.scatter(count, at, lane) for merge, lane in zip(block.merges, rows.lanes, strict=True)
        )
        known = np.zeros(count, np.bool_)
        known[at[~fresh]] = True
        sessions = Partials(np.zeros(count, np.int64), rows.key[starts], lanes)
        first, last = (groups.lane(lanes, name) for name in (groups.first, groups.last))
        ends = last + kernel.gap
        late = ~known & (ends < before)
        return cls(block, held, rows, fresh, at, sessions, first, ends, late, ~late & (ends <= until))

    def report(self, channel: Channel) -> None:
        """Tell the channel which tuples came too late."""
        if not self.late.any() or channel.late is None:
            return
        rows = np.flatnonzero(self.late[self.at] & self.fresh)
        keys = self.rows.key[rows]
        hashes = self.held.hashes[keys].view(np.int64)
        channel.late(pa.table({HASH: hashes, PANE: self.rows.pane[rows]}))

    def versions(self) -> Any:
        """The versions of all keys afterwards."""
        stays = np.flatnonzero(~self.late & ~self.closed)
        timers = np.full(len(self.held), NO_TIMER)
        np.minimum.at(timers, self.sessions.key[stays], self.ends[stays])
        return self.held.versions(self.block, self.sessions.at(stays), timers, timers != NO_TIMER)

    def session_of(self, keys: Places, times: Places) -> Places:
        """The session of each row, given the number of its key and its time; it is in one of them."""
        count = len(self.first)
        order = np.lexsort(
            (
                np.arange(count + len(keys)) >= count,
                np.concatenate([self.first, times]),
                np.concatenate([self.sessions.key, keys]),
            )
        )
        # Sessions ascend, and none of them overlaps another: the last one that begins before a row has it.
        found = np.empty(count + len(keys), np.int64)
        found[order] = np.cumsum(order < count) - 1
        return found[count:]


def session_starts(keys: Places, first: Places, last: Places, gap: int) -> Mask:
    """Which partials start a session; they are sorted by key, then by the time of their first row.

    A partial starts one if it is of another key than the one before, or begins more than one gap after the
    last row of all before it.

    >>> keys, first, last = np.array([0, 0, 0, 0]), np.array([1, 2, 15, 31]), np.array([9, 3, 20, 31])
    >>> session_starts(keys, first, last, 10).tolist()
    [True, False, False, True]
    """
    count = len(keys)
    by = np.argsort(last, kind="stable")
    rank = np.empty(count, np.int64)
    rank[by] = np.arange(count)
    # Keys ascend, so a key above a rank is a maximum that begins anew with each key.
    reach = last[by[np.maximum.accumulate(keys * count + rank) % max(count, 1)]]
    starts = np.ones(count, np.bool_)
    starts[1:] = (keys[1:] != keys[:-1]) | (first[1:] > reach[:-1] + gap)
    return starts


def compile_sessions(operator: Sessions, time_type: str, describe: Describe | None = None) -> SessionKernel:
    """The kernel of session windows."""
    groups = compile_groups(operator.keys, operator.aggregates, time_type, describe)
    return SessionKernel(groups, operator.gap, operator.late)
