"""The durable rows of a gate: appended in groups, found by stream and sequence, deleted by whole segments.

After any end, also by SIGKILL or loss of power, it opens with everything that was reported durable.
"""

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

import pyarrow as pa

from penstock.durable import Purpose
from penstock.errors import BadGate, DamagedLog, RangeNotHeld
from penstock.ingest.limits import Limits
from penstock.ingest.log.acknowledged import AcknowledgedEnd
from penstock.ingest.log.catalogue import Catalogue
from penstock.ingest.log.group_commit import GroupCommit, LogEntry, PlacedEntry
from penstock.ingest.log.holdings import Holdings, IndexedRange, LogSegment, Piece
from penstock.ingest.log.record import BLOCK, checksum, parse_header
from penstock.ingest.log.scan import Damage, scan
from penstock.ingest.log.segments import IndexLine, SegmentFiles, line_of, read_index, write_index
from penstock.ingest.wire.protocol import inlet_of

__all__ = ["Log", "Recovered", "deletable", "recover"]

_LOGGER = logging.getLogger("penstock.gate")
_PIECES_AT_ONCE: Final = 1000


@dataclass(slots=True)
class Recovered:
    """What a folder of segments holds."""

    segments: list[tuple[int, int, list[IndexLine]]] = field(default_factory=list)
    """Number, size and index of every segment, oldest first."""
    damage: list[Damage] = field(default_factory=list)
    torn_bytes: int = 0


def recover(files: SegmentFiles, acknowledged: AcknowledgedEnd) -> Recovered:
    """Read every segment: closed ones by their index, others record by record.

    A segment that is found without its index gets one, unless it is the last, which may still grow.
    """
    found = Recovered()
    numbers = files.numbers()
    for number in numbers:
        index = read_index(files.index_path(number), files.size(number))
        if index is None:
            last = number == numbers[-1]
            index = _scanned(files, number, found, acknowledged, last=last)
            if not last and not any(each.segment == number for each in found.damage):
                write_index(files.index_path(number), *index)
        found.segments.append((number, *index))
    if acknowledged.end and acknowledged.segment > max(numbers, default=0):
        found.damage.append(Damage(acknowledged.segment, 0, acknowledged.end, None))
    return found


def _scanned(
    files: SegmentFiles, number: int, found: Recovered, acknowledged: AcknowledgedEnd, *, last: bool
) -> tuple[int, list[IndexLine]]:
    size = files.size(number)
    known = acknowledged.end if number == acknowledged.segment else 0
    if not size and not known:
        return 0, []
    # What is found complete counts as durable from now on, though a kill may have come before its sync.
    files.sync(number)
    content = files.mapped(number) if size else pa.py_buffer(b"")
    result = scan(number, content, known, closed=not last)
    found.damage += result.damage
    found.torn_bytes += result.torn
    if result.end != size and not result.damage:
        files.cut(number, result.end)
    return result.end, [line_of(offset, header) for offset, header in result.records]


class _Closed(Protocol):
    size: int
    highs: dict[str, int]


def deletable(
    closed: Mapping[int, _Closed],
    upto: Mapping[tuple[str, str], Mapping[str, int]],
    total: int,
    limits: Limits,
) -> Iterator[tuple[int, bool]]:
    """Numbers of closed files to delete now, and whether one was not committed.

    Files that every reader has committed go first, the oldest first; others only if the limits allow it.
    An inlet without readers is not committed. The cost is the number of streams in committed files; in any
    other file only the streams up to the first that is not committed are looked at.
    """
    done = [number for number in sorted(closed) if _committed(closed[number].highs, upto)]
    kept = sum(closed[number].size for number in done)
    for number in done:
        if kept <= limits.keep_bytes and total <= limits.store_bytes:
            break
        kept -= closed[number].size
        total -= closed[number].size
        yield number, False
    if limits.discard_uncommitted:
        for number in sorted(set(closed) - set(done)):
            if total <= limits.store_bytes:
                break
            total -= closed[number].size
            yield number, True


def _committed(highs: Mapping[str, int], upto: Mapping[tuple[str, str], Mapping[str, int]]) -> bool:
    readers: dict[str, list[Mapping[str, int]]] = {}
    for (inlet, _), known in upto.items():
        readers.setdefault(inlet, []).append(known)
    return all(
        inlet_of(stream) in readers
        and all(known.get(stream, 0) >= high for known in readers[inlet_of(stream)])
        for stream, high in highs.items()
    )


