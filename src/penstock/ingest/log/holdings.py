"""What is durable, stream by stream and segment by segment; kept in memory and rebuilt at every start."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from sys import intern
from typing import TypeAlias

from penstock.errors import RangeNotHeld
from penstock.ingest.log.segments import IndexLine
from penstock.ingest.wire.protocol import inlet_of

__all__ = ["Holdings", "IndexedRange", "LogSegment", "Piece", "Positions", "StreamHoldings"]


@dataclass(frozen=True, slots=True)
class Piece:
    """The rows [sequence, sequence + rows), all of them in the record that begins at this place."""

    segment: int
    offset: int
    sequence: int
    rows: int


class Positions:
    """The records of one stream that are durable, and the ranges [low, high) that they make.

    Sorted, without gaps within a range, 32 bytes for each record.

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
        """Add a record, nearly always after all others; rows that are held already are skipped."""
        if self._ranges and sequence < self._ranges[-1][1]:
            self._refill(sequence, sequence + rows, segment, offset)
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

    def _refill(self, low: int, high: int, segment: int, offset: int) -> None:
        """Add the rows [low, high) that lie in holes; each hole costs a copy of the positions."""
        for start, end in self._holes(low, high):
            at = bisect_right(self._lows, start)
            for values, value in (
                (self._lows, start),
                (self._rows, end - start),
                (self._segments, segment),
                (self._offsets, offset),
            ):
                values.insert(at, value)
            touching = [each for each in self._ranges if each[0] <= end and each[1] >= start]
            whole = (
                min([start, *(each[0] for each in touching)]),
                max([end, *(each[1] for each in touching)]),
            )
            self._ranges = sorted([*(each for each in self._ranges if each not in touching), whole])

    def _holes(self, low: int, high: int) -> list[tuple[int, int]]:
        """The parts of [low, high) before the last row held that are not there."""
        holes = []
        for start, end in self._ranges:
            if low < min(start, high):
                holes.append((low, min(start, high)))
            low = max(low, end)
        return holes

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
        """The same without the records of one segment; if these come first, it costs one copy."""
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


@dataclass(slots=True)
class StreamHoldings:
    """What is durable of one stream."""

    positions: Positions = field(default_factory=Positions)
    next: int = 0
    deleted: int = 0
    """Every reader was done with the rows below this when some of them were deleted."""
    promise: tuple[int, int] | None = None
    """The last frontier that was promised, and the first row that it speaks of; one value, read at once."""
    bytes: int = 0
    arrived: int | None = None
    changed: int = 0
    given_up: list[tuple[int, int]] = field(default_factory=list)
    dropped: bool = False
    """Its inlet was deleted, and no row has come since."""

    @property
    def frontier(self) -> int | None:
        """The last frontier that was promised."""
        return None if self.promise is None else self.promise[0]

    def promised(self, frontier: int, at: int) -> bool:
        """Note a promise; whether it says more than the last."""
        more = self.promise is None or frontier > self.promise[0]
        if more:
            self.promise = (frontier, at)
        return more

    def readable(self) -> list[tuple[int, int, bool]]:
        """The ranges that readers see: low, high, and whether its rows were given up."""
        if self.dropped:
            return []
        whole = self.positions.ranges() or [(self.next, self.next)]
        if not self.given_up:
            return [(low, high, False) for low, high in whole]
        for start, end in self.given_up:
            parts = [((low, min(high, start)), (max(low, end), high)) for low, high in whole]
            whole = [part for pair in parts for part in pair if part[0] < part[1]]
        return [*((*each, False) for each in whole), *((*each, True) for each in self.given_up)]


IndexedRange: TypeAlias = tuple[str, int, int, StreamHoldings, bool]
"""Stream, low, high, what is held of the stream, and whether the rows of the range were given up."""


