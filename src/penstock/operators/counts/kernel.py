"""The channels of windows of counts: rows in event order, numbered by key, combined by panes of numbers.

A row waits until the frontier has passed it. Then it gets the next number of its key, and the partial of its
pane, gcd(size, slide) numbers long, takes it in. A window ends at every `slide`-th row and holds the `size`
rows up to it, so it is a merge of panes, as over time. Which rows a window holds depends neither on the order
of arrival nor on how epochs are cut.

Where only Spark can form a partial it forms one of every row, and the channel merges these.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.operators.aggregate_columns import combine_of
from penstock.operators.counts.node import CountWindow, CountWindows
from penstock.operators.counts.sliding import Runs, merged_runs
from penstock.operators.event_order import ALWAYS, EventOrderKernel, in_event_order, or_never, released
from penstock.operators.exchange import TIME, Bucket, Exchange, Form
from penstock.operators.group_partials import GroupPartials, HeldKeys, compile_groups
from penstock.operators.kernel import Channel, Describe
from penstock.operators.windows.block import PaneBlock
from penstock.operators.windows.sliding import Partials
from penstock.state.keys import ordered
from penstock.state.pane_table import PANE
from penstock.state.segments import Segment
from penstock.state.time_table import TimeTable
from penstock.state.version_table import NO_TIMER, TIMER, VersionTable

__all__ = ["CountKernel", "compile_counts"]

_COUNTED, _WAITING, _COUNT = "counted", "rows", "_ps_count"

Places = NDArray[np.int64]


@dataclass(frozen=True)
class CountKernel(EventOrderKernel):
    """Windows of counts in channels."""

    groups: GroupPartials
    window: CountWindow

    # What it sends, keeps and gives.

    @property
    def schema(self) -> Any:
        """The event time, which is that of the window's last row, that of the first, keys, aggregates."""
        return pa.schema(self.groups.fields)

    @property
    def sent_as(self) -> Form:
        """Rows, or partials of single rows where only Spark can form them."""
        return "combined" if self.groups.forms == ("combined",) else "rows"

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Rows by their keys; a bucket is one moment."""
        combine = combine_of((self.sent_as,), self.groups.partial_columns, rowwise=True)
        return (self.groups.exchange(Bucket(PANE, 0, 1), combine),)

    @property
    def tables(self) -> tuple[VersionTable, TimeTable]:
        """The last rows of each key as partials; rows that wait for the frontier."""
        names, labels = self.groups.sent_keys, self.groups.labels
        return (
            VersionTable(_COUNTED, keys=names, labels={**labels, _COUNT: "_rows", PANE: "_pane", TIMER: ""}),
            TimeTable(_WAITING, keys=names, labels={**labels, PANE: ""}, lives=(0, 0)),
        )

    def forming_words(self) -> list[str]:
        """Where partials are formed and why."""
        where = "Spark SQL, one for each row: some only Spark can form"
        if self.sent_as == "rows":
            where = "Arrow in the channel, from rows in their order"
        columns = self.groups.partial_columns
        return [f"partials: {where}", *(f"  {', '.join(each.columns)} := {each.source}" for each in columns)]

    # What a channel does.

    @property
    def partials(self) -> Any:
        """The columns of partials, where Spark forms them."""
        return self.groups.schema

    def received(self, combined: Any) -> Any:
        """The partials of rows that Spark has formed."""
        return self.groups.received(combined)

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Number the rows that the frontier has passed, and give the windows that they complete."""
        until = ALWAYS if channel.ended else or_never(channel.after.frontier(0))
        new = None if channel.new[0] is None else self._sent(channel.new[0])
        counted, rows = self.tables
        states = counted.open(channel.store, self.groups.kept((_COUNT, pa.int64())))
        waiting = rows.open(channel.store, self._held, channel.before.frontiers)
        taken = [each for each in released(channel, waiting, new, until) if each.num_rows]
        changed = None
        if taken:
            fresh = pa.concat_tables(taken).combine_chunks()
            changed = self._counted(channel, self.groups.numbered(states, fresh), fresh)
        return (*states.close(changed), *waiting.close_by_time(until, new))

    def _sent(self, rows: Any) -> Any:
        """New rows as they wait: with their time, which is their bucket."""
        rows = rows.drop_columns([TIME]) if TIME in rows.column_names else rows
        return rows.append_column(TIME, rows[PANE]).select(self._held.names).cast(self._held)

    @property
    def _held(self) -> Any:
        """The columns of rows that wait."""
        columns = self.groups.schema if self.sent_as == "combined" else self.groups.raw
        fields = [each for each in columns if each.name not in {PANE, TIME}]
        return pa.schema([*fields, pa.field(TIME, pa.int64())])

    def _counted(self, channel: Channel, held: HeldKeys, fresh: Any) -> Any:
        """Emit the windows that are complete; the versions of all keys with new rows."""
        fresh, keys, before, after = self._numbered(held, fresh)
        block = held.block(fresh, keys, raw=self.sent_as == "rows")
        rows = self._merged_panes(block, held)
        slide, size, pane = self.window.slide, self.window.size, self.window.pane
        done = self._complete(rows, before // slide, after // slide)
        if len(done.key):
            channel.emit(self._finished(block, held, rows, done))
        kept = rows.at(np.flatnonzero(rows.pane >= ((after // slide + 1) * slide - size)[rows.key] // pane))
        timers, known = np.full(len(held), NO_TIMER), np.ones(len(held), np.bool_)
        return held.versions(block, kept, timers, known, **{_COUNT: after})

    def _numbered(self, held: HeldKeys, fresh: Any) -> tuple[Any, Places, Places, Places]:
        """The rows by key in event order, with their panes, keys, and rows of each key before and after."""
        times, keys = fresh[TIME].to_numpy(), held.numbers
        content = fresh.drop_columns([*self.groups.sent_keys, TIME])
        found = in_event_order(ordered(keys.view(np.uint64), times, pa.table({"n": keys})), times, content)
        before = held.found.state[_COUNT].fill_null(0).to_numpy()
        keys = keys[found.order]
        number = before[keys] + np.arange(len(keys)) - found.first[found.groups]
        rows = fresh.take(pa.array(found.order)).append_column(PANE, pa.array(number // self.window.pane))
        return rows, keys, before, before + np.bincount(keys, minlength=len(held))

    def _merged_panes(self, block: PaneBlock, held: HeldKeys) -> Partials:
        """One partial for each key and pane, ascending; what is kept is on the left of what is new."""
        rows = block.rows
        fresh = np.arange(len(block)) >= held.rows.num_rows
        order = np.lexsort((np.arange(len(block)), fresh, rows.pane, rows.key))
        rows = rows.at(order)
        starts = np.ones(len(block), np.bool_)
        starts[1:] = (np.diff(rows.key) != 0) | (np.diff(rows.pane) != 0)
        at, count = np.cumsum(starts) - 1, int(np.count_nonzero(starts))
        lanes = tuple(
            merge.scatter(count, at, lane) for merge, lane in zip(block.merges, rows.lanes, strict=True)
        )
        return Partials(rows.pane[starts], rows.key[starts], lanes)

    def _complete(self, rows: Partials, before: Places, after: Places) -> Runs:
        """The windows that each key has completed, as runs of its panes, which follow one another."""
        begin = np.flatnonzero(np.append(True, np.diff(rows.key) != 0))
        length = np.diff(np.append(begin, len(rows.key)))
        count = (after - before)[rows.key[begin]]
        key = np.repeat(np.arange(len(begin)), count)
        number = np.arange(len(key)) - np.repeat(np.cumsum(count) - count, count)
        end = (before[rows.key[begin]][key] + number + 1) * self.window.slide
        origin = begin[key] - rows.pane[begin][key]
        first = origin + (end - self.window.size) // self.window.pane
        last = origin + end // self.window.pane - 1
        return Runs(
            rows.key[begin][key],
            np.maximum(first, begin[key]),
            last,
            places=np.arange(len(rows.key)) - np.repeat(begin, length),
            span=self.window.size // self.window.pane,
        )

    def _finished(self, block: PaneBlock, held: HeldKeys, rows: Partials, done: Runs) -> Any:
        lanes = tuple(
            merged_runs(merge, lane, done) for merge, lane in zip(block.merges, rows.lanes, strict=True)
        )
        first, last = (self.groups.lane(lanes, name) for name in (self.groups.first, self.groups.last))
        return self.groups.finished((first, last), held.keys.take(pa.array(done.key)), block.stored(lanes))


def compile_counts(operator: CountWindows, time_type: str, describe: Describe | None = None) -> CountKernel:
    """The kernel of windows of counts."""
    return CountKernel(
        compile_groups(operator.keys, operator.aggregates, time_type, describe), operator.window
    )
