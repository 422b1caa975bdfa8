"""What a channel keeps of one side of a join: segments of rows in the order of time, and marks.

Segments are written once. Rows of a join within a distance leave in the order of their times, so what is
alive in a segment is all from a certain row on. Where rows leave in another order (the last rows of a
key), or where it matters whether a row has matched (outer joins), a small segment of marks, two bits a
row, is written anew each epoch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.compile import TIME
from penstock.joins import Held, Remains
from penstock.joins.state import Mask
from penstock.runtime.compaction import hollow, to_merge
from penstock.runtime.segments import Segment, read, store
from penstock.runtime.storage import Location

__all__ = ["Keeping", "Kept"]

_ALIVE, _MATCHED = "alive", "matched"
# A segment of which fewer rows than this share are alive is written anew.
_WORTH_KEEPING = 0.5


@dataclass(frozen=True)
class Keeping:
    """Where and how the rows of one side are kept; `marked` if marks are."""

    folder: Location
    label: str
    part: str
    schema: Any
    marked: bool

    @property
    def _marks(self) -> str:
        return f"{self.part} marks"

    def load(self, segments: Sequence[Segment], alive_from: int | None) -> "Kept":
        """The rows that earlier epochs kept; without marks, those from a time on."""
        own = [each for each in segments if each.part == self.part]
        marks = [each for each in segments if each.part == self._marks]
        pieces = [_Piece.of(each, read(self.folder, each), alive_from) for each in own]
        if marks:
            # Rows that came from other channels brought theirs, in the order of the segments.
            table = pa.concat_tables([read(self.folder, each) for each in marks])
            start = 0
            for place, piece in enumerate(pieces):
                rows = table.slice(start, piece.segment.rows)
                start += piece.segment.rows
                pieces[place] = piece.marked(_mask(rows[_ALIVE]), _mask(rows[_MATCHED]))
        return Kept(self.schema, tuple(pieces))

    def save(self, kept: "Kept", new: Any, remains: Remains) -> list[Segment]:
        """The segments after an epoch: those that still hold rows, the new rows that stay, marks."""
        pieces = [piece for piece in kept.after(remains) if piece.alive.any()]
        if remains.new.any():
            pieces.append(self._piece(new.filter(pa.array(remains.new)), remains.new_matched[remains.new]))
        pieces = self._compacted(pieces)
        segments = [piece.segment for piece in pieces]
        if self.marked and pieces:
            segments.append(self._store_marks(pieces))
        return segments

    def _compacted(self, pieces: "list[_Piece]") -> "list[_Piece]":
        merging = {each.name for each in to_merge([piece.segment for piece in pieces])}
        merging |= {piece.segment.name for piece in pieces if piece.alive.mean() < _WORTH_KEEPING}
        merging |= {piece.segment.name for piece in pieces if hollow(piece.segment)}
        chosen = [piece for piece in pieces if piece.segment.name in merging]
        if not chosen:
            return pieces
        rows = pa.concat_tables([piece.rows() for piece in chosen])
        matched = np.concatenate([piece.matched[piece.alive] for piece in chosen])
        return [
            *(piece for piece in pieces if piece.segment.name not in merging),
            self._piece(rows, matched),
        ]

    def _piece(self, rows: Any, matched: Mask) -> "_Piece":
        times = rows[TIME].to_numpy()
        order = np.argsort(times, kind="stable")
        rows = rows.take(pa.array(order)).combine_chunks()
        segment = store(
            self.folder,
            f"{self.label}-{self.part}",
            rows,
            first=int(times[order[0]]),
            end=int(times[order[-1]]) + 1,
            part=self.part,
        )
        return _Piece(segment, rows, np.ones(len(order), np.bool_), matched[order])

    def _store_marks(self, pieces: "list[_Piece]") -> Segment:
        alive = np.concatenate([piece.alive for piece in pieces])
        matched = np.concatenate([piece.matched for piece in pieces])
        table = pa.table({_ALIVE: pa.array(alive), _MATCHED: pa.array(matched)})
        return store(self.folder, f"{self.label}-{self.part}-marks", table, first=0, end=0, part=self._marks)


@dataclass(frozen=True)
class Kept:
    """Rows that earlier epochs kept, segment by segment."""

    schema: Any
    pieces: "tuple[_Piece, ...]"

    def held(self) -> Held:
        """The rows that are alive, as the kernel takes them."""
        if not self.pieces:
            return Held.nothing(self.schema)
        rows = pa.concat_tables([piece.rows() for piece in self.pieces])
        return Held(rows, np.concatenate([piece.matched[piece.alive] for piece in self.pieces]))

    def after(self, remains: Remains) -> "list[_Piece]":
        """The same segments with what the kernel left alive."""
        pieces, start = [], 0
        for piece in self.pieces:
            end = start + int(np.count_nonzero(piece.alive))
            alive, matched = piece.alive.copy(), piece.matched.copy()
            alive[piece.alive] = remains.kept[start:end]
            matched[piece.alive] = remains.kept_matched[start:end]
            pieces.append(piece.marked(alive, matched))
            start = end
        return pieces


@dataclass(frozen=True)
class _Piece:
    """The rows of a segment, which of them are alive, and which have matched."""

    segment: Segment
    table: Any
    alive: Mask
    matched: Mask

    @classmethod
    def of(cls, segment: Segment, table: Any, alive_from: int | None) -> "_Piece":
        alive = np.ones(segment.rows, np.bool_)
        if alive_from is not None and segment.first < alive_from:
            alive[: np.searchsorted(table[TIME].to_numpy(), alive_from)] = False
        return cls(segment, table, alive, np.zeros(segment.rows, np.bool_))

    def marked(self, alive: Mask, matched: Mask) -> "_Piece":
        return _Piece(self.segment, self.table, alive, matched)

    def rows(self) -> Any:
        """The rows that are alive; without a copy where they are the last ones."""
        dead = int(np.count_nonzero(~self.alive))
        if not self.alive[:dead].any():
            return self.table.slice(dead)
        return self.table.filter(pa.array(self.alive))


def _mask(column: Any) -> Mask:
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)
