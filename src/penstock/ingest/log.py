"""The durable rows of a gate: appended in groups, found by stream and sequence, deleted by whole segments.

After any end, also by SIGKILL or loss of power, it opens with everything that was reported durable.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from penstock.errors import BadGate, DamagedLog, RangeNotHeld
from penstock.ingest.catalogue import Catalogue
from penstock.ingest.group_commit import Entry, GroupCommit, Placed
from penstock.ingest.holdings import Held, Holdings, Segment
from penstock.ingest.limits import Limits
from penstock.ingest.positions import Piece
from penstock.ingest.record import BLOCK, checksum, parse_header
from penstock.ingest.recovery import recover
from penstock.ingest.retention import deletable
from penstock.ingest.segment_files import SegmentFiles
from penstock.ingest.segment_index import write_index

__all__ = ["Log"]


class Log:
    """All rows of a gate that are durable, and the way of new ones there.

    `durable` and `failed` are told of every entry, by the thread that writes.
    """

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
        self.held = Holdings(self.catalogue.deleted)
        self._upto: dict[tuple[str, str], dict[str, int]] = {each: {} for each in self.catalogue.readers}
        self.boot = uuid4().hex
        self.discarded = 0
        found = recover(self.files)
        self.damage, self.torn_bytes = found.damage, found.torn_bytes
        for segment in found.segments:
            self.held.load(*segment)
        self._commit = self._open(failed)

    def _open(self, failed: Callable[[Exception, list[Entry]], None]) -> GroupCommit:
        last = max(self.held.segments, default=0)
        # What was torn off left the file within a block: nothing is added to it.
        whole = last > 0 and self.held.segments[last].size % BLOCK == 0
        grows = whole and not self.files.index_path(last).exists()
        number = last if grows else last + 1
        size = self.held.segments.setdefault(number, Segment()).size
        return GroupCommit(
            self.files,
            segment=number,
            size=size,
            segment_bytes=self._limits.segment_bytes,
            group_bytes=self._limits.group_bytes,
            durable=self._placed,
            failed=failed,
            sealed=self._seal,
            before=self.catalogue.sync,
        )

    @property
    def bytes(self) -> int:
        """Size of all log files."""
        return self.held.bytes

    @property
    def generation(self) -> str:
        """Changes with every group; comparable only within one life of the gate."""
        return f"{self.boot}:{self.held.generation}"

    @property
    def groups(self) -> int:
        """Groups written since the start, each with one sync."""
        return self._commit.groups

    @property
    def speed(self) -> float:
        """Bytes per second of the last groups."""
        return self._commit.speed

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
        held = self.held.streams.get(stream)
        return held.next if held else 0

    def promise(self, stream: str, frontier: int) -> None:
        """Remember a frontier that came without rows; it is not durable, and its client says it again."""
        with self._lock:
            self.held.promise(stream, frontier)

    def ranges(self, inlet: str, since: str | None) -> list[tuple[str, int, int, Held]]:
        """Every range of an inlet, or of those streams that changed after a generation of this life."""
        boot, _, number = (since or "").partition(":")
        after = int(number) if boot == self.boot and number.isdigit() else -1
        with self._lock:
            return self.held.ranges(inlet, after)

    def pieces(self, stream: str, low: int, high: int) -> list[Piece]:
        """Where the rows [low, high) of a stream are."""
        with self._lock:
            return self.held.pieces(stream, low, high)

    def read(self, piece: Piece, schema: pa.Schema) -> pa.RecordBatch:
        """The rows of a piece, in place in the mapped file, once their checksum was found right."""
        segment = self.held.segments.get(piece.segment)
        if segment is None:
            raise RangeNotHeld(f"rows from {piece.sequence} were deleted meanwhile; ask for the index again")
        for least in (0, segment.size):  # a map of the last segment may be too short
            content = self.files.mapped(piece.segment, least)
            header = parse_header(memoryview(content), piece.offset)
            if header and piece.offset + header.size + header.length <= content.size:
                payload = content.slice(piece.offset + header.size, header.length)
                if checksum(payload) == header.total:
                    rows = pa.ipc.read_record_batch(payload, schema)
                    return rows.slice(piece.sequence - header.sequence, piece.rows)
        raise DamagedLog(
            f"{self.files.path(piece.segment).name}: the record at byte {piece.offset} is not what was "
            f"written, so rows from {piece.sequence} are lost; restore the file, or read on behind them"
        )

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
        if self.held.segments[self._commit.segment].size:
            self._seal(self._commit.segment)
        else:
            self.files.delete(self._commit.segment)
        self.catalogue.close()
        os.close(self._owner)

    def _placed(self, placed: list[Placed]) -> None:
        with self._lock:
            self.held.generation += 1
            for each in placed:
                self.held.note(each.segment, each.line())
            if self.bytes > self._limits.store_bytes:
                self._collect()
        self._answer([each.entry for each in placed])

    def _seal(self, number: int) -> None:
        segment = self.held.segments[number]
        if any(each.segment == number for each in self.damage):
            return  # without an index it is scanned, and its damage told, at every start
        try:
            write_index(self.files.index_path(number), segment.size, segment.lines)
        except OSError:
            self.files.index_path(number).unlink(missing_ok=True)
        segment.lines = []

    def _collect(self) -> None:
        closed = {
            number: each for number, each in self.held.segments.items() if number != self._commit.segment
        }
        for number, uncommitted in list(deletable(closed, self._upto, self.bytes, self._limits)):
            self.discarded += uncommitted
            self.files.delete(number)
            try:
                self.catalogue.delete(self.held.drop(number))
            except OSError:
                continue  # a full disk: rows that come again after the next start are stored again, no more


def _only_one(folder: Path) -> int:
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise BadGate(f"another gate uses the folder {folder}; give each gate its own") from None
    return handle
