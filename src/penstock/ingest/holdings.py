"""What is durable, stream by stream and segment by segment; kept in memory and rebuilt at each start."""

from dataclasses import dataclass, field
from sys import intern

from penstock.errors import RangeNotHeld
from penstock.ingest.positions import Piece, Positions
from penstock.ingest.segment_index import Line
from penstock.ingest.wire import inlet_of

__all__ = ["Held", "Holdings", "Segment"]


@dataclass(slots=True)
class Held:
    """What is durable of one stream."""

    positions: Positions = field(default_factory=Positions)
    next: int = 0
    frontier: int | None = None
    bytes: int = 0
    arrived: int | None = None
    changed: int = 0


@dataclass(slots=True)
class Segment:
    """One log file: its size, the end of the rows and the bytes of each stream, its index until closed."""

    size: int = 0
    highs: dict[str, int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)


class Holdings:
    """Every durable row's place; whoever calls holds a lock."""

    def __init__(self, deleted: dict[str, int]) -> None:
        self.streams = {stream: Held(next=high) for stream, high in deleted.items()}
        self.segments: dict[int, Segment] = {}
        self.generation = 0
        self.bytes = 0

    def load(self, number: int, size: int, lines: list[Line]) -> None:
        """Take over a segment that was found at the start."""
        self.segments[number] = Segment()
        for line in lines:
            self.note(number, line)
        self.bytes += size - self.segments[number].size
        self.segments[number].size = size

    def note(self, number: int, line: Line) -> None:
        """Take over one record."""
        offset, name, sequence, rows, frontier, arrived, stride = line
        stream = intern(name)  # one text for all segments
        held = self.streams.setdefault(stream, Held())
        held.positions.add(sequence, rows, number, offset)
        held.next = max(held.next, sequence + rows)
        if frontier is not None and (held.frontier is None or frontier > held.frontier):
            held.frontier = frontier
        held.bytes += stride
        held.arrived, held.changed = arrived, self.generation
        segment = self.segments.setdefault(number, Segment())
        self.bytes += offset + stride - segment.size
        segment.size = offset + stride
        segment.highs[stream] = held.next
        segment.weights[stream] = segment.weights.get(stream, 0) + stride
        segment.lines.append(line)

    def promise(self, stream: str, frontier: int) -> None:
        """Take over a frontier that came without rows."""
        held = self.streams.setdefault(stream, Held())
        if held.frontier is None or frontier > held.frontier:
            self.generation += 1
            held.frontier, held.changed = frontier, self.generation

    def drop(self, number: int) -> dict[str, int]:
        """Forget a segment; the next row of every stream that was in it."""
        segment = self.segments.pop(number)
        self.generation += 1
        self.bytes -= segment.size
        for stream, weight in segment.weights.items():
            held = self.streams[stream]
            held.positions = held.positions.without(number)
            held.bytes -= weight
            held.changed = self.generation
        return {stream: self.streams[stream].next for stream in segment.highs}

    def ranges(self, inlet: str, since: int) -> list[tuple[str, int, int, Held]]:
        """Stream, low and high of every range of an inlet whose stream changed after a generation."""
        return [
            (stream, low, high, held)
            for stream, held in self.streams.items()
            if held.changed > since and inlet_of(stream) == inlet
            for low, high in held.positions.ranges() or [(held.next, held.next)]
        ]

    def pieces(self, stream: str, low: int, high: int) -> list[Piece]:
        """Where the rows [low, high) of a stream are."""
        held = self.streams.get(stream) or Held()
        if not held.positions.holds(low, high):
            raise RangeNotHeld(
                f"rows {low} to {high} of stream {stream!r} are not all here, which has "
                f"{held.positions.ranges()[:8] or 'none'}; ask for the index and read what it names"
            )
        return list(held.positions.pieces(low, high))
