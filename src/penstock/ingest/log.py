"""The durable rows of a gate: appended in groups, found by stream and sequence, deleted by whole segments.

After any end, also by SIGKILL or loss of power, it opens with everything that was reported durable.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from penstock.errors import BadGate, DamagedLog, RangeNotHeld
from penstock.ingest.catalogue import Catalogue
from penstock.ingest.group_commit import Entry, GroupCommit, Placed
from penstock.ingest.limits import Limits
from penstock.ingest.positions import Piece, Positions
from penstock.ingest.record import checksum, parse_header
from penstock.ingest.recovery import recover
from penstock.ingest.retention import deletable
from penstock.ingest.segment_files import SegmentFiles
from penstock.ingest.segment_index import Line, write_index
from penstock.ingest.wire import inlet_of

__all__ = ["Held", "Log"]


@dataclass(slots=True)
class Held:
    """What is durable of one stream."""

    positions: Positions = field(default_factory=Positions)
    next: int = 0
    frontier: int | None = None
    bytes: int = 0
    arrived: int = 0
    changed: int = 0


@dataclass(slots=True)
class Segment:
    """One log file: its size, and for each stream in it the end of its rows and their bytes."""

    size: int = 0
    highs: dict[str, int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)


class Log:
    """All rows of a gate that are durable, and the way of new ones there."""

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        durable: Callable[[list[Entry]], None],
        failed: Callable[[Exception, list[Entry]], None],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._owner = _only_one(folder)
        self._limits, self._answer = limits, durable
        self._lock = threading.RLock()
        self.files = SegmentFiles(folder / "log")
        self.catalogue = Catalogue(folder / "catalogue")
        self.streams: dict[str, Held] = {}
        self._segments: dict[int, Segment] = {}
        self._upto: dict[tuple[str, str], dict[str, int]] = {each: {} for each in self.catalogue.readers}
        self.boot, self.generation = uuid4().hex, 0
        self.discarded = 0
        for stream, high in self.catalogue.deleted.items():
            self.streams[stream] = Held(next=high)
        found = recover(self.files)
        self.damage, self.torn_bytes = found.damage, found.torn_bytes
        for number, size, lines in found.segments:
            self._load(number, size, lines)
        last = max(self._segments, default=0)
        grows = last > 0 and not self.files.index_path(last).exists()
        number = last if grows else last + 1
        self._segments.setdefault(number, Segment())
        self._commit = GroupCommit(
            self.files,
            segment=number,
            size=self._segments[number].size,
            segment_bytes=limits.segment_bytes,
            group_bytes=limits.group_bytes,
            durable=self._placed,
            failed=failed,
            sealed=self._seal,
        )

    @property
    def bytes(self) -> int:
        """Size of all log files."""
        with self._lock:
            return sum(each.size for each in self._segments.values())

    @property
    def segments(self) -> int:
        """Number of log files."""
        return len(self._segments)

    @property
    def groups(self) -> int:
        """Groups written since the start, each with one sync."""
        return self._commit.groups

    @property
    def sync_seconds(self) -> float:
        """Time spent in waiting for the disk since the start."""
        return self._commit.sync_seconds

    def append(self, entry: Entry) -> None:
        """Hand in rows that come behind all others of their stream."""
        self._commit.append(entry)

    def take_back(self) -> list[Entry]:
        """All entries of which nothing was written yet."""
        return self._commit.take_back()

    def next(self, stream: str) -> int:
        """The number behind the last durable row of a stream, 0 if there never was one."""
        held = self.streams.get(stream)
        return held.next if held else 0

    def promise(self, stream: str, frontier: int) -> None:
        """Remember a frontier that came without rows; it is not durable, and its client says it again."""
        with self._lock:
            held = self.streams.setdefault(stream, Held())
            if held.frontier is None or frontier > held.frontier:
                self.generation += 1
                held.frontier, held.changed = frontier, self.generation

    def ranges(self, inlet: str, since: int = -1) -> list[tuple[str, int, int, Held]]:
        """Stream, low and high of every range of an inlet whose stream changed after a generation."""
        with self._lock:
            return [
                (stream, low, high, held)
                for stream, held in self.streams.items()
                if held.changed > since and inlet_of(stream) == inlet
                for low, high in held.positions.ranges() or [(held.next, held.next)]
            ]

    def pieces(self, stream: str, low: int, high: int) -> list[Piece]:
        """Where the rows [low, high) of a stream are."""
        with self._lock:
            held = self.streams.get(stream) or Held()
            if not held.positions.holds(low, high):
                raise RangeNotHeld(
                    f"rows {low} to {high} of stream {stream!r} are not all here, which has "
                    f"{held.positions.ranges() or 'none'}; ask for the index and read what it names"
                )
            return list(held.positions.pieces(low, high))

    def read(self, piece: Piece, schema: pa.Schema) -> pa.RecordBatch:
        """The rows of a piece, in place in the mapped file, once their checksum was found right."""
        for least in (0, self._segments[piece.segment].size):  # a map of the last segment may be too short
            content = self.files.mapped(piece.segment, least)
            header = parse_header(memoryview(content), piece.offset)
            if header and piece.offset + header.size + header.length <= content.size:
                payload = content.slice(piece.offset + header.size, header.length)
                if checksum(payload) == header.total:
                    rows = pa.ipc.read_record_batch(payload, schema)
                    return rows.slice(piece.sequence - header.sequence, piece.rows)
        raise DamagedLog(self._told(piece))

    def committed(self, inlet: str, reader: str, upto: Mapping[str, int]) -> None:
        """Take a reader's word that it needs no row below these, and delete what nobody needs."""
        with self._lock:
            if (inlet, reader) not in self._upto:
                self.catalogue.add_reader(inlet, reader)
                self.catalogue.sync()
            known = self._upto.setdefault((inlet, reader), {})
            for stream, high in upto.items():
                known[stream] = max(high, known.get(stream, 0))
            self._collect()

    def forget_reader(self, inlet: str, reader: str) -> None:
        """Wait for a reader no more."""
        with self._lock:
            self._upto.pop((inlet, reader), None)
            self.catalogue.remove_reader(inlet, reader)
            self._collect()

    def readers(self) -> list[tuple[str, str]]:
        """Inlet and name of every reader."""
        return sorted(self._upto)

    def close(self) -> None:
        """Write what waits and close; the last segment gets its index, so the next start need not scan it."""
        self._commit.close()
        if self._segments[self._commit.segment].size:
            self._seal(self._commit.segment)
        else:
            self.files.delete(self._commit.segment)
        self.catalogue.close()
        os.close(self._owner)

    def _placed(self, placed: list[Placed]) -> None:
        self.catalogue.sync()
        with self._lock:
            self.generation += 1
            for each in placed:
                entry = each.entry
                self._note(
                    each.segment,
                    (
                        each.offset,
                        entry.stream,
                        entry.sequence,
                        entry.rows,
                        entry.frontier,
                        entry.arrived,
                        each.length,
                    ),
                )
            if self.bytes > self._limits.store_bytes:
                self._collect()
        self._answer([each.entry for each in placed])

    def _load(self, number: int, size: int, lines: list[Line]) -> None:
        self._segments[number] = Segment()
        for line in lines:
            self._note(number, line)
        self._segments[number].size = size

    def _note(self, number: int, line: Line) -> None:
        offset, stream, sequence, rows, frontier, arrived, stride = line
        held = self.streams.setdefault(stream, Held())
        held.positions.add(sequence, rows, number, offset)
        held.next = max(held.next, sequence + rows)
        if frontier is not None and (held.frontier is None or frontier > held.frontier):
            held.frontier = frontier
        held.bytes += stride
        held.arrived, held.changed = arrived, self.generation
        segment = self._segments.setdefault(number, Segment())
        segment.size = offset + stride
        segment.highs[stream] = held.next
        segment.weights[stream] = segment.weights.get(stream, 0) + stride
        segment.lines.append(line)

    def _seal(self, number: int) -> None:
        segment = self._segments[number]
        if any(each.segment == number for each in self.damage):
            return  # without an index it is scanned, and its damage told, at every start
        try:
            write_index(self.files.index_path(number), segment.size, segment.lines)
        except OSError:
            self.files.index_path(number).unlink(missing_ok=True)
        segment.lines = []

    def _collect(self) -> None:
        closed = {number: each for number, each in self._segments.items() if number != self._commit.segment}
        for number, uncommitted in deletable(closed, self._upto, self.bytes, self._limits):
            self.discarded += uncommitted
            self._delete(number)

    def _delete(self, number: int) -> None:
        segment = self._segments.pop(number)
        self.generation += 1
        self.files.delete(number)
        for stream, weight in segment.weights.items():
            held = self.streams[stream]
            held.positions = held.positions.without(number)
            held.bytes -= weight
            held.changed = self.generation
        try:
            self.catalogue.delete({stream: self.streams[stream].next for stream in segment.highs})
        except OSError:
            return  # a full disk: known until the end, and afterwards such rows would only be stored again

    def _told(self, piece: Piece) -> str:
        return (
            f"{self.files.path(piece.segment).name}: the record at byte {piece.offset} is not what was "
            f"written, so rows from {piece.sequence} are lost; restore the file, or read on behind them"
        )


def _only_one(folder: Path) -> int:
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise BadGate(f"another gate uses the folder {folder}; give each gate its own") from None
    return handle
