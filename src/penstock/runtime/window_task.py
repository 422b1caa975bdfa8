"""The channel kernel of windows: new rows and segments in, closed windows and new segments out.

One task per channel and epoch, on whatever machine Spark puts it. State is read where it lies,
nothing is shuffled but new rows, and what the task leaves behind are files under names of its own
plus one receipt, so a retried or speculative attempt can spoil nothing.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.compile import ROWS, TIME, Combining, WindowPlan
from penstock.panes import Closed, close_windows
from penstock.panes.nodes import Extent, completed, cover, lengths
from penstock.runtime.beside import RawRows
from penstock.runtime.compaction import hollow, to_merge
from penstock.runtime.exits import Exit, OpenExits
from penstock.runtime.key_counts import KeyCounts, count_keys
from penstock.runtime.keyed import KEY, Keyed, within
from penstock.runtime.receipts import Receipt
from penstock.runtime.segments import PANE, Segment, read, write
from penstock.runtime.storage import Location

__all__ = ["WindowTask"]

# Nodes that hardly shrink their panes only cost space.
_WORTH_KEEPING = 0.7


@dataclass(frozen=True)
class WindowTask:
    """One epoch's work for every channel.

    Windows before `opened` were closed by earlier epochs, those before `opens` are closed now;
    None means that no window was closed yet.
    """

    plan: WindowPlan
    combining: Combining
    folder: Location
    label: str
    state: tuple[tuple[Segment, ...], ...]
    opened: int | None
    opens: int | None
    exits: tuple[Exit, ...]
    raw: RawRows | None = None

    def work(self, channel: int, new: Any) -> tuple[Receipt, dict[int, Any]]:
        """The kernel proper, from new rows (None if there are none) to a receipt."""
        began = time.perf_counter()
        files = OpenExits(self.exits)
        if self.raw is not None and new is not None:
            new = self.raw.of(new)
        segments = [each for each in self.state[channel] if self._needed(each)]
        closing = self._closing(new, segments)
        fresh = self._close(closing, new, segments, files)
        if fresh is not None:
            segments.append(write(self.folder, f"{self.label}-{channel}", 1, fresh))
        segments = [each for each in segments if self._kept(each)]
        if closing:
            segments += self._build_nodes(channel, closing, segments)
        receipt = Receipt(
            channel=channel,
            segments=tuple(self._compacted(channel, segments)),
            outputs=files.close(),
            received=0 if new is None else new.num_rows,
            tuples=self._tuples(new),
            newest=None if new is None else int(new[PANE].to_numpy().max()),
            seconds=time.perf_counter() - began,
            keys=self._keys(new),
        )
        return receipt, files.onward()

    def _keys(self, new: Any) -> KeyCounts:
        """How often which keys came; where the channels of another stage are shared, that one counts."""
        if new is None or self.raw is not None or not self.plan.keys:
            return KeyCounts()
        columns = [new[KEY.format(place)] for place in range(len(self.plan.keys))]
        return count_keys(columns, new.num_rows, new[ROWS].to_numpy() if self.combining == "map" else None)

    def _tuples(self, new: Any) -> int:
        """How many tuples the new rows stand for."""
        if new is None:
            return 0
        return int(new[ROWS].to_numpy().sum()) if self.combining == "map" else int(new.num_rows)

    def _needed(self, segment: Segment) -> bool:
        return self.opened is None or segment.end > self.plan.shape.kept_from(self.opened)

    def _kept(self, segment: Segment) -> bool:
        return self.opens is None or segment.end > self.plan.shape.kept_from(self.opens)

    def _closing(self, new: Any, segments: list[Segment]) -> range:
        """The windows that this channel has to close now."""
        if self.opens is None:
            return range(0)
        first = [each.first for each in segments]
        if new is not None:
            first.append(int(new[PANE].to_numpy().min()))
        if not first:
            return range(0)
        start = self.plan.shape.first_window_with(min(first))
        return range(start if self.opened is None else max(start, self.opened), self.opens)

    def _close(self, closing: range, new: Any, segments: list[Segment], files: OpenExits) -> Any:
        """Close windows into the exits; the new partials that later windows need."""
        raw = new if self.combining == "channel" else None
        tables = self._received(new) if raw is None and new is not None else []
        if not closing and raw is None:
            return tables[0] if tables else None
        keyed = Keyed(self.plan, tables + self._gather(closing, segments), raw)
        for closed in close_windows(self.plan.shape, closing.start, closing.stop, keyed.rows, keyed.merges):
            files.write(self._finished(keyed, closed))
        return self._fresh(keyed, tables, raw)

    def _received(self, new: Any) -> list[Any]:
        """What Spark combined, with the lists of user-defined aggregates accumulated."""
        if all(partial.wire == partial.columns for partial in self.plan.partials):
            return [new]
        for partial in self.plan.partials:
            if partial.wire != partial.columns:
                columns = partial.received(new)
                new = new.drop_columns(list(partial.wire))
                for name, column in zip(partial.columns, columns, strict=True):
                    new = new.append_column(name, column)
        return [new]

    def _fresh(self, keyed: Keyed, tables: list[Any], raw: Any) -> Any:
        """This epoch's partials of panes that an open window still needs, or None."""
        kept = None if self.opens is None else self.plan.shape.kept_from(self.opens)
        if raw is None:
            table = tables[0] if tables else None
        else:
            count = len(keyed) - keyed.old
            chosen = keyed.rows.at(slice(0, count))
            if kept is not None:
                chosen = chosen.at(np.flatnonzero(chosen.pane >= kept))
            table = keyed.table(chosen.pane, chosen.key, chosen.lanes)
        if table is not None and kept is not None:
            table = within(table, kept, np.iinfo(np.int64).max)
        return table if table is not None and table.num_rows else None

    def _gather(self, closing: range, segments: list[Segment]) -> list[Any]:
        """The parts of the state that the closing windows hold, from coarse nodes where all share them."""
        if not closing:
            return []
        shape = self.plan.shape
        start, last = shape.kept_from(closing.start), shape.kept_from(closing.stop - 1)
        whole = Extent(start, last + shape.span)
        if last > start + shape.span:
            return self._pieces([(1, whole)], segments)
        shared = Extent(last, start + shape.span)
        fringes = [(1, Extent(start, last)), (1, Extent(shared.end, whole.end))]
        return self._pieces([*fringes, *self._covered(shared, segments)], segments)

    def _covered(self, extent: Extent, segments: list[Segment]) -> list[tuple[int, Extent]]:
        coarser: dict[int, list[Extent]] = {}
        for each in segments:
            if each.length > 1:
                coarser.setdefault(each.length, []).append(Extent(each.first, each.end))
        return cover(extent, list(coarser.items()))

    def _pieces(self, pieces: list[tuple[int, Extent]], segments: list[Segment]) -> list[Any]:
        tables = []
        for segment in segments:
            wanted = [e for length, e in pieces if length == segment.length and _touch(e, segment)]
            if wanted:
                table = read(self.folder, segment)
                tables += [within(table, extent.start, extent.end) for extent in _merged(wanted)]
        return [table for table in tables if table.num_rows]

    def _build_nodes(self, channel: int, closing: range, segments: list[Segment]) -> list[Segment]:
        """Coarser nodes whose last pane is now complete, when windows close few at a time."""
        shape = self.plan.shape
        if len(closing) * shape.stride * 4 > shape.span:
            return []
        built: list[Segment] = []
        before, now = shape.closed_below(closing.start), shape.closed_below(closing.stop)
        kept = shape.kept_from(closing.stop)
        for length in lengths(shape.span):
            extent = completed(length, before, now)
            extent = Extent(max(extent.start, -(-kept // length) * length), extent.end)
            if extent:
                built += self._node(channel, length, extent, [*segments, *built])
        return built

    def _node(self, channel: int, length: int, extent: Extent, segments: list[Segment]) -> list[Segment]:
        finer = [each for each in segments if each.length < length]
        tables = self._pieces(self._covered(extent, finer), finer)
        if not tables:
            return []
        keyed = Keyed(self.plan, tables)
        table = keyed.combined(length)
        if table.num_rows > _WORTH_KEEPING * len(keyed):
            return []
        return [write(self.folder, f"{self.label}-{channel}-{length}", length, table)]

    def _compacted(self, channel: int, segments: list[Segment]) -> list[Segment]:
        """The segments after merging those that are many and small."""
        remaining = segments
        for length in sorted({each.length for each in segments}):
            for merging in _mergeable([each for each in segments if each.length == length]):
                tables = [read(self.folder, each) for each in merging]
                if self.opens is not None:
                    kept = self.plan.shape.kept_from(self.opens)
                    tables = [within(t, kept - length + 1, np.iinfo(np.int64).max) for t in tables]
                table = Keyed(self.plan, tables).combined(length)
                remaining = [each for each in remaining if each not in merging]
                if table.num_rows:
                    remaining.append(write(self.folder, f"{self.label}-{channel}-{length}c", length, table))
        return remaining

    def _finished(self, keyed: Keyed, closed: Closed) -> Any:
        """Closed windows as rows of the result."""
        shape = self.plan.shape
        columns: dict[str, Any] = {}
        for partial, stored in zip(self.plan.partials, keyed.stored(closed.lanes), strict=True):
            columns.update(zip(partial.columns, stored, strict=True))
        start = closed.window * shape.slide + shape.offset
        bound = self.plan.bound
        arrays = [pa.array(start).cast(bound), pa.array(start + shape.size).cast(bound)]
        arrays += keyed.key_columns(closed.key)
        arrays += [result.finish(columns) for result in self.plan.results]
        # The event time of a window's result is its start.
        return pa.Table.from_arrays(arrays, schema=self.plan.schema).append_column(TIME, pa.array(start))


def _mergeable(alike: list[Segment]) -> list[list[Segment]]:
    """Groups of segments of one length that are worth merging.

    A segment of nodes claims all panes between its first and its last one, so nodes with a gap between them
    stay apart: the gap may be one where none were formed.
    """
    chosen = list(to_merge(alike))
    if not alike or alike[0].length == 1:
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


def _merged(extents: list[Extent]) -> list[Extent]:
    """Neighbouring extents as one, so that a table is cut as rarely as possible."""
    merged: list[Extent] = []
    for extent in sorted(each for each in extents if each):
        if merged and merged[-1].end == extent.start:
            merged[-1] = Extent(merged[-1].start, extent.end)
        else:
            merged.append(extent)
    return merged
