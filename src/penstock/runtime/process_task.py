"""The channel kernel of keyed functions: new rows and segments in, results and new segments out."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.compile import HASH, TIME, ProcessPlan
from penstock.keyed import (
    NO_TIMER,
    Events,
    Horizon,
    Left,
    Processor,
    Touched,
    find,
    in_event_order,
    normal_keys,
    ordered,
    stepped,
    visited,
)
from penstock.runtime.exits import Exit, OpenExits
from penstock.runtime.held_rows import ROWS, HeldRows
from penstock.runtime.key_counts import KeyCounts, count_keys
from penstock.runtime.key_states import STATE, KeyStates
from penstock.runtime.receipts import Receipt
from penstock.runtime.segments import Segment
from penstock.runtime.storage import Location

__all__ = ["ProcessTask"]

_NEVER, _ALWAYS = -(2**62), NO_TIMER - 1


@dataclass(frozen=True)
class ProcessTask:
    """One epoch's work for every channel of a keyed function.

    `before` and `after` are the frontiers around the epoch, None while there is none; with `ended` nothing
    more will come.
    """

    plan: ProcessPlan
    folder: Location
    label: str
    state: tuple[tuple[Segment, ...], ...]
    before: int | None
    after: int | None
    ended: bool
    exits: tuple[Exit, ...]

    def work(self, channel: int, new: Any) -> tuple[Receipt, dict[int, Any]]:
        """The kernel proper, from new rows (None if there are none) to a receipt."""
        began = time.perf_counter()
        segments = self.state[channel]
        received = 0 if new is None else new.num_rows
        new = None if new is None else new.cast(self.plan.sent)
        label = f"{self.label}-{channel}"
        held = HeldRows(self.folder, label, _or_never(self.before), self._released_until)
        states = KeyStates(self.plan, self.folder, label, tuple(s for s in segments if s.part == STATE))
        files = OpenExits(self.exits)
        kept = list(states.segments)
        touched = self._touched(held.released(segments, new), states)
        if touched is not None:
            left = self._left(touched.given)
            files.write(self._results(touched.given, left))
            changed = touched.there | left.known | (left.timers != NO_TIMER)
            kept = states.saved(self._kept(touched, left).filter(pa.array(changed)))
        receipt = Receipt(
            channel,
            (*kept, *(held.held([s for s in segments if s.part == ROWS], new))),
            files.close(),
            received=received,
            tuples=received,
            seconds=time.perf_counter() - began,
            keys=self._keys(new),
        )
        return receipt, files.onward()

    def _keys(self, new: Any) -> KeyCounts:
        """How often which keys came."""
        return (
            KeyCounts()
            if new is None
            else count_keys([new[key.name] for key in self.plan.keys], new.num_rows)
        )

    @property
    def _released_until(self) -> int:
        """The time before which rows are given to the function."""
        arrival = self.plan.operator.order == "arrival"
        return _ALWAYS if self.ended or arrival else _or_never(self.after)

    @property
    def _horizon(self) -> Horizon:
        return Horizon(_or_never(self.after), self.ended)

    def _touched(self, tables: list[Any], states: KeyStates) -> "_Touched | None":
        """The keys with rows that are released and those whose timers fire; None if there are none."""
        names = [key.name for key in self.plan.keys]
        rows = pa.concat_tables([self.plan.sent.empty_table(), *tables]).combine_chunks()
        hashes, times = rows[HASH].to_numpy().view(np.uint64), rows[TIME].to_numpy()
        row_keys = normal_keys(rows.select(names))
        seen = self.plan.rows(rows)
        found = in_event_order(ordered(hashes, times, row_keys), times, seen)
        first = found.order[found.first]
        hashes, keys = hashes[first], row_keys.take(pa.array(first))
        due = states.due(_or_never(self.before), _ALWAYS if self.ended else _or_never(self.after))
        if due.num_rows:
            due_hashes = due[HASH].to_numpy().view(np.uint64)
            alone = find(hashes, keys, due_hashes, due.select(names)) < 0
            hashes = np.concatenate([hashes, due_hashes[alone]])
            keys = pa.concat_tables([keys, due.select(names).filter(pa.array(alone))]).combine_chunks()
        if not len(hashes):
            return None
        standing = states.standing(hashes, keys)
        events = Events(found.order, found.groups, times[found.order])
        shown = keys.rename_columns([name for name, _ in self.plan.operator.keys])
        given = Touched(seen, events, shown, standing.state, standing.known, standing.timers)
        return _Touched(given, hashes, standing.there)

    def _left(self, touched: Touched) -> Left:
        operator = self.plan.operator
        if isinstance(operator.function, Processor):
            return stepped(operator.function, touched, operator.timeout, self._horizon, self.plan.shapes)
        return visited(operator.function, touched, operator.timeout, self._horizon, self.plan.shapes)

    def _results(self, touched: Touched, left: Left) -> Any:
        return self.plan.result(touched.keys.take(pa.array(left.groups)), left.results, left.times)

    def _kept(self, touched: "_Touched", left: Left) -> Any:
        columns = [*touched.given.keys.columns, pa.array(touched.hashes.view(np.int64))]
        columns += [pa.array(left.timers), pa.array(left.known), *left.state.columns]
        return pa.table(columns, schema=self.plan.kept)


@dataclass(frozen=True, eq=False)
class _Touched:
    """What is given to the function, the hashes of its keys, and which keys have a version already."""

    given: Touched
    hashes: Any
    there: Any


def _or_never(time: int | None) -> int:
    return _NEVER if time is None else time