@dataclass(slots=True)
class LogSegment:
    """One log file: its size, the end of the rows and the bytes of each stream, its index until closed."""

    size: int = 0
    highs: dict[str, int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    lines: list[IndexLine] = field(default_factory=list)


class Holdings:
    """The place of every durable row; callers hold a lock."""

    def __init__(
        self, deleted: Mapping[str, int], nexts: Mapping[str, int], dropped: Mapping[str, int]
    ) -> None:
        self.streams = {
            stream: StreamHoldings(
                next=max(high, nexts.get(stream, 0)), deleted=high, dropped=dropped.get(stream, -1) >= high
            )
            for stream, high in deleted.items()
        }
        self._dropped = dropped
        self.segments: dict[int, LogSegment] = {}
        self.generation = 0
        self.bytes = 0

    def load(self, number: int, size: int, lines: list[IndexLine]) -> None:
        """Add a segment that was found at the start."""
        self.segments[number] = LogSegment()
        for line in lines:
            _, stream, sequence, rows, *_ = line
            if sequence + rows > self._dropped.get(stream, 0):
                self.note(number, line)
        self.bytes += size - self.segments[number].size
        self.segments[number].size = size

    def note(self, number: int, line: IndexLine) -> None:
        """Add one record."""
        offset, name, sequence, rows, frontier, arrived, stride = line
        stream = intern(name)  # one text for all segments
        held = self.streams.setdefault(stream, StreamHoldings())
        held.positions.add(sequence, rows, number, offset)
        held.next = max(held.next, sequence + rows)
        held.dropped = False
        if frontier is not None:
            held.promised(frontier, sequence + rows)
        held.bytes += stride
        held.arrived, held.changed = arrived, self.generation
        segment = self.segments.setdefault(number, LogSegment())
        self.bytes += offset + stride - segment.size
        segment.size = offset + stride
        segment.highs[stream] = held.next
        segment.weights[stream] = segment.weights.get(stream, 0) + stride
        segment.lines.append(line)

    def lose(self, stream: str, high: int) -> None:
        """Note that rows below `high` were acknowledged and are lost: their numbers are not used again."""
        held = self.streams.setdefault(intern(stream), StreamHoldings())
        held.next = max(held.next, high)

    def promise(self, stream: str, frontier: int, at: int) -> None:
        """Note a frontier that came without rows: none from the number `at` on is below it.

        Of a stream that never had a row here, the rows before are on other gates, or nowhere if it is 0.
        """
        held = self.streams.setdefault(intern(stream), StreamHoldings(next=at))
        if held.promised(frontier, at):
            self.generation += 1
            held.changed = self.generation

    def nexts(self, numbers: Iterable[int]) -> dict[str, int]:
        """The next row of every stream that is in these segments."""
        return {stream: self.streams[stream].next for stream in self.highs(numbers)}

    def nexts_of(self, inlet: str) -> dict[str, int]:
        """The next row of every stream of an inlet."""
        return {stream: held.next for stream, held in self.streams.items() if inlet_of(stream) == inlet}

    def drop_streams(self, nexts: Mapping[str, int]) -> None:
        """Forget the rows of streams below these numbers; no file is kept for them any more."""
        self.generation += 1
        for stream, number in nexts.items():
            self.streams[stream] = StreamHoldings(
                next=number, deleted=number, changed=self.generation, dropped=True
            )
        for segment in self.segments.values():
            for stream in nexts.keys() & segment.highs.keys():
                del segment.highs[stream], segment.weights[stream]

    def highs(self, numbers: Iterable[int]) -> dict[str, int]:
        """The end of the rows of every stream that is in these segments."""
        found: dict[str, int] = {}
        for number in numbers:
            for stream, high in self.segments[number].highs.items():
                found[stream] = max(high, found.get(stream, 0))
        return found

    def drop(self, number: int) -> None:
        """Forget a segment; readers are done with the rows of its streams up to where it ended."""
        segment = self.segments.pop(number)
        self.generation += 1
        self.bytes -= segment.size
        for stream, weight in segment.weights.items():
            held = self.streams[stream]
            held.positions = held.positions.without(number)
            held.bytes -= weight
            held.changed = self.generation
            held.deleted = max(held.deleted, segment.highs[stream])

    def settled(self, stream: str) -> list[tuple[int, int]]:
        """The rows of a stream that need not come again: held here, or deleted when readers were done."""
        held = self.streams[stream]
        deleted = [(0, held.deleted)] if held.deleted else []
        return [*deleted, *held.positions.ranges(), *held.given_up]

    def ranges(self, inlet: str, since: int) -> "list[IndexedRange]":
        """Every range of an inlet whose stream changed after a generation."""
        return [
            (stream, low, high, held, given_up)
            for stream, held in self.streams.items()
            if held.changed > since and inlet_of(stream) == inlet
            for low, high, given_up in held.readable()
        ]

    def give_up(self, stream: str, low: int, high: int) -> None:
        """Let readers go on without rows, which are damaged here or on no gate at all."""
        held = self.streams.setdefault(intern(stream), StreamHoldings())
        self.generation += 1
        held.given_up.append((low, high))
        held.next, held.changed = max(held.next, high), self.generation

    def pieces(self, stream: str, low: int, high: int) -> list[Piece]:
        """Where the rows [low, high) of a stream are."""
        self.check(stream, low, high)
        return list(self.streams[stream].positions.pieces(low, high)) if low < high else []

    def first_pieces(self, stream: str, low: int, high: int, most: int) -> list[Piece]:
        """The first of the records that hold the rows [low, high) of a stream."""
        self.check(stream, low, high)
        return list(islice(self.streams[stream].positions.pieces(low, high), most)) if low < high else []

    def check(self, stream: str, low: int, high: int) -> None:
        """Raise RangeNotHeld unless all rows [low, high) of a stream are here."""
        held = self.streams.get(stream) or StreamHoldings()
        if not held.positions.holds(low, high):
            raise RangeNotHeld(
                f"rows {low} to {high} of stream {stream!r} are not all here, which has "
                f"{held.positions.ranges()[:8] or 'none'}; ask for the index and read what it names"
            )
