"""Partials by pane and key, and coarser nodes over them (see `pane_nodes`), for windows over panes.

Base rows, level 0, cover one pane each; rows of a higher level are nodes, each of which covers that number of
panes. Panes are kept as long as the operator asks for. Nodes only make reads faster. When keys arrive from
other channels, nodes are kept where all that had rows have them, since nodes would claim to cover the panes
of the others. Rows of a pane that a node covers already are also stored as nodes of their own beside it:
whatever is read of a pane, as itself or as part of a node, is all of it, once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.columns import PANE
from penstock.state.compaction import budget, to_merge, to_rewrite
from penstock.state.pane_nodes import Extent, completed, cover, joined, lengths, without
from penstock.state.segments import ChannelStore, Held, Mask, Segment, opened
from penstock.state.storage import Location
from penstock.state.table import HASH, Table, instants

__all__ = ["PANE", "PANES", "Combiner", "OpenPaneTable", "PaneTable", "Piece", "panes_between"]

Piece = tuple[int, Extent]
"""Rows that cover so many panes each, in an extent."""

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

    `span` is the number of panes in the longest window, by which nodes pay off. `pane` and `offset` are
    microseconds: pane number n begins at n · `pane` + `offset`. `pane` is None if panes are not times. If it
    is `ordered`, partials of different panes must be merged in the order of the panes.
    """

    span: int = 1
    pane: int | None = None
    offset: int = 0
    ordered: bool = False

    kind: ClassVar[str] = "pane"
    usual_labels: ClassVar[dict[str, str]] = {HASH: "", PANE: "_pane"}

    def open(self, store: ChannelStore, combiner: Combiner, kept: int | None) -> "OpenPaneTable":
        """The partials of a channel from pane `kept` on, None for all of them."""
        return OpenPaneTable(self, store, combiner, kept)

    def bounds(self, rows: Any, level: int) -> tuple[int, int]:
        """The panes that rows cover."""
        panes = pc.min_max(rows[PANE])
        return panes["min"].as_py(), panes["max"].as_py() + max(1, level)

    def arrive(self, groups: Sequence[Sequence[Segment]]) -> tuple[Segment, ...]:
        """All panes, and nodes for panes that are nodes of every channel that had rows in them."""
        every = super().arrive(groups)
        if len(groups) < 2:
            return every
        nodes = [each for each in every if each.level > 0]
        kept = [each for each in every if each.level == 0]
        for level in sorted({each.level for each in nodes}):
            alike = [each for each in nodes if each.level == level]
            covered = [Extent(each.first, each.end) for each in alike]
            for group in groups:
                panes = [Extent(each.first, each.end) for each in group if each.level == 0]
                own = [Extent(each.first, each.end) for each in group if each.level == level]
                covered = without(covered, without(panes, own, 1), level)
            for each in alike:
                cuts = [Extent(max(each.first, one.start), min(each.end, one.end)) for one in covered]
                kept += [replace(each, first=cut.start, end=cut.end) for cut in cuts if cut]
        return tuple(kept)

    def show(
        self, folder: Location, segments: Sequence[Segment], frontiers: Sequence[int | None]
    ) -> Iterator[Any]:
        """The partials of every segment, including nodes, with the number of panes that a row covers."""
        del frontiers
        for each in self.own(segments):
            held = opened(folder, each)
            rows = _own(held, *_claimed(each))
            yield rows.append_column(PANES, pa.array(np.full(rows.num_rows, max(1, each.level), np.int64)))

    def readable(self, name: str, column: Any) -> Any:
        """Show a pane as the time at which it begins."""
        if name == PANE and self.pane is not None:
            return instants(pa.array(column.to_numpy() * self.pane + self.offset))
        return super().readable(name, column)


def panes_between(rows: Any, first: int, end: int | None = None) -> Any:
    """The rows whose panes are in a range; without a copy if they are adjacent."""
    start, stop, chosen = _span(rows, first, end)
    found = rows.slice(start, stop - start) if stop - start < rows.num_rows else rows
    return found if chosen.all() else found.filter(pa.array(chosen))


def _span(rows: Any, first: int | None, end: int | None) -> tuple[int, int, Mask]:
    """The range of positions that holds the panes of a range, and which rows in it are of such panes."""
    chosen = np.ones(rows.num_rows, np.bool_)
    if first is not None or end is not None:
        panes = rows[PANE].to_numpy()
        chosen = chosen if first is None else panes >= first
        chosen = chosen if end is None else chosen & (panes < end)
    at = np.flatnonzero(chosen)
    start, stop = (int(at[0]), int(at[-1]) + 1) if len(at) else (0, 0)
    return start, stop, chosen[start:stop]


