"""The channels of a function over whole sessions: bounds by key, raw rows kept once, a call as one closes.

Which sessions there are, which are closed and which rows are late is decided as for any session, on bounds
alone. Rows lie beside them in the order of time, each with a bit that says whether its session is open, so
that a session that goes on for long keeps no rows of others. An epoch costs a sort of the rows of the
sessions that it closes, and two bits for each row that stays.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.distribution import by_key
from penstock.operators.event_order import ALWAYS, in_event_order, or_never
from penstock.operators.exchange import HASH, TIME, Bucket, Exchange
from penstock.operators.group_partials import HeldKeys, compile_groups
from penstock.operators.kernel import Channel, Describe
from penstock.operators.sessions.kernel import SessionKernel, Settled
from penstock.operators.whole_sessions.node import WholeSessions
from penstock.operators.whole_windows.calling import Call, Caller, WholeRows, whole_rows
from penstock.state.keys import Ordered, find, normal_keys
from penstock.state.pane_table import PANE
from penstock.state.segments import Segment
from penstock.state.table import Table
from penstock.state.time_table import MATCHED, OpenTimeTable, TimeTable

__all__ = ["WholeSessionKernel", "compile_whole_sessions"]

_ROWS: Final = "rows"

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class WholeSessionKernel(SessionKernel):
    """A function over sessions in channels; `groups` are the bounds of sessions, without an aggregate."""

    operator: WholeSessions
    rows: WholeRows

    @property
    def schema(self) -> Any:
        """The end of the session, which is the event time, its start, the keys, what the function makes."""
        return self.rows.results("window_end")

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Rows by their keys; all of a key in one bucket are in one session."""
        return (Exchange(self.rows.sent, by_key(self.rows.key_names), bucket=Bucket(PANE, 0, self.gap)),)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The bounds of open sessions by key, and their rows."""
        return (self._sessions, self._rows)

    @property
    def _rows(self) -> TimeTable:
        # The mark of a row says nothing here; that it is alive is what is kept.
        labels = {**self.rows.labels, MATCHED: ""}
        return TimeTable(_ROWS, keys=self.rows.key_names, labels=labels, marked=True)

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Merge new rows into sessions, and call the function for those that the frontier has passed."""
        before, after = (or_never(each.frontier(0)) for each in (channel.before, channel.after))
        until = ALWAYS if channel.ended else after - 1
        (new,) = channel.new
        states = self._sessions.open(channel.store, self.groups.kept())
        kept = self._rows.open(channel.store, self._held)
        due = states.due(before - 1, until)
        if new is None and not due.num_rows:
            return (*states.close(), *channel.store.of(_ROWS))
        held = self.groups.numbered(states, new, due)
        settled = Settled.of(self, held.block(new, held.numbers, raw=True), held, before, until)
        settled.report(channel)
        found = _Gathered.of(self, settled, kept, new)
        if len(found.sessions):
            self._call(channel, settled, found)
        return (
            *states.close(settled.versions()),
            *kept.close_by_masks(found.stays, np.zeros_like(found.stays), found.new),
        )

    def _call(self, channel: Channel, settled: Settled, found: "_Gathered") -> None:
        """Call the function with the rows of each session that is closed."""
        times, shown = found.rows[TIME].to_numpy(), self.rows.shown(found.rows)
        order = np.lexsort((times, found.sessions))
        sessions = found.sessions[order]
        first = np.flatnonzero(np.diff(sessions, prepend=-1))
        edges = np.append(first, len(order))
        dense = np.repeat(np.arange(len(first)), np.diff(edges))
        order = in_event_order(Ordered(order, dense, first), times, shown).order
        at = sessions[first]
        calls = [
            Call(*each)
            for each in zip(
                settled.first[at].tolist(),
                settled.ends[at].tolist(),
                settled.sessions.key[at].tolist(),
                edges[:-1].tolist(),
                edges[1:].tolist(),
                strict=True,
            )
        ]
        values = settled.held.keys.columns if self.rows.keys else []
        batch = shown.take(pa.array(order)).combine_chunks()
        Caller(self.rows, self.schema, str(self.operator), batch, values, channel.refuse).run(
            calls, channel.emit
        )

    @property
    def _held(self) -> Any:
        """The columns of a row in a segment."""
        return self.rows.schema.append(pa.field(HASH, pa.int64()))


@dataclass(frozen=True, eq=False)
class _Gathered:
    """The rows of sessions that are closed, with the session of each; which rows stay; new rows to keep."""

    rows: Any
    sessions: Places
    stays: Mask
    new: Any

    @classmethod
    def of(cls, kernel: WholeSessionKernel, settled: Settled, kept: OpenTimeTable, new: Any) -> "_Gathered":
        schema, closed = kernel.rows.schema, settled.closed
        rows, places, stays = (
            [schema.empty_table()],
            [np.empty(0, np.int64)],
            np.ones(kept.rows.num_rows, bool),
        )
        if closed.any() and len(stays):
            old = kept.rows
            times = old[TIME].to_numpy()
            # Only rows between the first and the last of those that go are looked at.
            near = (times >= settled.first[closed].min()) & (times < settled.ends[closed].max())
            at = np.flatnonzero(near)
            chosen = old.take(at)
            number = _numbers(settled.held, chosen, kernel.rows.key_names)
            ours = np.flatnonzero(number >= 0)
            session = settled.session_of(number[ours], times[at[ours]])
            ours, session = ours[closed[session]], session[closed[session]]
            stays[at[ours]] = False
            rows.append(chosen.take(pa.array(ours)).select(schema.names))
            places.append(session)
        if new is not None:
            new = new.select(schema.names).cast(schema)
            session = settled.session_of(settled.held.numbers, new[TIME].to_numpy())
            going = closed[session]
            rows.append(new.filter(pa.array(going)))
            places.append(session[going])
            staying = ~going & ~settled.late[session]
            hashes = settled.held.hashes[settled.held.numbers].view(np.int64)
            new = new.append_column(HASH, pa.array(hashes)).filter(pa.array(staying))
        return cls(pa.concat_tables(rows).combine_chunks(), np.concatenate(places), stays, new)


def _numbers(held: HeldKeys, rows: Any, names: tuple[str, ...]) -> Places:
    """The numbers of the keys of some rows, -1 for a key that the epoch does not touch."""
    if not names:
        return np.zeros(rows.num_rows, np.int64)
    order = np.argsort(held.hashes)
    keys = normal_keys(rows.select(list(names)))
    at = find(
        held.hashes[order], held.keys.take(pa.array(order)), rows[HASH].to_numpy().view(np.uint64), keys
    )
    return np.append(order, -1)[at]


def compile_whole_sessions(operator: WholeSessions, time_type: str, describe: Describe) -> WholeSessionKernel:
    """The kernel of a function over sessions, with what Spark says about the types."""
    groups = compile_groups(operator.keys, (), time_type, describe)
    rows = whole_rows(operator.function, operator.keys, time_type, describe)
    return WholeSessionKernel(groups, operator.gap, operator.late, operator, rows)
