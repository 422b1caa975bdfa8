"""The channels of a function over whole windows: raw rows kept once, a call for each window that closes.

A window is closed when the frontier has passed its end, by the channel that computes it and by no other. Its
rows are in the order of event time, and rows of one time in that of their content, so what a function gets
does not depend on the order of arrival, on how epochs were cut, or on the number of channels. A closing costs
a sort of the rows that the closing windows hold; the windows themselves are slices of it, without a copy.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.distribution import ByWindow, by_key
from penstock.operators.event_order import in_event_order, or_never
from penstock.operators.exchange import TIME, Exchange
from penstock.operators.kernel import (
    Advance,
    Channel,
    Describe,
    Kernel,
    Progress,
    Seen,
    StagePosition,
    WindowEnds,
)
from penstock.operators.whole_windows.calling import Call, Caller, WholeRows, whole_rows
from penstock.operators.whole_windows.node import WholeWindows
from penstock.routing import WindowChannels, WindowShape
from penstock.routing.window_ids import window_range
from penstock.state.keys import Ordered, number_keys
from penstock.state.segments import Segment
from penstock.state.time_table import OpenTimeTable, TimeTable

__all__ = ["WholeWindowKernel", "WholeWindowProgress", "calls_for", "compile_whole_windows"]

_ROWS: Final = "rows"
_MOST_ENDS: Final = 10_000
_ALL: Final = 0
"""What a window costs is learnt of all windows together."""

Places = NDArray[np.int64]


@dataclass(frozen=True)
class WholeWindowProgress:
    """The first window that is not closed, None before the first frontier."""

    first_open: int | None = None

    @classmethod
    def of(cls, position: StagePosition) -> "WholeWindowProgress":
        """From plain values."""
        return cls(**position.progress)

    def to_json(self) -> Progress:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class WholeWindowKernel(Kernel):
    """A function over windows in channels."""

    operator: WholeWindows
    rows: WholeRows

    # What it sends, keeps and gives.

    @property
    def shape(self) -> WindowShape:
        """Where windows lie."""
        window = self.operator.window
        return WindowShape(window.size, window.slide, window.offset)

    @property
    def schema(self) -> Any:
        """The bounds of the window, the keys, what the function makes; TIME is the window's start."""
        return self.rows.results("window_start")

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Rows by their keys, or by the windows that they are in."""
        columns, operator = self.rows.sent, self.operator
        if operator.partitioning == "keys":
            return (Exchange(columns, by_key(self.rows.key_names)),)
        fixed = operator.partitioning == "windows" or operator.batch is not None
        return (Exchange(columns, ByWindow(self.shape, operator.batch or 1, fixed)),)

    @property
    def tables(self) -> tuple[TimeTable]:
        """Rows that an open window still needs."""
        keys = self.rows.key_names if self.operator.partitioning == "keys" else ()
        return (TimeTable(_ROWS, keys=keys, labels=self.rows.labels, lives=(0, self.shape.size)),)

    # How far it comes.

    def bound(self, position: StagePosition, port: int) -> int | None:
        """Where the first open window starts: a row before it is in closed windows alone.

        Where a row counts in all of its windows or in none, it is where the last closed window ends.
        """
        del port
        first_open = WholeWindowProgress.of(position).first_open
        if first_open is None:
            return None
        ended = self.shape.start_of(first_open - 1) + self.shape.size
        # Between windows that lie apart a row is in none, and not late.
        return ended if self.operator.late == "drop" else min(self.shape.start_of(first_open), ended)

    def advance(
        self, before: StagePosition, frontiers: tuple[int | None, ...], seen: Seen, drained: int | None
    ) -> Advance:
        """A window closes when the frontier has passed its end; the first open one never goes back."""
        opened = WholeWindowProgress.of(before).first_open
        opens = self._first_open(opened, frontiers[0], drained, known=seen.rows or seen.state)
        promise = None if opens is None else self.shape.start_of(opens)
        if drained is not None:
            promise = drained if promise is None else max(drained, promise)
        idle = not seen.rows and (opens == opened or not seen.state)
        return Advance(StagePosition(frontiers, promise, WholeWindowProgress(opens).to_json()), idle=idle)

    def _first_open(
        self, before: int | None, frontier: int | None, drained: int | None, *, known: bool
    ) -> int | None:
        shape = self.shape
        if drained is not None:
            if not known:
                return before
            opens = (drained - 1 - shape.offset) // shape.slide + 1
        elif frontier is None:
            return before
        else:
            opens = (frontier - shape.offset - shape.size) // shape.slide + 1
        return opens if before is None else max(opens, before)

    def ends(self, before: StagePosition, after: StagePosition) -> WindowEnds:
        """The windows between the first that was open and the first that is."""
        opened, opens = (WholeWindowProgress.of(each).first_open for each in (before, after))
        shape = self.shape
        if opens is None:
            return WindowEnds((), shape.size)
        first = opens - _MOST_ENDS if opened is None else max(opened, opens - _MOST_ENDS)
        return WindowEnds([shape.start_of(each) + shape.size for each in range(first, opens)], shape.size)

    # What a channel does.

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Call the function for the windows that the frontier has passed, and keep the rows of the others."""
        opened, opens = (WholeWindowProgress.of(each).first_open for each in (channel.before, channel.after))
        sent = self.rows.schema
        new = None if channel.new[0] is None else channel.new[0].select(sent.names).cast(sent)
        held = self.tables[0].open(channel.store, sent, channel.before.frontiers)
        if opens is not None and (opened is None or opens > opened):
            self._close(channel, held, new, opened, opens)
        until = or_never(None if opens is None else self.shape.start_of(opens))
        return tuple(held.close_by_time(until, new))

    def _close(self, channel: Channel, held: OpenTimeTable, new: Any, opened: int | None, opens: int) -> None:
        """Call the function for the windows from `opened` up to `opens` that this channel computes."""
        shape = self.shape
        since = or_never(None if opened is None else shape.start_of(opened))
        until = shape.start_of(opens - 1) + shape.size
        found = held.between(since, until)
        if new is not None:
            times = new[TIME].to_numpy()
            found.append(new.filter(pa.array((times >= since) & (times < until))))
        rows = pa.concat_tables([self.rows.schema.empty_table(), *found]).combine_chunks()
        if not rows.num_rows:
            return
        numbers, keys = number_keys(rows.select(list(self.rows.key_names)).columns, rows.num_rows)
        times = rows[TIME].to_numpy()
        order = np.lexsort((times, numbers))
        groups = numbers[order]
        first = np.flatnonzero(np.diff(groups, prepend=-1))
        dense = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
        shown = self.rows.shown(rows)
        order = in_event_order(Ordered(order, dense, first), times, shown).order
        calls = calls_for(shape, times[order], groups, opened, opens, channel.view, channel.number)
        batch = shown.take(pa.array(order)).combine_chunks()
        caller = Caller(self.rows, self.schema, str(self.operator), batch, keys, channel.refuse)
        if channel.meter is None:
            caller.run(calls, channel.emit)
            return
        _, wall, cpu = channel.meter.timed(partial(caller.run, calls, channel.emit))
        if calls:
            channel.meter.note(_ALL, len({each.begins for each in calls}), wall, cpu)


