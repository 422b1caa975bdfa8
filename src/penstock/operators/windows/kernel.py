"""The channels of a windowed aggregation: partials of panes in, closed windows out ([004] §2.4).

A window is closed when the frontier has passed its end: its panes are merged and finished (the window-level
query).
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.aggregates.partials import ROWS
from penstock.distribution import ByWindow, Distribution, by_key
from penstock.operators.aggregated import CHANGE
from penstock.operators.exchange import TIME, Form
from penstock.operators.kernel import (
    Advance,
    Channel,
    Ends,
    Progress,
    Seen,
    StagePosition,
    WindowEnds,
)
from penstock.operators.windows.block import PaneBlock
from penstock.operators.windows.node import Late
from penstock.operators.windows.panes import PaneKernel
from penstock.operators.windows.sliding import Closed, Partials, close_windows, extents
from penstock.routing import PaneWindows, SlidingPanes, WindowShape
from penstock.state.pane_nodes import Extent
from penstock.state.pane_table import PANE, PaneTable, Piece
from penstock.state.segments import Segment
from penstock.state.table import Table

__all__ = ["WindowKernel", "WindowProgress", "complete", "of_pieces"]


_MOST_ENDS = 10_000


@dataclass(frozen=True)
class WindowProgress:
    """How far windows have come, in panes: those that end at or below `closed` are closed.

    Those that end at or below `final` get no corrections any more. Both are ends of windows. `newest` is the
    last pane that holds a tuple. All are None before the first. `rounds` counts deliveries of early results.
    """

    closed: int | None = None
    final: int | None = None
    newest: int | None = None
    rounds: int | None = None

    @classmethod
    def of(cls, position: StagePosition) -> "WindowProgress":
        """From plain values."""
        return cls(**position.progress)

    def to_json(self) -> Progress:
        """Plain values."""
        return asdict(self)

    def delivers(self, before: "WindowProgress") -> bool:
        """Whether early results are due on the way here: a round is over, or windows are closed or final.

        What is delivered of a tuple is delivered for all of its windows, so closing some is a reason too.
        """
        return (self.rounds, self.closed, self.final) != (before.rounds, before.closed, before.final)


@dataclass(frozen=True)
class WindowKernel(PaneKernel):
    """A windowed aggregation in channels.

    `bound_type` is the type of window_start and window_end. With `late` "count" a tuple counts in those of
    its windows that are open, with "drop" in all of them or in none. Closed windows are corrected for
    `lateness` microseconds of event time; open ones are delivered `early`, every so many of them. `parted`
    are the places of the keys that the router hashes, None for all; with `in_place` the rows come from a
    stage in the same channels.
    """

    windows: tuple[PaneWindows, ...]
    bound_type: Any
    late: Late = "count"
    lateness: int = 0
    early: int | None = None
    parted: tuple[int, ...] | None = None

    # What it sends, keeps and gives.

    @property
    def revising(self) -> bool:
        """Whether a window may be delivered more than once."""
        return bool(self.lateness) or self.early is not None

    @property
    def schema(self) -> Any:
        """The bounds of the window, the keys, the aggregates; the event time is the window's start."""
        fields = [(CHANGE, pa.string())] if self.revising else []
        fields += [("window_start", self.bound_type), ("window_end", self.bound_type)]
        fields += [(key.name, key.type) for key in self.keys]
        return pa.schema([*fields, *((each.name, each.type) for each in self.results), (TIME, pa.int64())])

    @property
    def distribution(self) -> Distribution:
        """By the keys; without one by windows, if several channels are worth it."""
        if self.keys or self.by_window is None:
            return by_key(tuple(self._names), mergeable=self.splits and bool(self.keys), slices=PANE)
        return self.by_window

    @property
    def by_window(self) -> ByWindow | None:
        """Windows without a key on a ring of channels, where user code may be formed in several of them.

        A channel takes as many neighbours as let a pane's partial go to one channel and the next at most
        ([004] §2.4.3). What Spark combines on its map side is so little that one channel is enough.
        """
        windows = self.windows[0]
        one = len(self.windows) == 1 and isinstance(windows, SlidingPanes)
        if self.keys or self.revising or not one or not self.splits:
            return None
        assert isinstance(windows, SlidingPanes)
        grid, shared = self.grid, windows.span - windows.stride
        size, slide = windows.span * grid.pane, windows.stride * grid.pane
        shape = WindowShape(size, slide, grid.start_of(windows.phase))
        return ByWindow(
            shape,
            batch=max(1, -(-shared // windows.stride)),
            fixed=True,
            slices=PANE,
            width=grid.pane,
            offset=grid.offset,
            mergeable=True,
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables of panes."""
        return self.pane_tables

    @property
    def pane_tables(self) -> tuple[PaneTable, ...]:
        """Partials of panes, and coarser nodes over them; with early results also those not delivered yet."""
        names = self._names
        parted = names if self.parted is None else [names[place] for place in self.parted]
        own = ("panes",) if self.early is None else ("panes", "undelivered")
        return tuple(
            PaneTable(
                name,
                keys=tuple(parted),
                labels=self._labels,
                span=max(each.longest for each in self.windows),
                pane=self.grid.pane,
                offset=self.grid.offset,
                ordered=self.ordered,
            )
            for name in own
        )

    def hosted(self, keys: tuple[str, ...]) -> "WindowKernel":
        """In the channels of a stage that parts its rows by these of its keys, in that order."""
        names = [key.name for key in self.keys]
        return replace(self, parted=tuple(names.index(name) for name in keys))

    # How far it comes.

    def bound(self, position: StagePosition, port: int) -> int | None:
        """Where the first window that is open begins; or the last one that is closed ends."""
        del port
        final = WindowProgress.of(position).final
        if final is None:
            return None
        opens = [(each, each.first_with(final)) for each in self.windows]
        if self.late == "drop":
            return int(self.grid.start_of(max(each.end(first - 1) for each, first in opens)))
        return int(self.grid.start_of(min(each.late_below(first) for each, first in opens)))

    def advance(
        self, before: StagePosition, frontiers: tuple[int | None, ...], seen: Seen, drained: int | None
    ) -> Advance:
        """A window closes when the frontier has passed its end; what is closed stays closed."""
        progress = WindowProgress.of(before)
        panes = [each for each in (progress.newest, seen.bucket) if each is not None]
        newest = max(panes, default=None)
        closed = self._closed(progress.closed, newest, frontiers[0], drained)
        allowed = None if frontiers[0] is None else frontiers[0] - self.lateness
        final = self._closed(progress.final, newest, allowed, drained)
        kept = self._kept_from(final)
        promise = None if kept is None else int(self.grid.start_of(kept))
        if drained is not None:
            promise = drained if promise is None else max(drained, promise)
        rounds = self._rounds(progress.rounds, frontiers[0], drained)
        after = WindowProgress(closed, final, newest, rounds)
        moved = (closed, final) != (progress.closed, progress.final)
        due = self.early is not None and seen.state and after.delivers(progress)
        idle = not (seen.rows or moved or due)
        return Advance(StagePosition(frontiers, promise, after.to_json()), idle=idle)

    def _closed(
        self, before: int | None, newest: int | None, frontier: int | None, drained: int | None
    ) -> int | None:
        """The latest end of a window that has been passed."""
        if drained is not None:
            # What comes from a stage in the same channels is not known here; nothing is later than the end.
            last = newest if self.parted is None else self.grid.pane_of(drained)
            if last is None:
                return before
            passed = max(each.end(each.last_with(last)) for each in self.windows)
        elif frontier is None:
            return before
        else:
            pane = self.grid.pane_of(frontier)
            passed = max(each.end(each.first_with(pane) - 1) for each in self.windows)
        return int(passed if before is None else max(passed, before))

    def _rounds(self, before: int | None, frontier: int | None, drained: int | None) -> int | None:
        """How often the frontier has passed a multiple of `early`, counted from the grid's origin."""
        if self.early is None:
            return None
        if drained is not None:
            return 0 if before is None else before + 1
        if frontier is None:
            return before
        now = (frontier - self.grid.offset) // self.early
        return now if before is None else max(now, before)

    def _kept_from(self, closed: int | None) -> int | None:
        """The first pane that a window which is not closed, or not final, may need."""
        return (
            None if closed is None else int(min(each.start(each.first_with(closed)) for each in self.windows))
        )

    def partly_late(self, before: StagePosition, new: tuple[Any | None, ...], form: Form) -> int:
        """Tuples of which some windows were closed and final, and others were not."""
        final, (rows,) = WindowProgress.of(before).final, new
        if final is None or rows is None:
            return 0
        pane = rows[PANE].to_numpy()
        below = np.flatnonzero(pane < final)
        missed = np.zeros(len(below), np.bool_)
        for each in self.windows if len(below) else ():
            first = each.first_with(pane[below])
            missed |= (first < each.first_with(final)) & (each.start(first) <= pane[below])
        return int(missed.sum() if form == "rows" else rows[ROWS].to_numpy()[below][missed].sum())

    def ends(self, before: StagePosition, after: StagePosition) -> Ends:
        """The windows that end after the last one that was closed, up to the last one that is."""
        opened, closed = (WindowProgress.of(each).closed for each in (before, after))
        times: list[int] = []
        sizes: list[int] = []
        for each in self.windows if closed is not None else ():
            until = each.first_with(closed)
            first = until - _MOST_ENDS if opened is None else max(each.first_with(opened), until - _MOST_ENDS)
            numbers = np.arange(first, until)
            times += self.grid.start_of(each.end(numbers)).tolist()
            sizes += ((each.end(numbers) - each.start(numbers)) * self.grid.pane).tolist()
        return WindowEnds(times, sizes)

    # What a channel does.

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Close the windows that the frontier has passed, and keep the partials of the others."""
        (rows,) = channel.new
        opened, closed = (WindowProgress.of(each).closed for each in (channel.before, channel.after))
        state = self.pane_tables[0].open(channel.store, self, self._kept_from(opened))
        kept = self._kept_from(closed)
        first = self._first(rows, state.first)
        closing = [self._closing(each, first, opened, closed) for each in self.windows]
        raw, tables = (rows, []) if channel.form == "rows" else (None, [] if rows is None else [rows])
        fresh = tables[0] if tables else None
        if any(closing) or raw is not None:
            pieces = [
                state.pieces(*extents(*each)) if each[1] else []
                for each in zip(self.windows, closing, strict=True)
            ]
            held = state.held([piece for each in pieces for piece in each])
            block = self._block([*(table for _, table in held), *tables], raw)
            lengths = [*(length for length, _ in held), *(0 for _ in tables)]
            for windows, numbers, own in zip(self.windows, closing, pieces, strict=True):
                # Nodes that one shape reads would count a second time for another.
                apart = len(self.windows) > 1 and max(lengths, default=0) > 1
                chosen = _chosen(block.rows, block.marked(0, lengths), own) if apart else block.rows
                chosen = chosen.by_pane() if self.ordered else chosen
                held_to = int(chosen.pane.max()) + max(lengths, default=0) if len(chosen.pane) else None
                for part in _own(numbers, channel, windows, held_to):
                    for each in close_windows(windows, part.start, part.stop, chosen, block.merges):
                        channel.emit(self._finished(block, windows, each))
            if raw is not None:
                fresh = self._formed(block, kept)
        return tuple(state.close(fresh, kept, complete(first, opened, closed)))

    def _first(self, rows: Any, held: int | None) -> int | None:
        """The first pane that this channel has."""
        first = [] if held is None else [held]
        if rows is not None:
            first.append(int(rows[PANE].to_numpy().min()))
        return min(first, default=None)

    @staticmethod
    def _closing(windows: PaneWindows, first: int | None, opened: int | None, closed: int | None) -> range:
        """The windows that this channel has to close now."""
        if closed is None or first is None:
            return range(0)
        start = windows.first_with(first if opened is None else max(first, opened))
        return range(start, windows.first_with(closed))

    def _formed(self, block: PaneBlock, kept: int | None) -> Any:
        """The partials that were formed in this channel, of panes that an open window still needs."""
        chosen = block.rows.at(slice(block.held, None))
        if kept is not None:
            chosen = chosen.at(np.flatnonzero(chosen.pane >= kept))
        return block.table(chosen)

    def _finished(
        self, block: PaneBlock, windows: PaneWindows, closed: Closed, change: str | None = None
    ) -> Any:
        """Closed windows as rows of the result."""
        columns = self._columns(block, closed)
        start, end = (
            self.grid.start_of(each) for each in (windows.start(closed.window), windows.end(closed.window))
        )
        bounds = [pa.array(each).cast(self.bound_type) for each in (start, end)]
        values = [result.finish(columns) for result in self.results]
        changes = [] if change is None else [pa.repeat(pa.scalar(change), len(start))]
        arrays = [*changes, *bounds, *block.key_columns(closed.key), *values, pa.array(start)]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def _own(numbers: range, channel: Channel, windows: PaneWindows, held_to: int | None) -> list[range]:
    """The windows of a range that the channel computes, in runs of neighbours.

    Those behind the last pane are empty and left out: the frontier may be any time ahead of all rows.
    """
    if channel.view is None or not numbers:
        return [numbers]
    if held_to is None:
        return []
    every = np.arange(numbers.start, min(numbers.stop, windows.last_with(held_to) + 1))
    own = every[channel.view.of(every) == channel.number]
    pieces = np.split(own, np.flatnonzero(np.diff(own) > 1) + 1) if len(own) else []
    return [range(int(each[0]), int(each[-1]) + 1) for each in pieces]


def _chosen(rows: Partials, lengths: NDArray[Any], pieces: list[Piece]) -> Partials:
    """New rows, which have no length, and those of the pieces that one shape of windows reads."""
    return rows.at(np.flatnonzero((lengths == 0) | of_pieces(rows, lengths, pieces)))


def of_pieces(rows: Partials, lengths: NDArray[Any], pieces: list[Piece]) -> NDArray[np.bool_]:
    """The rows of state that belong to some pieces."""
    inside = np.zeros(len(lengths), np.bool_)
    for length, extent in pieces:
        inside |= (lengths == length) & (rows.pane >= extent.start) & (rows.pane < extent.end)
    return inside


def complete(first: int | None, opened: int | None, closed: int | None) -> Extent | None:
    """The panes that become complete when windows close, from the first one that a channel has."""
    begin = first if opened is None else opened
    return None if begin is None or closed is None else Extent(begin, closed)
