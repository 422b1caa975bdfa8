"""The channels of a windowed aggregation: partials of panes in, closed windows out ([004] §2.4).

Each tuple is aggregated once, into the partial of its pane and key (the pane-level query). A window is closed
when the frontier has passed its end: its panes are merged and finished (the window-level query). Partials are
formed on the map side by Spark SQL, or in the channel from raw rows; both give the same columns.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.aggregates.aggregate import ResolvedAggregate
from penstock.aggregates.partials import ROWS, Finish, PaneColumns, Partial
from penstock.expressions.scalar import Expression
from penstock.expressions.types import arrow_type
from penstock.operators.exchange import KEY, TIME, Bucket, ByWindow, Combine, Exchange, Form, SqlColumn
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
from penstock.operators.windows.block import PaneBlock
from penstock.operators.windows.node import Aggregation, Late
from penstock.operators.windows.shapes import paned
from penstock.operators.windows.sliding import Closed, Partials, close_windows, extents
from penstock.routing import PaneGrid, PaneWindows, SlidingPanes, WindowShape
from penstock.state.pane_nodes import Extent
from penstock.state.pane_table import PANE, PaneTable, Piece
from penstock.state.segments import Segment

__all__ = ["WindowKernel", "WindowProgress", "WindowResult", "compile_windows"]


_MOST_ENDS = 10_000


@dataclass(frozen=True)
class WindowResult:
    """One aggregate of the result."""

    name: str
    finish: Finish
    type: Any


@dataclass(frozen=True)
class WindowProgress:
    """How far windows have come, in panes: windows that end at or below `closed` are closed.

    `closed` is the end of a window. `newest` is the last pane that holds a tuple. None before the first.
    """

    closed: int | None = None
    newest: int | None = None

    @classmethod
    def of(cls, position: StagePosition) -> "WindowProgress":
        """From plain values."""
        return cls(**position.progress)

    def to_json(self) -> Progress:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class WindowKernel(Kernel):
    """A windowed aggregation in channels.

    `keys` are named as in the result; `inputs` are the columns of raw rows that partials are formed from.
    `bound_type` is the type of window_start and window_end. With `late` "count" a tuple counts in those of
    its windows that are open, with "drop" in all of them or in none. `parted` are the places of the keys that
    the router hashes, None for all; with `in_place` the rows come from a stage in the same channels.
    """

    grid: PaneGrid
    windows: tuple[PaneWindows, ...]
    keys: tuple[SqlColumn, ...]
    inputs: tuple[SqlColumn, ...]
    partial_columns: tuple[Partial, ...]
    results: tuple[WindowResult, ...]
    bound_type: Any
    late: Late = "count"
    parted: tuple[int, ...] | None = None

    # What it sends, keeps and gives.

    @property
    def schema(self) -> Any:
        """The bounds of the window, the keys, the aggregates; the event time is the window's start."""
        fields = [("window_start", self.bound_type), ("window_end", self.bound_type)]
        fields += [(key.name, key.type) for key in self.keys]
        return pa.schema([*fields, *((each.name, each.type) for each in self.results), (TIME, pa.int64())])

    @property
    def forms(self) -> tuple[Form, ...]:
        """Where partials may be formed, the better guess first: on the map side, or in the channel."""
        if any(partial.lift is None for partial in self.partial_columns):
            return ("combined",)
        # Collecting lists only to take them apart again is never better than shipping the rows.
        accumulated = any(partial.accumulated for partial in self.partial_columns)
        return ("rows",) if accumulated else ("combined", "rows")

    @property
    def splits(self) -> bool:
        """Whether rows of one key may be formed in several channels: by user code, all of which allows it."""
        own = [each.accumulated.aggregate for each in self.partial_columns if each.accumulated]
        return self.forms == ("rows",) and bool(own) and all(each.split for each in own)

    @property
    def by_window(self) -> ByWindow | None:
        """Windows without a key on a ring of channels, where user code may be formed in several of them.

        A channel takes as many neighbours as let a pane's partial go to one channel and the next at most
        ([004] §2.4.3). What Spark combines on its map side is so little that one channel is enough.
        """
        windows = self.windows[0]
        if self.keys or len(self.windows) > 1 or not self.splits or not isinstance(windows, SlidingPanes):
            return None
        grid, shared = self.grid, windows.span - windows.stride
        size, slide = windows.span * grid.pane, windows.stride * grid.pane
        shape = WindowShape(size, slide, grid.start_of(windows.phase))
        return ByWindow(shape, batch=max(1, -(-shared // windows.stride)), fixed=True)

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Rows or partials by their keys, or by their windows."""
        keys = tuple(
            SqlColumn(name, key.sql, key.type) for name, key in zip(self._names, self.keys, strict=True)
        )
        combined = tuple(
            pair
            for partial in self.partial_columns
            for pair in zip(partial.wire, partial.combine, strict=True)
        )
        return (
            Exchange(
                columns=(*keys, *self.inputs),
                keys=tuple(self._names),
                bucket=Bucket(PANE, self.grid.offset, self.grid.pane),
                combine=Combine(combined, weight=ROWS),
                forms=self.forms,
                parts=self.splits if self.keys else self.by_window is not None,
                windows=self.by_window,
            ),
        )

    @property
    def tables(self) -> tuple[PaneTable]:
        """Partials of panes, and coarser nodes over them."""
        names = self._names
        labels = {name: key.name for name, key in zip(names, self.keys, strict=True)}
        for partial in self.partial_columns:
            labels |= dict(zip(partial.columns, partial.texts, strict=True))
        parted = names if self.parted is None else [names[place] for place in self.parted]
        return (
            PaneTable(
                "panes",
                keys=tuple(parted),
                labels=labels,
                span=max(each.longest for each in self.windows),
                pane=self.grid.pane,
                offset=self.grid.offset,
                ordered=any(
                    each.accumulated and not each.accumulated.aggregate.split for each in self.partial_columns
                ),
            ),
        )

    def hosted(self, keys: tuple[str, ...]) -> "WindowKernel":
        """In the channels of a stage that parts its rows by these of its keys, in that order."""
        names = [key.name for key in self.keys]
        return replace(self, parted=tuple(names.index(name) for name in keys))

    # How far it comes.

    def bound(self, position: StagePosition, port: int) -> int | None:
        """Where the first window that is open begins; or the last one that is closed ends."""
        del port
        closed = WindowProgress.of(position).closed
        if closed is None:
            return None
        opens = [(each, each.first_with(closed)) for each in self.windows]
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
        kept = self._kept_from(closed)
        promise = None if kept is None else int(self.grid.start_of(kept))
        if drained is not None:
            promise = drained if promise is None else max(drained, promise)
        after = WindowProgress(closed, newest)
        idle = not seen.rows and closed == progress.closed
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
        return passed if before is None else max(passed, before)

    def _kept_from(self, closed: int | None) -> int | None:
        """The first pane that a window which is still open may need."""
        return (
            None if closed is None else int(min(each.start(each.first_with(closed)) for each in self.windows))
        )

    def ends(self, before: StagePosition, after: StagePosition) -> WindowEnds:
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
        state = self.tables[0].open(channel.store, self, self._kept_from(opened))
        kept = self._kept_from(closed)
        first = self._first(rows, state.first)
        closing = [self._closing(each, first, opened, closed) for each in self.windows]
        raw, tables = (rows, []) if channel.form == "rows" else (None, self._received(rows, channel.form))
        fresh = tables[0] if tables else None
        if any(closing) or raw is not None:
            pieces = [
                state.pieces(*extents(*each)) if each[1] else []
                for each in zip(self.windows, closing, strict=True)
            ]
            held = state.held([piece for each in pieces for piece in each])
            block = self._block([*tables, *(table for _, table in held)], raw)
            lengths = block.marked(0, [*(0 for _ in tables), *(length for length, _ in held)])
            for windows, numbers, own in zip(self.windows, closing, pieces, strict=True):
                chosen = block.rows if len(self.windows) == 1 else _chosen(block.rows, lengths, own)
                for part in _own(numbers, channel):
                    for each in close_windows(windows, part.start, part.stop, chosen, block.merges):
                        channel.emit(self._finished(block, windows, each))
            if raw is not None:
                fresh = self._formed(block, kept)
        if opened is None or closed is None:
            complete = None if closed is None or first is None else Extent(first, closed)
        else:
            complete = Extent(opened, closed)
        return tuple(state.close(fresh, kept, complete))

    def combined(self, tables: list[Any], length: int) -> Any:
        """One row for each key and node of `length` panes."""
        return self._block(tables).combined(length)

    @property
    def partials(self) -> Any:
        """The columns of a segment."""
        keys = [(name, key.type) for name, key in zip(self._names, self.keys, strict=True)]
        columns = [
            pair
            for partial in self.partial_columns
            for pair in zip(partial.columns, partial.kind.types, strict=True)
        ]
        return pa.schema([*keys, (PANE, pa.int64()), *columns])

    def form(self, rows: Any) -> Any:
        """The partials of raw rows, as a segment holds them."""
        block = self._block([], rows)
        return block.table(block.rows)

    def merge(self, partials: Any) -> Any:
        """One partial for each pane and key."""
        return self.combined([partials], 1)

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

    def _received(self, rows: Any, form: Form) -> list[Any]:
        """What others have combined, with the lists of rows that Spark collected accumulated."""
        if rows is None:
            return []
        for partial in self.partial_columns:
            if form == "combined" and partial.wire != partial.columns:
                columns = partial.received(rows)
                rows = rows.drop_columns(list(partial.wire))
                for name, column in zip(partial.columns, columns, strict=True):
                    rows = rows.append_column(name, column)
        # Spark names the members of a list, and says that none is null, other than segments do.
        known = {field.name: field for field in self.partials}
        return [rows.cast(pa.schema([known.get(field.name, field) for field in rows.schema]))]

    def _formed(self, block: PaneBlock, kept: int | None) -> Any:
        """The partials that were formed in this channel, of panes that an open window still needs."""
        chosen = block.rows.at(slice(0, block.fresh))
        if kept is not None:
            chosen = chosen.at(np.flatnonzero(chosen.pane >= kept))
        return block.table(chosen)

    def _finished(self, block: PaneBlock, windows: PaneWindows, closed: Closed) -> Any:
        """Closed windows as rows of the result."""
        columns: dict[str, Any] = {}
        for partial, stored in zip(self.partial_columns, block.stored(closed.lanes), strict=True):
            columns.update(zip(partial.columns, stored, strict=True))
        start, end = (
            self.grid.start_of(each) for each in (windows.start(closed.window), windows.end(closed.window))
        )
        bounds = [pa.array(each).cast(self.bound_type) for each in (start, end)]
        values = [result.finish(columns) for result in self.results]
        arrays = [*bounds, *block.key_columns(closed.key), *values, pa.array(start)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _block(self, tables: list[Any], raw: Any = None) -> PaneBlock:
        return PaneBlock(self._names, self.partial_columns, tables, raw)

    @property
    def _names(self) -> list[str]:
        return [KEY.format(place) for place in range(len(self.keys))]


def _own(numbers: range, channel: Channel) -> list[range]:
    """The windows of a range that the channel computes, in runs of neighbours."""
    if channel.windows is None or not numbers:
        return [numbers]
    every = np.arange(numbers.start, numbers.stop)
    own = every[channel.windows.of(every) == channel.number]
    pieces = np.split(own, np.flatnonzero(np.diff(own) > 1) + 1) if len(own) else []
    return [range(int(each[0]), int(each[-1]) + 1) for each in pieces]


def _chosen(rows: Partials, lengths: NDArray[Any], pieces: list[Piece]) -> Partials:
    """New rows, which have no length, and those of the pieces that one shape of windows reads."""
    if not (lengths > 1).any():
        return rows
    inside = lengths == 0
    for length, extent in pieces:
        inside |= (lengths == length) & (rows.pane >= extent.start) & (rows.pane < extent.end)
    return rows.at(np.flatnonzero(inside))


def compile_windows(operator: Aggregation, time_type: str, describe: Describe | None = None) -> WindowKernel:
    """The kernel of an aggregation.

    Without `describe`, what the query itself could infer is used, which is enough to explain it.
    """
    if describe is not None:
        operator = _typed(operator, describe)
    panes = PaneColumns(f"`{TIME}`", None if describe is None else _types_by(describe))
    results = tuple(_result(each, panes) for each in operator.aggregates)
    grid, windows = paned(operator.windows)
    return WindowKernel(
        grid=grid,
        windows=windows,
        keys=tuple(
            SqlColumn(name, key.sql, pa.null() if key.type is None else arrow_type(key.type))
            for name, key in operator.keys
        ),
        inputs=tuple(panes.inputs.values()),
        partial_columns=tuple(panes.partials.values()),
        results=results,
        bound_type=arrow_type(time_type),
        late=operator.late,
    )


def _result(aggregate: ResolvedAggregate, panes: PaneColumns) -> WindowResult:
    return WindowResult(aggregate.name, *aggregate.definition.lower(aggregate.arguments, panes))


def _types_by(describe: Describe) -> Any:
    return lambda texts: [type_ for type_, _ in describe(texts)]


def _typed(operator: Aggregation, describe: Describe) -> Aggregation:
    """The aggregation with the types that Spark gives its keys and arguments."""
    texts = [key.sql for _, key in operator.keys]
    texts += [each.sql for aggregate in operator.aggregates for each in aggregate.arguments]
    known = dict(zip(texts, describe(texts), strict=True))

    def settle(each: Expression) -> Expression:
        type_, nullable = known[each.sql]
        return replace(each, type=type_, nullable=each.nullable and nullable)

    keys = tuple((name, settle(key)) for name, key in operator.keys)
    aggregates = tuple(
        replace(each, arguments=tuple(settle(value) for value in each.arguments))
        for each in operator.aggregates
    )
    return replace(operator, keys=keys, aggregates=aggregates)