def calls_for(  # noqa: PLR0913, PLR0917 -- the rows, the windows and who computes them
    shape: WindowShape,
    times: Places,
    keys: Places,
    opened: int | None,
    opens: int,
    windows: WindowChannels | None = None,
    channel: int = 0,
) -> list[Call]:
    """The windows below `opens` that hold rows, of rows sorted by key and time, each with its range of rows.

    Windows before `opened` are closed already; of the others those count that `windows` has on `channel`.
    Costs O(rows) and O(log rows) for each window.

    >>> found = calls_for(WindowShape(4, 2), np.array([1, 5, 6]), np.array([0, 0, 0]), None, 2)
    >>> [(each.begins, each.ends, each.start, each.stop) for each in found]
    [(-2, 2, 0, 1), (0, 4, 0, 1), (2, 6, 1, 2)]
    """
    found: list[Call] = []
    edges = np.append(np.flatnonzero(np.diff(keys, prepend=keys[0] - 1)), len(keys)).tolist()
    for start, stop in pairwise(edges):
        own = times[start:stop]
        numbers = np.fromiter(_windows_with(shape, own, opened, opens), np.int64)
        if windows is not None:
            numbers = numbers[windows.of(numbers) == channel]
        begins = numbers * shape.slide + shape.offset
        first, last = np.searchsorted(own, begins), np.searchsorted(own, begins + shape.size)
        key = int(keys[start])
        found += [
            Call(begin, begin + shape.size, key, start + one, start + other)
            for begin, one, other in zip(begins.tolist(), first.tolist(), last.tolist(), strict=True)
        ]
    return found


def _windows_with(shape: WindowShape, times: Places, opened: int | None, opens: int) -> Iterator[int]:
    """The windows in a range that hold one of these ascending times, each once and ascending."""
    first, last = window_range(shape, times)
    first = first if opened is None else np.maximum(first, opened)
    last = np.minimum(last, opens - 1)
    # Both rise with time, so the new windows of a row are those after the last of all rows before it.
    before = np.maximum.accumulate(np.append(first[:1] - 1, last))[:-1]
    first = np.maximum(first, before + 1)
    for one, other in zip(*(each[first <= last].tolist() for each in (first, last)), strict=True):
        yield from range(one, other + 1)


def compile_whole_windows(operator: WholeWindows, time_type: str, describe: Describe) -> WholeWindowKernel:
    """The kernel of a function over windows, with what Spark says about the types."""
    return WholeWindowKernel(operator, whole_rows(operator.function, operator.keys, time_type, describe))
