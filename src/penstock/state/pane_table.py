"""Partials by pane and key, and coarser nodes over them (see `pane_nodes`), for windows over panes.

Window w holds `span` panes from pane w · `stride` on. Base rows, level 0, cover one pane each; rows of a
higher level are nodes, each of which covers that number of panes. Panes are kept while an open window may
hold them. Nodes only make reads faster: they never move, and a channel drops its own when keys arrive,
since the panes of those keys have no nodes yet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.columns import PANE
from penstock.state.compaction import hollow, to_merge
from penstock.state.pane_nodes import Extent, completed, cover, lengths
from penstock.state.segments import ChannelStore, Segment, read
from penstock.state.storage import Location
from penstock.state.table import HASH, Table, instants

__all__ = ["PANE", "PANES", "Combiner", "OpenPaneTable", "PaneTable", "panes_between"]

PANES = "_panes"
"""A shown column: the number of panes that a row covers."""

# Nodes that hardly shrink their panes only cost space.
_WORTH_KEEPING = 0.7


class Combiner(Protocol):
    """Merges partials; only packages above this one know aggregates."""

    def combined(self, tables: list[Any], length: int) -> Any:
        """One row for each key and node of `length` panes that these rows are in, ascending by `PANE`.

        The `PANE` of a node is its first pane, a multiple of `length`.
        """
        ...


@dataclass(frozen=True)
class PaneTable(Table):
    """Partials with key columns, `PANE` and the columns of every partial.

    `pane` and `offset` are microseconds: pane number n begins at n · `pane` + `offset`. `pane` is None if
    panes are not times.
    """

    span: int = 1
    stride: int = 1
    pane: int | None = None
    offset: int = 0

    kind: ClassVar[str] = "pane"
    usual_labels: ClassVar[dict[str, str]] = {HASH: "", PANE: "_pane"}

    def open(self, store: ChannelStore, combiner: Combiner, opened: int | None) -> "OpenPaneTable":
        """The partials of a channel; windows before `opened` are closed, None if none is closed yet."""
        return OpenPaneTable(self, store, combiner, opened)

    def kept_from(self, first_open: int) -> int:
        """The first pane whose partials are needed: where the first open window begins."""
        return first_open * self.stride

    def closed_below(self, first_open: int) -> int:
        """The pane below which all panes are complete: where the last closed window ends."""
        return (first_open - 1) * self.stride + self.span

    def first_window_with(self, pane: int) -> int:
        """The earliest window that holds a pane."""
        return (pane - self.span) // self.stride + 1

    def bounds(self, rows: Any, level: int) -> tuple[int, int]:
        """The panes that rows cover."""
        panes = pc.min_max(rows[PANE])
        return panes["min"].as_py(), panes["max"].as_py() + max(1, level)

    def arrive(self, own: Sequence[Segment], came: Sequence[Segment]) -> tuple[Segment, ...]:
        """All panes; nodes only if no rows arrived, since nodes would claim to cover the panes that did."""
        return (*(each for each in own if each.level == 0), *came) if came else tuple(own)

    def show(
        self, folder: Location, segments: Sequence[Segment], frontiers: Sequence[int | None]
    ) -> Iterator[Any]:
        """The partials of every segment, including nodes, with the number of panes that a row covers."""
        del frontiers
        for each in self.own(segments):
            rows = read(folder, each)
            yield rows.append_column(PANES, pa.array(np.full(rows.num_rows, max(1, each.level), np.int64)))

    def readable(self, name: str, column: Any) -> Any:
        """Show a pane as the time at which it begins."""
        if name == PANE and self.pane is not None:
            return instants(pa.array(column.to_numpy() * self.pane + self.offset))
        return super().readable(name, column)


def panes_between(rows: Any, first: int, end: int | None = None) -> Any:
    """The rows whose panes are in a range; without a copy if they are adjacent."""
    panes = rows[PANE].to_numpy()
    at = np.flatnonzero(panes >= first if end is None else (panes >= first) & (panes < end))
    if len(at) == rows.num_rows:
        return rows
    if len(at) and at[-1] - at[0] + 1 == len(at):
        return rows.slice(int(at[0]), len(at))
    return rows.take(pa.array(at))


@dataclass(frozen=True, eq=False)
class OpenPaneTable:
    """The partials of one channel in one epoch; segments are read only on request."""

    table: PaneTable
    store: ChannelStore
    combiner: Combiner
    opened: int | None

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that an open window may need."""
        own = self.store.of(self.table.name)
        if self.opened is None:
            return own
        kept = self.table.kept_from(self.opened)
        return tuple(each for each in own if each.end > kept)

    @property
    def first(self) -> int | None:
        """The earliest pane in them, None if there is none."""
        return min((each.first for each in self.segments), default=None)

    def held_by(self, windows: range) -> list[Any]:
        """The partials of these windows; panes that all windows share come from the coarsest nodes."""
        if not windows:
            return []
        start, last = self.table.kept_from(windows.start), self.table.kept_from(windows.stop - 1)
        whole = Extent(start, last + self.table.span)
        if last > start + self.table.span:
            return self._pieces([(1, whole)], self.segments)
        shared = Extent(last, start + self.table.span)
        fringes = [(1, Extent(start, last)), (1, Extent(shared.end, whole.end))]
        return self._pieces([*fringes, *_covered(shared, self.segments)], self.segments)

    def close(self, fresh: Any, closing: range, opens: int | None) -> list[Segment]:
        """The segments after an epoch that adds `fresh` partials and has closed the windows `closing`.

        Windows from `opens` on stay open; what only earlier ones hold is dropped. None: no window is closed.
        """
        kept = None if opens is None else self.table.kept_from(opens)
        segments = list(self.segments)
        if fresh is not None:
            fresh = fresh if kept is None else panes_between(fresh, kept)
            segments += [self._stored(fresh, 0)] if fresh.num_rows else []
        if kept is not None:
            segments = [each for each in segments if each.end > kept]
        return self._compacted([*segments, *self._nodes(closing, segments)], kept)

    def _nodes(self, closing: range, segments: list[Segment]) -> list[Segment]:
        """Coarser nodes whose last pane is now complete, if few windows close at a time."""
        table = self.table
        if not closing or len(closing) * table.stride * 4 > table.span:
            return []
        built: list[Segment] = []
        before, now = table.closed_below(closing.start), table.closed_below(closing.stop)
        kept = table.kept_from(closing.stop)
        for length in lengths(table.span):
            extent = completed(length, before, now)
            extent = Extent(max(extent.start, -(-kept // length) * length), extent.end)
            if extent:
                built += self._node(length, extent, [*segments, *built])
        return built

    def _node(self, length: int, extent: Extent, segments: list[Segment]) -> list[Segment]:
        finer = [each for each in segments if each.level < length]
        tables = self._pieces(_covered(extent, finer), finer)
        if not tables:
            return []
        combined = self.combiner.combined(tables, length)
        if combined.num_rows > _WORTH_KEEPING * sum(rows.num_rows for rows in tables):
            return []
        return [self._stored(combined, length)]

    def _compacted(self, segments: list[Segment], kept: int | None) -> list[Segment]:
        """The segments after a merge of many small ones."""
        remaining = segments
        for level in sorted({each.level for each in segments}):
            length = max(1, level)
            for merging in _mergeable([each for each in segments if each.level == level]):
                tables = [self.store.read(each) for each in merging]
                if kept is not None:
                    tables = [panes_between(rows, kept - length + 1) for rows in tables]
                combined = self.combiner.combined(tables, length)
                remaining = [each for each in remaining if each not in merging]
                remaining += [self._stored(combined, level)] if combined.num_rows else []
        return remaining

    def _pieces(self, pieces: list[tuple[int, Extent]], segments: Sequence[Segment]) -> list[Any]:
        """The rows of nodes of these lengths in these extents."""
        tables = []
        for segment in segments:
            length = max(1, segment.level)
            wanted = [extent for each, extent in pieces if each == length and _touch(extent, segment)]
            if wanted:
                rows = self.store.read(segment)
                tables += [panes_between(rows, extent.start, extent.end) for extent in _joined(wanted)]
        return [rows for rows in tables if rows.num_rows]

    def _stored(self, rows: Any, level: int) -> Segment:
        first, end = self.table.bounds(rows, level)
        return self.store.store(rows, table=self.table.name, first=first, end=end, level=level)


def _covered(extent: Extent, segments: Sequence[Segment]) -> list[tuple[int, Extent]]:
    coarser: dict[int, list[Extent]] = {}
    for each in segments:
        if each.level > 0:
            coarser.setdefault(each.level, []).append(Extent(each.first, each.end))
    return cover(extent, list(coarser.items()))


def _mergeable(alike: list[Segment]) -> list[list[Segment]]:
    """Groups of segments of one level that are worth merging.

    A segment of nodes claims all panes between its first and its last one, so nodes with a gap between them
    stay separate: perhaps no nodes were formed in the gap.
    """
    chosen = list(to_merge(alike))
    if alike[0].level == 0:
        chosen += [each for each in alike if hollow(each) and each not in chosen]
        return [chosen] if chosen else []
    runs: list[list[Segment]] = []
    for each in sorted(chosen, key=lambda segment: segment.first):
        if runs and each.first <= max(segment.end for segment in runs[-1]):
            runs[-1].append(each)
        else:
            runs.append([each])
    return [run for run in runs if len(run) > 1]


def _touch(extent: Extent, segment: Segment) -> bool:
    return extent.start < segment.end and segment.first < extent.end


def _joined(extents: list[Extent]) -> list[Extent]:
    """Adjacent extents joined, so that a table is sliced as rarely as possible."""
    joined: list[Extent] = []
    for extent in sorted(each for each in extents if each):
        if joined and joined[-1].end == extent.start:
            joined[-1] = Extent(joined[-1].start, extent.end)
        else:
            joined.append(extent)
    return joined
