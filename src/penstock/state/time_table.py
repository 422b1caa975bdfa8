"""Rows in time order with a dead front: sides of joins, and rows that wait for the frontier.

Every segment is sorted by time. Rows die in that order, so the live rows of a segment are all rows from some
point on, a slice without a copy, and no row is rewritten because others died. If rows die in another order
(the last rows of a key), or if it matters whether a row has matched (outer joins), the table is marked: it
keeps a bit and a mark per row, in one small segment of level -1 that each epoch writes again. A mark is a
bit, or a number that says more. A segment that moves takes the marks of its channel along as they are: they
are those of the rows that this channel saw in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.state.chosen_rows import ChosenRows, Part
from penstock.state.compaction import budget, to_merge, to_rewrite
from penstock.state.segments import ChannelStore, Held, Mask, Segment, store
from penstock.state.storage import Location
from penstock.state.table import HASH, TABLE, TIME, Table

__all__ = ["MATCHED", "OpenTimeTable", "TimeTable"]

MATCHED = "_matched"
"""A shown column: whether a row of a marked table has matched."""

_ALIVE, _MARKED = "alive", "matched"
_MARKS = -1  # the level of marks
# A segment is rewritten when the masks of an epoch leave a smaller share of its rows alive than this.
_WORTH_KEEPING = 0.5

Marks = NDArray[Any]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class TimeTable(Table):
    """Rows with a column `TIME`.

    `lives` is (port, distance): a row lives while its time is at least the frontier of that port minus the
    distance. `windows` is (size, slide, offset): a row lives while the frontiers of all ports leave a window
    with it open. Both are None if rows do not die by time alone. `marked` keeps for each row whether it is
    alive and whether it has matched, or with `counted` a number instead, which is 0 if it has not.
    """

    lives: tuple[int, int] | None = None
    marked: bool = False
    windows: tuple[int, int, int] | None = None
    counted: bool = False

    kind: ClassVar[str] = "time"
    usual_labels: ClassVar[dict[str, str]] = {HASH: "", TIME: "_time"}

    def open(self, store: ChannelStore, schema: Any, frontiers: Sequence[int | None] = ()) -> "OpenTimeTable":
        """The rows of a channel, with this `schema`; `frontiers` are those before the epoch."""
        return OpenTimeTable(self, store, schema, self.alive_from(frontiers))

    def alive_from(self, frontiers: Sequence[int | None]) -> int | None:
        """The time before which rows are dead; None if time kills no row."""
        if self.windows is not None and frontiers:
            known = [each for each in frontiers if each is not None]
            size, slide, offset = self.windows
            whole = len(known) == len(frontiers)
            return ((min(known) - offset - size) // slide + 1) * slide + offset if whole else None
        if self.lives is None or not frontiers:
            return None
        port, distance = self.lives
        frontier = frontiers[port]
        return None if frontier is None else frontier - distance

    def bounds(self, rows: Any, level: int) -> tuple[int, int]:
        """The first time, and the time after the last."""
        del level
        times = rows[TIME].to_numpy()
        return int(times[0]), int(times[-1]) + 1

    def show(
        self, folder: Location, segments: Sequence[Segment], frontiers: Sequence[int | None]
    ) -> Iterator[Any]:
        """Live rows, and whether each has matched if the table keeps that."""
        own = self.own(segments)
        if not any(each.level == 0 for each in own):
            return
        opened = self.open(ChannelStore(folder, "", tuple(own)), None, frontiers)
        rows = opened.rows.table()
        rows = rows.append_column(TABLE, pa.array([self.name] * rows.num_rows, pa.string()))
        yield rows.append_column(MATCHED, pa.array(opened.matched != 0)) if self.marked else rows

    def store_marks(self, folder: Location, label: str, marks: Any) -> Segment:
        """Write the marks of all rows of a channel as one segment."""
        name = f"{label}-{self.name}-marks"
        return store(folder, name, marks, table=self.name, first=0, end=0, level=_MARKS)


@dataclass(frozen=True, eq=False)
class OpenTimeTable:
    """The rows of one channel in one epoch; a segment is read on first use.

    It is closed in one of two ways. `close_by_time` says that all rows before a time are dead; it reads
    segments only to compact them. `close_by_masks` says for each live row whether it stays and has matched.
    """

    table: TimeTable
    store: ChannelStore
    schema: Any
    alive_from: int | None

    @cached_property
    def rows(self) -> ChosenRows:
        """The live rows, segment by segment."""
        schema = self._pieces[0].file.held.table.schema if self._pieces else self.schema
        return ChosenRows.of([piece.live() for piece in self._pieces], schema)

    @cached_property
    def matched(self) -> Marks:
        """The mark of each live row: false or 0 where it has not matched, or where there are no marks."""
        if not self._pieces:
            return np.zeros(0, self.mark_type)
        return np.concatenate([piece.matched[piece.alive] for piece in self._pieces])

    def between(self, first: int, end: int) -> list[Any]:
        """The live rows in this range of times, `first` included, as slices without a copy; no empty ones.

        Only segments that may have such rows are read.
        """
        found = [
            piece.live(*np.searchsorted(piece.file.times, [first, end]).tolist())
            for piece in self._pieces
            if piece.segment.first < end and piece.segment.end > first
        ]
        tables = [rows if places is None else rows.take(pa.array(places)) for rows, places in found]
        return [rows for rows in tables if rows.num_rows]

    def close_by_time(self, time: int, new: Any = None) -> list[Segment]:
        """The segments after an epoch in which all rows before `time` die, old and new ones.

        The rows that die are the front of each segment, so only compacted rows are rewritten.
        """
        assert not self.table.marked, "a marked table is closed by masks"
        kept = [piece for piece in self._pieces if piece.segment.end > time]
        if new is not None:
            waits = new[TIME].to_numpy() >= time
            if waits.any():
                kept.append(self._new(new if waits.all() else new.filter(pa.array(waits))))
        return [
            piece.segment for piece in self._compacted([replace(piece, alive_from=time) for piece in kept])
        ]

    @property
    def mark_type(self) -> type[np.bool_ | np.int64]:
        """The type of marks."""
        return np.int64 if self.table.counted else np.bool_

    def close_by_masks(
        self, stays: Mask, matched: Marks, new: Any = None, new_matched: Marks | None = None
    ) -> list[Segment]:
        """The segments after an epoch that keeps those of `rows` that stay, and all new rows.

        `stays` and `matched` are in the order of `rows`; `new_matched` is in the order of `new`, all false by
        default. A table without marks forgets the masks: rows that do not stay must be dead by their time
        when the table is next opened.
        """
        assert len(stays) == len(matched) == self.rows.num_rows
        pieces, start = [], 0
        for piece in self._pieces:
            end = start + int(np.count_nonzero(piece.alive))
            after = piece.after(stays[start:end], matched[start:end])
            pieces += [after] if after.alive.any() else []
            start = end
        if new is not None and new.num_rows:
            pieces.append(self._new(new, new_matched))
        pieces = self._compacted(pieces)
        segments = [piece.segment for piece in pieces]
        if self.table.marked and pieces:
            marks = pa.table(
                {
                    _ALIVE: pa.array(np.concatenate([piece.alive for piece in pieces])),
                    _MARKED: pa.array(np.concatenate([piece.matched for piece in pieces])),
                }
            )
            segments.append(self.table.store_marks(self.store.folder, self.store.label, marks))
        return segments

    @cached_property
    def _pieces(self) -> "tuple[_Piece, ...]":
        own = self.store.of(self.table.name)
        files = [_File(self.store, each) for each in own if each.level == 0]
        pieces = [_Piece(each, self.alive_from, self.mark_type) for each in files]
        marks = [self.store.read(each) for each in own if each.level == _MARKS]
        if marks:
            # Segments of other channels brought their marks, in the order of the segments.
            every, start = pa.concat_tables(marks), 0
            for place, piece in enumerate(pieces):
                rows = every.slice(start, piece.described)
                start += piece.described
                pieces[place] = piece.marked(_mask(rows[_ALIVE]), rows[_MARKED].to_numpy())
            assert start == every.num_rows
        return tuple(pieces)

    def _compacted(self, pieces: "list[_Piece]") -> "list[_Piece]":
        """The pieces after a merge of many small ones, and of moved ones as far as the budget goes."""
        plain = [piece for piece in pieces if not piece.segment.views]
        merging = [*to_merge([piece.segment for piece in plain])]
        merging += [piece.segment for piece in plain if piece.hollow]
        counts = {each: each.held for each in merging}
        # The smallest first, since every file that is read costs something too.
        moved = [piece.segment for piece in pieces if piece.segment.views]
        smallest = sorted(moved, key=lambda each: each.living_bytes)
        counts |= dict(to_rewrite(smallest, budget([piece.segment for piece in pieces])))
        chosen = [piece.first(counts[piece.segment]) for piece in pieces if piece.segment in counts]
        others = [rest for piece in pieces for rest in piece.rest(counts.get(piece.segment, 0))]
        if not any(len(matched) for _, matched in chosen):
            return others
        rows = ChosenRows.of([part for part, _ in chosen], self._pieces[0].file.held.table.schema)
        return [*others, self._new(rows.table(), np.concatenate([matched for _, matched in chosen]))]

    def _new(self, rows: Any, matched: Marks | None = None) -> "_Piece":
        """A new segment of these rows, sorted by time."""
        rows, times = rows.combine_chunks(), rows[TIME].to_numpy()
        matched = np.zeros(len(times), self.mark_type) if matched is None else matched
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            rows, matched = rows.take(pa.array(order)).combine_chunks(), matched[order]
        first, end = self.table.bounds(rows, 0)
        segment = self.store.store(rows, table=self.table.name, first=first, end=end, keys=self.table.keys)
        alive = np.ones(len(times), np.bool_)
        return _Piece(_File(self.store, segment, rows), None, self.mark_type, (alive, matched))


@dataclass(frozen=True, eq=False)
class _File:
    """A segment that is opened once, on first use; `written` are its rows if they are in memory."""

    store: ChannelStore
    segment: Segment
    written: Any = None

    @cached_property
    def held(self) -> Held:
        if self.written is not None:
            return Held(self.store.folder, self.segment, self.written)
        return self.store.open(self.segment)

    @cached_property
    def places(self) -> Places | None:
        """Where the rows of the channel are among those of the file, None if it has all."""
        if not self.segment.views:
            return None
        own = self.held.own
        return None if own is None or own.all() else np.flatnonzero(own)

    @cached_property
    def times(self) -> Places:
        """The times of the rows of the channel."""
        times: Places = self.held.table[TIME].to_numpy()
        return times if self.places is None else times[self.places]

    @property
    def size(self) -> int:
        """The number of rows of the channel, as far as they are not rewritten elsewhere."""
        return self.segment.held - self.segment.start if self.places is None else len(self.places)

    def before(self, count: int) -> int:
        """How many rows of the channel are among the first ones of the file."""
        return count if self.places is None else int(np.searchsorted(self.places, count))


@dataclass(frozen=True, eq=False)
class _Piece:
    """The rows of a file that belong to this channel, and which of them live and have matched.

    Masks and positions are over these rows alone; without marks time decides which live.
    """

    file: _File
    alive_from: int | None
    mark_type: type[np.bool_ | np.int64]
    marks: tuple[Mask, Marks] | None = None

    @property
    def segment(self) -> Segment:
        return self.file.segment

    @property
    def described(self) -> int:
        """The number of rows that have marks: those that the channel had which wrote them."""
        if self.segment.exact:
            return self.file.size
        seen = self.file.held.seen
        return self.segment.held - self.segment.start if seen is None else int(np.count_nonzero(seen))

    def marked(self, alive: Mask, matched: Marks) -> "_Piece":
        """With the marks of the rows that are described."""
        if not self.segment.exact:
            seen, places = self.file.held.seen, self.file.places
            if places is not None:
                at = places if seen is None else np.cumsum(seen)[places] - 1
                alive, matched = alive[at], matched[at]
        return replace(self, alive_from=None, marks=(alive, matched))

    @cached_property
    def alive(self) -> Mask:
        if self.marks is not None and self.alive_from is None:
            return self.marks[0]
        alive = np.ones(self.file.size, np.bool_)
        if self.alive_from is not None and self.segment.first < self.alive_from:
            alive[: np.searchsorted(self.file.times, self.alive_from)] = False
        return alive if self.marks is None else alive & self.marks[0]

    @property
    def hollow(self) -> bool:
        """Whether most of its rows are dead by their marks; the front that time kills is never rewritten."""
        return self.marks is not None and bool(self.alive.mean() < _WORTH_KEEPING)

    @cached_property
    def matched(self) -> Marks:
        return np.zeros(self.file.size, self.mark_type) if self.marks is None else self.marks[1]

    def after(self, stays: Mask, matched: Marks) -> "_Piece":
        """The same rows after an epoch's masks for those that were alive."""
        if len(stays) == self.file.size:
            return replace(self, alive_from=None, marks=(stays, matched))
        alive, every = self.alive.copy(), self.matched.copy()
        alive[self.alive], every[self.alive] = stays, matched
        return replace(self, alive_from=None, marks=(alive, every))

    def live(self, start: int = 0, stop: int | None = None) -> Part:
        """The live rows in a range of positions; the end of a file needs no places."""
        rows, alive, places = self.file.held.table, self.alive[start:stop], self.file.places
        dead = len(alive) - int(np.count_nonzero(alive))
        if places is None and not alive[:dead].any():
            return rows.slice(start + dead, len(alive) - dead), None
        at = np.flatnonzero(alive) + start
        return rows, at if places is None else places[at]

    def first(self, count: int) -> tuple[Part, Marks]:
        """The live rows among the first ones of the file, and their marks."""
        end = self.file.before(count)
        return self.live(0, end), self.matched[:end][self.alive[:end]]

    def rest(self, count: int) -> "list[_Piece]":
        """What is left when the first rows are rewritten, with the number of its rows if it is known."""
        store, segment = self.file.store, self.segment
        if not count:
            counted = store.counted(segment)
            return [replace(self, file=replace(self.file, segment=counted))] if counted.rows else []
        start = self.file.before(count)
        if count >= segment.held - segment.start or not self.alive[start:].any():
            return []
        marks = None if self.marks is None else (self.marks[0][start:], self.marks[1][start:])
        return [
            _Piece(_File(store, each), self.alive_from, self.mark_type, marks)
            for each in store.rest(segment, count)
        ]


def _mask(column: Any) -> Mask:
    return np.asarray(column.to_numpy(), np.bool_)
