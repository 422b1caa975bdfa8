"""Where the rows of one stream lie in the log: sorted, gapless within a range, 32 bytes for each record."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Piece", "Positions"]


@dataclass(frozen=True, slots=True)
class Piece:
    """The rows [sequence, sequence + rows), all of them in the record that begins at this place."""

    segment: int
    offset: int
    sequence: int
    rows: int


class Positions:
    """The records of one stream that are durable, and the ranges [low, high) that they make.

    >>> held = Positions()
    >>> for sequence, rows in ((0, 10), (10, 5), (40, 10)):
    ...     held.add(sequence, rows, segment=1, offset=sequence * 64)
    >>> held.ranges()
    [(0, 15), (40, 50)]
    >>> [(each.sequence, each.rows) for each in held.pieces(8, 12)]
    [(8, 2), (10, 2)]
    >>> held.holds(8, 12), held.holds(8, 41)
    (True, False)
    """

    __slots__ = ("_lows", "_offsets", "_ranges", "_rows", "_segments")

    def __init__(self) -> None:
        self._lows = array("q")
        self._rows = array("q")
        self._segments = array("q")
        self._offsets = array("q")
        self._ranges: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._lows)

    def add(self, sequence: int, rows: int, segment: int, offset: int) -> None:
        """Take the next record; of rows that are held already only those behind them count."""
        if self._ranges and sequence < self._ranges[-1][1]:
            sequence, rows = self._ranges[-1][1], sequence + rows - self._ranges[-1][1]
        if rows <= 0:
            return
        self._lows.append(sequence)
        self._rows.append(rows)
        self._segments.append(segment)
        self._offsets.append(offset)
        if self._ranges and self._ranges[-1][1] == sequence:
            self._ranges[-1] = (self._ranges[-1][0], sequence + rows)
        else:
            self._ranges.append((sequence, sequence + rows))

    def ranges(self) -> list[tuple[int, int]]:
        """The ranges [low, high) in order."""
        return list(self._ranges)

    def holds(self, low: int, high: int) -> bool:
        """Whether every row of [low, high) is there."""
        at = bisect_right(self._ranges, (low, 2**63)) - 1
        return low >= high or (at >= 0 and high <= self._ranges[at][1])

    def pieces(self, low: int, high: int) -> Iterator[Piece]:
        """The records that hold the rows [low, high), in order, each cut to it."""
        at = max(bisect_right(self._lows, low) - 1, 0)
        while at < len(self._lows) and self._lows[at] < high:
            first, rows = self._lows[at], self._rows[at]
            start, end = max(low, first), min(high, first + rows)
            if start < end:
                yield Piece(self._segments[at], self._offsets[at], start, end - start)
            at += 1

    def without(self, segment: int) -> "Positions":
        """The same without the records of one segment; they mostly come first, and then it costs a copy."""
        gone = self._segments.count(segment)
        kept = Positions()
        if all(place == segment for place in self._segments[:gone]):
            kept._lows, kept._rows = self._lows[gone:], self._rows[gone:]
            kept._segments, kept._offsets = self._segments[gone:], self._offsets[gone:]
            low = kept._lows[0] if kept._lows else 2**63
            kept._ranges = [(max(first, low), end) for first, end in self._ranges if end > low]
            return kept
        for low, rows, place, offset in zip(
            self._lows, self._rows, self._segments, self._offsets, strict=True
        ):
            if place != segment:
                kept.add(low, rows, place, offset)
        return kept