def _own(held: Held, first: int | None, end: int | None, count: int | None = None) -> Any:
    """The rows of a channel whose panes are in a range, or those among the first of the file."""
    rows = held.table.slice(0, count)
    start, stop, chosen = _span(rows, first, end)
    own = held.part(start, stop)
    chosen = chosen if own is None else chosen & own
    found = rows.slice(start, stop - start)
    return found if chosen.all() else found.filter(pa.array(chosen))


@dataclass(frozen=True, eq=False)
class OpenPaneTable:
    """The partials of one channel in one epoch; segments are read only on request."""

    table: PaneTable
    store: ChannelStore
    combiner: Combiner
    kept: int | None

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments with panes that are kept."""
        own = self.store.of(self.table.name)
        return own if self.kept is None else tuple(each for each in own if each.end > self.kept)

    @property
    def first(self) -> int | None:
        """The earliest pane in them, None if there is none."""
        return min((each.first for each in self.segments), default=None)

    def pieces(self, whole: Extent, shared: Extent) -> list[Piece]:
        """What to read of some panes: those that are `shared`, a part of them, from the coarsest nodes."""
        if not shared:
            return [(1, whole)]
        fringes = [(1, Extent(whole.start, shared.start)), (1, Extent(shared.end, whole.end))]
        return [each for each in [*fringes, *_covered(shared, self.segments)] if each[1]]

    def held(self, pieces: Sequence[Piece]) -> list[tuple[int, Any]]:
        """The rows of these pieces, each once, with the number of panes that a row covers."""
        return self._read(pieces, self.segments)

    def every(self) -> list[Any]:
        """All rows."""
        return [self._rows(each) for each in self.segments]

    def close(self, fresh: Any, kept: int | None, complete: Extent | None = None) -> list[Segment]:
        """The segments after an epoch that adds `fresh` partials.

        Panes from `kept` on are still needed, None for all. `complete` are panes for which no more rows are
        expected from now on; nodes are formed if these are few.
        """
        segments = list(self.segments)
        if fresh is not None:
            fresh = fresh if kept is None else panes_between(fresh, kept)
        if fresh is not None and fresh.num_rows:
            segments = [*segments, self._stored(fresh, 0), *self._late_nodes(fresh)]
            segments = [each for each in segments if not self._outdated(each, fresh)]
        if kept is not None:
            segments = [each for each in segments if each.end > kept]
        if complete:
            segments += self._nodes(complete, kept, segments)
        return self._compacted(segments, kept)

    def _late_nodes(self, fresh: Any) -> list[Segment]:
        """The rows of panes that nodes cover, as nodes of their own, at every level.

        They stay within the extents of those nodes, so that they do not claim a pane that none covers.
        """
        if self.table.ordered:
            return []
        found = []
        for length, extents in _coarser(self.segments).items():
            for extent in joined(extents):
                late = panes_between(fresh, extent.start, extent.end)
                if late.num_rows:
                    found.append(self._stored(self.combiner.combined([late], length), length))
        return found

    def _outdated(self, segment: Segment, fresh: Any) -> bool:
        """Whether nodes lack rows that came after them and that they cannot get in the order of panes."""
        if not self.table.ordered or segment.level == 0:
            return False
        return bool(panes_between(fresh, segment.first, segment.end).num_rows)

    def _nodes(self, complete: Extent, kept: int | None, segments: list[Segment]) -> list[Segment]:
        """Coarser nodes whose last pane is now complete, if few panes become so at a time."""
        if (complete.end - complete.start) * 4 > self.table.span:
            return []
        built: list[Segment] = []
        for length in lengths(self.table.span):
            extent = completed(length, complete.start, complete.end)
            if kept is not None:
                extent = Extent(max(extent.start, -(-kept // length) * length), extent.end)
            if extent:
                built += self._node(length, extent, [*segments, *built])
        return built

    def _node(self, length: int, extent: Extent, segments: list[Segment]) -> list[Segment]:
        finer = [each for each in segments if each.level < length]
        tables = [rows for _, rows in self._read(_covered(extent, finer), finer)]
        if not tables:
            return []
        combined = self.combiner.combined(tables, length)
        if combined.num_rows > _WORTH_KEEPING * sum(rows.num_rows for rows in tables):
            return []
        return [self._stored(combined, length)]

    def _compacted(self, segments: list[Segment], kept: int | None) -> list[Segment]:
        """The segments after a merge of many small ones, and of moved ones as far as the budget goes."""
        remaining = [each for each in map(self._counted, segments) if each.rows]
        moved = [each for each in remaining if each.views]
        if not self.table.ordered:
            # The smallest first, since every file that is read costs something too.
            moved.sort(key=lambda each: each.living_bytes)
        parts: dict[int, list[tuple[Segment, int]]] = {}
        for each, rows in to_rewrite(moved, budget(remaining)):
            parts.setdefault(each.level, []).append((each, rows))
        for level in sorted({each.level for each in remaining}):
            alike = [each for each in remaining if each.level == level]
            runs = [parts.get(level, [])]
            if self.table.ordered:
                runs = _neighbours(alike, runs[0])
                last = max((place for place, each in enumerate(alike) if each.views), default=-1)
                # To merge segments with a moved one between them would change the order of its states.
                alike = alike[last + 1 :]
            alike = [each for each in alike if not each.views]
            for merging in _mergeable(alike, ordered=self.table.ordered):
                merged = self._merged([self._rows(each) for each in merging], level, kept)
                remaining = _instead(remaining, {each: [] for each in merging}, merged)
            # Nodes of several channels may have gaps between them, so each is rewritten alone.
            for group in [[each] for each in parts.get(level, [])] if level else runs:
                merged = self._merged([self._rows(each, count) for each, count in group], level, kept)
                rest = {each: self.store.rest(each, count) for each, count in group}
                remaining = _instead(remaining, rest, merged)
        return remaining

    def _merged(self, tables: list[Any], level: int, kept: int | None) -> list[Segment]:
        """A new segment of all rows of these tables that are still needed, none if there are none."""
        length = max(1, level)
        if kept is not None:
            tables = [panes_between(rows, kept - length + 1) for rows in tables]
        if not any(rows.num_rows for rows in tables):
            return []
        return [self._stored(self.combiner.combined(tables, length), level)]

    def _counted(self, segment: Segment) -> Segment:
        """The segment with its number of rows, if it was read; nodes may have lost some of their panes."""
        found = self.store.counted(segment)
        cut = found is not segment and segment.level > 0
        return replace(found, rows=self._rows(segment).num_rows) if cut else found

    def _rows(self, segment: Segment, count: int | None = None) -> Any:
        """The rows of a segment, or those among the first of its file."""
        return _own(self.store.open(segment), *_claimed(segment), count)

    def _read(self, pieces: Sequence[Piece], segments: Sequence[Segment]) -> list[tuple[int, Any]]:
        tables = []
        for segment in segments:
            length = max(1, segment.level)
            wanted = [extent for each, extent in pieces if each == length and _touch(extent, segment)]
            if wanted:
                held = self.store.open(segment)
                first, end = _claimed(segment)
                for extent in joined(wanted):
                    start = extent.start if first is None else max(extent.start, first)
                    stop = extent.end if end is None else min(extent.end, end)
                    tables.append((length, _own(held, start, stop)))
        return [(length, rows) for length, rows in tables if rows.num_rows]

    def _stored(self, rows: Any, level: int) -> Segment:
        first, end = self.table.bounds(rows, level)
        keys = self.table.keys
        return self.store.store(rows, table=self.table.name, first=first, end=end, level=level, keys=keys)


def _coarser(segments: Sequence[Segment]) -> dict[int, list[Extent]]:
    found: dict[int, list[Extent]] = {}
    for each in segments:
        if each.level > 0:
            found.setdefault(each.level, []).append(Extent(each.first, each.end))
    return found


def _covered(extent: Extent, segments: Sequence[Segment]) -> list[Piece]:
    return cover(extent, list(_coarser(segments).items()))


def _neighbours(segments: list[Segment], parts: list[tuple[Segment, int]]) -> list[list[tuple[Segment, int]]]:
    """Moved segments by runs that follow each other among all segments of a level."""
    places = {id(each): place for place, each in enumerate(segments)}
    runs: list[list[tuple[Segment, int]]] = []
    for each in parts:
        if runs and places[id(each[0])] == places[id(runs[-1][-1][0])] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def _mergeable(alike: list[Segment], *, ordered: bool) -> list[list[Segment]]:
    """Groups of segments of one level that are worth merging.

    A segment of nodes claims all panes between its first and its last one, so nodes with a gap between them
    stay separate, if perhaps no nodes were formed in the gap: others of the level may cover it, but those of
    an ordered table may be dropped any time.
    """
    chosen = list(to_merge(alike))
    if not chosen or chosen[0].level == 0:
        return [chosen] if chosen else []
    claimed = joined(Extent(each.first, each.end) for each in (chosen if ordered else alike))
    runs = [[each for each in chosen if extent.start <= each.first < extent.end] for extent in claimed]
    return [run for run in runs if len(run) > 1]


def _instead(
    segments: list[Segment], gone: Mapping[Segment, list[Segment]], new: list[Segment]
) -> list[Segment]:
    """The segments, with new ones where the first that is gone was, and with what is left of those.

    So they stay in the order of their epochs, in which states of one pane are merged.
    """
    place = next((place for place, each in enumerate(segments) if each in gone), len(segments))
    after = [left for each in segments[place:] for left in gone.get(each, [each])]
    return [*segments[:place], *new, *after]


def _touch(extent: Extent, segment: Segment) -> bool:
    return extent.start < segment.end and segment.first < extent.end


def _claimed(segment: Segment) -> tuple[int | None, int | None]:
    """The panes to which the nodes of a segment are confined; None for base rows."""
    return (segment.first, segment.end) if segment.level > 0 else (None, None)
