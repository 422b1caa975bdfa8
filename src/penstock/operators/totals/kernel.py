"""The channels of an aggregation without a window: the newest partials of each key.

An epoch looks up the keys that it has tuples of, merges their partials with the new ones, and gives a row for
each key whose result differs. k keys among n cost O(k log n), whatever was aggregated before.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.aggregates.kinds import Fold
from penstock.aggregates.partials import Inputs
from penstock.operators.aggregate_columns import aggregate_columns, panes_of
from penstock.operators.aggregated import CHANGE
from penstock.operators.exchange import HASH, KEY, TIME
from penstock.operators.kernel import Advance, Channel, Describe, Seen, StagePosition
from penstock.operators.totals.node import Totals
from penstock.operators.windows.block import PaneBlock
from penstock.operators.windows.panes import PaneKernel
from penstock.operators.windows.revising import INSERT, RETRACT, UPDATE, replaced, revised
from penstock.operators.windows.sliding import Closed, Partials
from penstock.routing import PaneGrid, SlidingPanes
from penstock.routing.spark_hash import spark_hash
from penstock.state.keys import find, number_keys
from penstock.state.pane_table import PANE
from penstock.state.segments import Segment
from penstock.state.table import Table
from penstock.state.version_table import KNOWN, NO_TIMER, TIMER, OpenVersionTable, VersionTable

__all__ = ["TotalsKernel", "compile_totals"]

# Wider than all times: one bucket before 1970 and one after it.
_ALL = 1 << 61
_ONE = SlidingPanes(1, 1)
_KEYS, _ONE_KEY = KEY.format(""), KEY.format(0)


@dataclass(frozen=True)
class TotalsKernel(PaneKernel):
    """An aggregation without a window in channels: one window over all time, which never closes.

    `latest` is the partial with the latest event time of a group. A group is forgotten `keep` microseconds
    after it, None for never.
    """

    latest: str
    keep: int | None = None

    @property
    def schema(self) -> Any:
        """The kind of change, the keys, the aggregates; the event time is that of the latest tuple."""
        found = [(CHANGE, pa.string()), *((key.name, key.type) for key in self.keys)]
        return pa.schema([*found, *((each.name, each.type) for each in self.results), (TIME, pa.int64())])

    @property
    def tables(self) -> tuple[Table, ...]:
        """The partials of each key, and when it is forgotten."""
        labels = {**self._labels, TIMER: "_forgotten_at"} | ({} if self.keys else {_ONE_KEY: ""})
        return (VersionTable("totals", keys=tuple(self._names), labels=labels),)

    def bound(self, position: StagePosition, port: int) -> int | None:
        """No tuple is too late, unless groups as old are forgotten; a bucket is late as a whole."""
        frontier = position.frontier(port)
        if frontier is None or self.keep is None:
            return None
        return (frontier - self.keep) // self.keep * self.keep

    def advance(
        self, before: StagePosition, frontiers: tuple[int | None, ...], seen: Seen, drained: int | None
    ) -> Advance:
        """There is something to do if tuples have come, or if groups may be forgotten."""
        ageing = self.keep is not None and seen.state and frontiers != before.frontiers
        promise = frontiers[0] if drained is None else drained
        return Advance(StagePosition(frontiers, promise), idle=not seen.rows and not ageing)

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Add the new tuples to the groups, and forget old ones."""
        (table,) = self.tables
        assert isinstance(table, VersionTable)
        states = table.open(channel.store, self._kept)
        (rows,) = channel.new
        changed = self._kept.empty_table()
        if rows is not None:
            raw = self._at_once(rows) if channel.form == "rows" else None
            combined = [] if channel.form == "rows" else [self._at_once(rows)]
            changed = self._added(channel, states, combined, raw)
        return tuple(states.close(self._ageing(channel, states, changed)))

    def _added(self, channel: Channel, states: OpenVersionTable, tables: list[Any], raw: Any) -> Any:
        """Emit the changes of all groups that have new tuples, and give their new versions."""
        new = tables[0] if raw is None else raw
        _, distinct = number_keys(new.select(self._held_keys).columns, new.num_rows)
        keys = pa.table(distinct, self._held_keys)
        old = states.find(self._hashes(keys), keys)
        known = pa.array(np.flatnonzero(old.known))
        held = old.state.take(known)
        for name in self._held_keys:
            held = held.append_column(name, keys[name].take(known))
        held = held.append_column(PANE, pa.array(np.zeros(held.num_rows, np.int64)))
        held = held.select(self._held.names).cast(self._held)
        block = PaneBlock(self._held_keys, self.partial_columns, [held, *tables], raw)
        stored = block.marked(False, [True, *(False for _ in tables)])
        before = block.rows.at(np.flatnonzero(stored))
        found = revised(_ONE, range(1), before, block.rows, block.merges)
        assert found is not None
        if len(found.added.window):
            channel.emit(self._finished(block, found.added, INSERT))
        if len(found.old.window):
            gone = self._finished(block, found.old, RETRACT)
            come = self._finished(block, found.new, UPDATE)
            pairs = replaced(gone, come, apart={CHANGE, TIME})
            if pairs.num_rows:
                channel.emit(pairs)
        return pa.concat_tables([self._versions(block, each) for each in (found.added, found.new)])

    def _finished(self, block: PaneBlock, closed: Closed, change: str) -> Any:
        """Groups as rows of the result."""
        columns = self._columns(block, closed)
        values = [result.finish(columns) for result in self.results]
        changes = pa.repeat(pa.scalar(change), len(closed.key))
        keys = block.key_columns(closed.key) if self.keys else []
        arrays = [changes, *keys, *values, columns[self.latest]]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _versions(self, block: PaneBlock, groups: Closed) -> Any:
        rows = block.table(Partials(groups.window, groups.key, groups.lanes)).drop_columns([PANE])
        hashes = self._hashes(rows)
        timers = np.full(rows.num_rows, NO_TIMER)
        if self.keep is not None:
            timers = rows[self.latest].to_numpy() + self.keep
        rows = rows.append_column(HASH, pa.array(hashes.view(np.int64))).append_column(
            TIMER, pa.array(timers)
        )
        rows = rows.append_column(KNOWN, pa.array(np.ones(rows.num_rows, np.bool_)))
        return rows.select(self._kept.names).cast(self._kept)

    def _ageing(self, channel: Channel, states: OpenVersionTable, changed: Any) -> Any:
        """The versions with those of groups that the frontier leaves behind marked as forgotten."""
        until = channel.after.frontier(0)
        if self.keep is None or until is None:
            return changed
        before = channel.before.frontier(0)
        due = states.due(-_ALL if before is None else before, until)
        keys, hashes = changed.select(self._held_keys), changed[HASH].to_numpy().view(np.uint64)
        order = np.argsort(hashes)
        again = find(
            hashes[order],
            keys.take(pa.array(order)),
            due[HASH].to_numpy().view(np.uint64),
            due.select(self._held_keys),
        )
        due = due.filter(pa.array(again < 0))
        old = changed[TIMER].to_numpy() <= until
        forgotten = [_forgotten(changed.filter(pa.array(old)), self._kept), _forgotten(due, self._kept)]
        return pa.concat_tables([changed.filter(pa.array(~old)), *forgotten])

    def _hashes(self, rows: Any) -> NDArray[np.uint64]:
        return spark_hash([rows[name] for name in self._held_keys], rows.num_rows)

    def _at_once(self, rows: Any) -> Any:
        """The rows in one pane; without keys all have one."""
        if not self.keys:
            rows = rows.append_column(_ONE_KEY, pa.array(np.zeros(rows.num_rows, np.int8)))
        zeros = pa.array(np.zeros(rows.num_rows, np.int64))
        return rows.set_column(rows.column_names.index(PANE), PANE, zeros)

    @property
    def _held_keys(self) -> list[str]:
        """The key columns of versions; without a key all is kept under one."""
        return self._names or [_ONE_KEY]

    @property
    def _held(self) -> Any:
        """The columns of partials with the keys of versions."""
        return self.partials if self.keys else pa.schema([(_ONE_KEY, pa.int8()), *self.partials])

    @property
    def _kept(self) -> Any:
        """The columns of a version."""
        known = {each.name: each for each in self._held}
        del known[PANE]
        own = [known.pop(name) for name in self._held_keys]
        marks = [(HASH, pa.int64()), (TIMER, pa.int64()), (KNOWN, pa.bool_())]
        return pa.schema([*own, *marks, *known.values()])


def _forgotten(rows: Any, schema: Any) -> Any:
    """Versions of these keys without state and timer."""
    count = rows.num_rows
    marks = {TIMER: pa.array(np.full(count, NO_TIMER)), KNOWN: pa.array(np.zeros(count, np.bool_))}
    names = set(rows.column_names) - {TIMER, KNOWN}
    columns = [
        marks[each.name]
        if each.name in marks
        else rows[each.name]
        if each.name in names and (each.name == HASH or each.name.startswith(_KEYS))
        else pa.nulls(count, each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def compile_totals(operator: Totals, describe: Describe | None = None) -> TotalsKernel:
    """The kernel of an aggregation without a window."""
    panes = panes_of(describe)
    latest = panes.partial(
        Fold("max", pa.int64()), (f"max(`{TIME}`)",), Inputs((panes.event_time(),), (pa.int64(),))
    )
    grid = PaneGrid(_ALL if operator.keep is None else operator.keep)
    return TotalsKernel(
        grid=grid,
        **aggregate_columns(operator.keys, operator.aggregates, panes, describe),
        latest=latest.name,
        keep=operator.keep,
    )