class Log:
    """All durable rows of a gate, and how new ones become durable.

    The writing thread calls `durable` or `failed` for every entry, and `died` if it had to end. Where it is
    not sure which acknowledged rows are lost, a log opens only with `accept_loss`.
    """

    def __init__(  # noqa: PLR0913 -- where, how much, what to call
        self,
        folder: Path,
        limits: Limits,
        durable: Callable[[list[LogEntry]], None],
        failed: Callable[[Exception, list[LogEntry]], None],
        died: Callable[[Exception], None] | None = None,
        *,
        accept_loss: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._owner = _only_one(folder)
        self._limits, self._answer = limits, durable
        self._lock = threading.RLock()
        self.folder = folder
        self.boot = uuid4().hex
        self.discarded = 0
        try:
            self.files = SegmentFiles(folder / "log")
            self._acknowledged = AcknowledgedEnd(folder / "acknowledged")
            self.catalogue = Catalogue(folder / "catalogue")
            self._unlink(self.catalogue.gone)
            self._load(accept_loss=accept_loss)
            self._commit = self._open(failed, died or _LOGGER.critical)
        except BaseException:
            os.close(self._owner)
            raise

    def _load(self, *, accept_loss: bool) -> None:
        self.held = Holdings(self.catalogue.deleted, self.catalogue.next, self.catalogue.dropped)
        found = recover(self.files, self._acknowledged)
        self.damage, self.torn_bytes = found.damage, found.torn_bytes
        unsure = [
            each
            for each in found.damage
            if not each.bounded and (each.segment, each.offset) not in self.catalogue.accepted
        ]
        if unsure and not accept_loss:
            raise DamagedLog(
                f"the log in {self.files.folder} is damaged: {'; '.join(map(str, unsure[:5]))}"
                f"{f'; and {len(unsure) - 5} more' if len(unsure) > 5 else ''}. Restore these files from a "
                "copy, or start once with --accept-loss: the gate then goes on without these rows, and a "
                "client that asks where it stands may be told a number that was given before"
            )
        if unsure:
            self.catalogue.accept((each.segment, each.offset) for each in unsure)
            self.catalogue.sync()
        for segment in found.segments:
            self.held.load(*segment)
        for each in found.damage:
            if each.header is not None:
                self.held.lose(each.header.stream, each.header.sequence + each.header.rows)
        for stream, ranges in self.catalogue.given_up.items():
            for low, high in ranges:
                self.held.give_up(stream, low, high)

    def _open(
        self, failed: Callable[[Exception, list[LogEntry]], None], died: Callable[[Exception], None]
    ) -> GroupCommit:
        last = max(self.held.segments, default=0)
        # After a torn tail the file ends within a block: nothing more is added to it, nor to a damaged one.
        whole = last > 0 and self.held.segments[last].size % BLOCK == 0
        sound = not any(each.segment == last for each in self.damage)
        grows = whole and sound and not self.files.index_path(last).exists()
        number = last if grows else max(last, self._acknowledged.segment, self.catalogue.last_gone) + 1
        size = self.held.segments.setdefault(number, LogSegment()).size
        return GroupCommit(
            self.files,
            self._acknowledged,
            segment=number,
            size=size,
            segment_bytes=self._limits.segment_bytes,
            group_bytes=self._limits.group_bytes,
            durable=self._placed,
            failed=failed,
            sealed=self._seal,
            before=self.catalogue.sync,
            died=died,
        )

    @property
    def bytes(self) -> int:
        """Size of all log files and of the catalogue."""
        return self.held.bytes + self.catalogue.size

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

    def append(self, entry: LogEntry) -> None:
        """Hand in rows that follow all others of their stream."""
        self._commit.append(entry)

    def take_back(self) -> list[LogEntry]:
        """All entries of which nothing was written yet."""
        return self._commit.take_back()

    def next(self, stream: str) -> int:
        """The number after the last durable row of a stream, 0 if there never was one."""
        held = self.held.streams.get(stream)
        return held.next if held else 0

    def promise(self, stream: str, frontier: int, at: int) -> None:
        """Remember a frontier that came without rows; it is not durable, and its client repeats it."""
        with self._lock:
            self.held.promise(stream, frontier, at)

    def give_up(self, stream: str, low: int, high: int) -> None:
        """Remember, durably, that rows are lost for good: readers go on after them."""
        with self._lock:
            self.catalogue.give_up(stream, low, high)
            self.catalogue.sync()
            self.held.give_up(stream, low, high)

    def drop_inlet(self, inlet: str) -> None:
        """Forget an inlet, its readers and its rows, durably; its files go when they hold nothing else."""
        with self._lock:
            nexts = self.held.nexts_of(inlet)
            self.catalogue.drop_inlet(inlet, nexts)
            self.catalogue.sync()
            self.held.drop_streams(nexts)

    def ranges(self, inlet: str, since: str | None) -> list[IndexedRange]:
        """Every range of an inlet, or of those streams that changed after a generation of this life."""
        boot, _, number = (since or "").partition(":")
        after = int(number) if boot == self.boot and number.isdigit() else -1
        with self._lock:
            return self.held.ranges(inlet, after)

    def pieces(self, stream: str, low: int, high: int) -> list[Piece]:
        """Where the rows [low, high) of a stream are."""
        with self._lock:
            return self.held.pieces(stream, low, high)

    def check_held(self, stream: str, low: int, high: int) -> None:
        """Raise RangeNotHeld unless all rows [low, high) of a stream are here."""
        with self._lock:
            self.held.check(stream, low, high)

    def read_range(
        self, stream: str, low: int, high: int, schema: pa.Schema
    ) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """The rows [low, high) of a stream, record by record; memory for the places of a few of them.

        Each with the sequence of its first row and the time of its arrival in milliseconds.
        """
        while low < high:
            with self._lock:
                pieces = self.held.first_pieces(stream, low, high, _PIECES_AT_ONCE)
            for piece in pieces:
                yield piece.sequence, *self.read(piece, schema)
                low = piece.sequence + piece.rows

    def read(self, piece: Piece, schema: pa.Schema) -> tuple[int, pa.RecordBatch]:
        """When a piece arrived, and its rows, in place in the mapped file, their checksum verified."""
        segment = self.held.segments.get(piece.segment)
        if segment is None:
            raise RangeNotHeld(
                f"rows from {piece.sequence} were deleted in the meantime; ask for the index again"
            )
        for least in (0, segment.size):  # a map of the last segment may be too short
            content = self.files.mapped(piece.segment, least)
            header = parse_header(memoryview(content), piece.offset)
            if header and piece.offset + header.size + header.length <= content.size:
                payload = content.slice(piece.offset + header.size, header.length)
                if checksum(payload) == header.total:
                    rows = pa.ipc.read_record_batch(payload, schema)
                    return header.arrived, rows.slice(piece.sequence - header.sequence, piece.rows)
        rows = f"{piece.sequence}-{piece.sequence + piece.rows}"
        raise DamagedLog(
            f"{self.files.path(piece.segment).name}: the record at byte {piece.offset} is not what was "
            f"written, so rows {rows} of its stream are lost; restore the file, let the client send them "
            f"to another gate, or give them up: penstock gate --give-up STREAM:{rows}"
        )

    def delete_below(self, committed: Mapping[tuple[str, str], Mapping[str, int]]) -> None:
        """Delete the closed segments that no reader needs, by the positions of every (inlet, reader).

        What is deleted is durable in the catalogue before the first file goes. A file whose deletion fails,
        or that comes back after a loss of power, is deleted the next time or at the next start.
        """
        with self._lock:
            active = self._commit.segment
            closed = {number: each for number, each in self.held.segments.items() if number != active}
            going = dict(deletable(closed, committed, self.bytes, self._limits))
            if going:
                self._remember_deleted(sorted(going))
                self.discarded += sum(going.values())
                for number in going:
                    self.held.drop(number)
            self._unlink(self.catalogue.gone)

    def _remember_deleted(self, numbers: list[int]) -> None:
        highs, nexts = self.held.highs(numbers), self.held.nexts(numbers)
        try:
            self.catalogue.delete(highs, numbers, nexts)
        except OSError:
            # On a full disk the index makes room: it has more bytes for each stream than the line.
            for number in numbers:
                self.files.delete_index(number)
            self.catalogue.delete(highs, numbers, nexts)
        self.catalogue.sync()
        for number in numbers:
            self._acknowledged.forget(number)

    def _unlink(self, numbers: Iterable[int]) -> None:
        """Delete the files of segments that the catalogue calls deleted."""
        gone = sorted(numbers)
        if gone:
            for number in gone:
                self.files.delete(number, Purpose.GATE_RETENTION)
            self.files.sync_deletions()
            self.catalogue.unlinked(gone)

    def close(self) -> None:
        """Write what waits and close; the last segment gets its index, which saves the next start a scan."""
        self._commit.close()
        self._seal(self._commit.segment)
        self._acknowledged.close()
        self.catalogue.close()
        os.close(self._owner)

    def _placed(self, placed: list[PlacedEntry]) -> None:
        with self._lock:
            self.held.generation += 1
            for each in placed:
                self.held.note(each.segment, each.line())
        self._answer([each.entry for each in placed])

    def _seal(self, number: int) -> None:
        """Write the index of a segment that is complete; one without rows goes."""
        segment = self.held.segments.get(number)
        try:
            if segment is None or not segment.size:
                with self._lock:
                    self.held.segments.pop(number, None)
                self.files.delete(number, Purpose.GATE_SEGMENT)
            elif not any(each.segment == number for each in self.damage):
                # A damaged segment has no index: it is scanned, and its damage reported, at every start.
                write_index(self.files.index_path(number), segment.size, segment.lines)
                segment.lines = []
        except OSError as error:
            _LOGGER.warning("segment %d has no index (%s); the next start reads all of it", number, error)
            with suppress(OSError):
                self.files.delete_index(number)


def _only_one(folder: Path) -> int:
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise BadGate(f"another gate uses the folder {folder}; give each gate its own") from None
    return handle
