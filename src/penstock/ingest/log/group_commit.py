"""Group commit: what waits is written together, synced once, and only then answered.

One thread writes. While it waits for the disk the next group gathers, so a slow disk makes groups larger,
not the queue of syncs longer.

Every group is answered. A full disk is waited out. After any other error of the disk the log goes on in a new
file, and if several groups in a row find no file that can be written, the log ends and says why.
"""

import errno
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock import threads
from penstock.ingest.log.acknowledged import AcknowledgedEnd
from penstock.ingest.log.record import BLOCK, header_size, padded, write_header
from penstock.ingest.log.segments import IndexLine, SegmentFiles, SegmentWriter

__all__ = ["GroupCommit", "LogEntry", "PlacedEntry"]

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MOST_FAILURES: Final = 5
"""Groups in a row that fail for another reason than a full disk, before the log ends."""
_IDLE_S: Final = 1.0
"""After this time without rows the end of the log is made durable too."""
_LOGGER = logging.getLogger("penstock.gate")


@dataclass(slots=True, eq=False)
class LogEntry:
    """Rows on their way to the disk; `tag` is for the caller, `arrived` in milliseconds since 1970."""

    stream: str
    sequence: int
    rows: int
    frontier: int | None
    payload: Any
    total: int
    tag: Any = None
    arrived: int = 0

    @property
    def size(self) -> int:
        """Bytes of the rows."""
        return len(self.payload)


@dataclass(frozen=True, slots=True)
class PlacedEntry:
    """Rows that are durable, and where."""

    entry: LogEntry
    segment: int
    offset: int
    stride: int

    def line(self) -> IndexLine:
        """Their line in the segment's index."""
        rows = self.entry
        return (self.offset, rows.stream, rows.sequence, rows.rows, rows.frontier, rows.arrived, self.stride)


class GroupCommit:
    """Appends entries to the end of the log in the order in which they were handed in.

    `durable` is called with what a sync made durable; `failed` with the error and a group of which nothing
    stays in the file; `sealed` with the number of a full segment; `before` ahead of every group, which fails
    if it raises; `died` with the error that ended the log, after everything that waited was answered. The
    writing thread calls them without holding a lock.
    """

    def __init__(  # noqa: PLR0913 -- where to write, how much, and what to call
        self,
        files: SegmentFiles,
        acknowledged: AcknowledgedEnd,
        *,
        segment: int,
        size: int,
        segment_bytes: int,
        group_bytes: int,
        durable: Callable[[list[PlacedEntry]], None],
        failed: Callable[[Exception, list[LogEntry]], None],
        sealed: Callable[[int], None],
        before: Callable[[], None],
        died: Callable[[Exception], None],
    ) -> None:
        self._files, self._durable, self._failed, self._sealed = files, durable, failed, sealed
        self._before, self._died, self._acknowledged = before, died, acknowledged
        self._segment_bytes, self._group_bytes = segment_bytes, group_bytes
        self.segment = segment
        self._writer: SegmentWriter = files.open(segment, size, segment_bytes)
        self._waiting: deque[LogEntry] = deque()
        self._group: list[LogEntry] = []
        self._changed = threading.Condition()
        self._closed = self._unusable = False
        self._failures = 0
        self.groups = 0
        self.sync_seconds = 0.0
        self.speed = 64e6
        self._thread = threads.service("penstock-log", self._run, _LOGGER, self._end)
        self._thread.start()

    @property
    def active_bytes(self) -> int:
        """Size of the segment that is being written."""
        return self._writer.size

    def append(self, entry: LogEntry) -> None:
        """Hand in rows; they are answered by `durable` or `failed`."""
        with self._changed:
            if self._closed:
                raise RuntimeError("the log is closed")
            self._waiting.append(entry)
            self._changed.notify()

    def take_back(self) -> list[LogEntry]:
        """Remove and return all entries of which nothing was written."""
        with self._changed:
            taken = list(self._waiting)
            self._waiting.clear()
        return taken

    def close(self) -> None:
        """Write what waits, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self._writer.close()

    def _run(self) -> None:
        while group := self._next_group():
            self._group = group
            try:
                if self._unusable or self._writer.size >= self._segment_bytes:
                    self._rotate()
                self._before()
                placed = self._write(group)
            except OSError as error:
                self._group = []
                self._failed(error, group)
                self._count_failure(error)
            else:
                self._group, self._failures = [], 0
                self._durable(placed)
                self._acknowledged.note(self.segment, self._writer.size)

    def _count_failure(self, error: OSError) -> None:
        if error.errno in _FULL:
            return
        # The file may hold anything now, and so may what the system remembers of it.
        self._unusable = True
        self._failures += 1
        if self._failures >= _MOST_FAILURES:
            raise OSError(error.errno, f"{self._failures} groups in a row could not be written ({error})")

    def _end(self, error: Exception) -> None:
        """Answer what was handed in, then tell that nothing more will be written."""
        with self._changed:
            self._closed = True
        self._failed(error, [*self._group, *self.take_back()])
        self._died(error)

    def _next_group(self) -> list[LogEntry]:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    if not self._changed.wait(_IDLE_S if self._acknowledged.unsynced else None):
                        break
                if self._waiting or self._closed:
                    return self._gather()
            self._note_durably()

    def _gather(self) -> list[LogEntry]:
        group: list[LogEntry] = []
        size = 0
        while self._waiting and (not group or size + self._waiting[0].size <= self._group_bytes):
            group.append(self._waiting.popleft())
            size += group[-1].size
        return group

    def _note_durably(self) -> None:
        try:
            self._acknowledged.sync()
        except OSError as error:
            self._acknowledged.unsynced = False  # the next group notes its end again
            _LOGGER.warning("how far the log was acknowledged cannot be noted: %s", error)

    def _write(self, group: Sequence[LogEntry]) -> list[PlacedEntry]:
        start = self._writer.size
        try:
            began = time.perf_counter()
            placed = self._append(group, start)
            written = time.perf_counter()
            self._writer.sync()
        except OSError:
            self._undo(start)
            raise
        ended = time.perf_counter()
        self.sync_seconds += ended - written
        self.groups += 1
        self.speed += (sum(entry.size for entry in group) / (ended - began) - self.speed) / 8
        return placed

    def _append(self, group: Sequence[LogEntry], start: int) -> list[PlacedEntry]:
        parts: list[Any] = []
        placed: list[PlacedEntry] = []
        at, gap = start, b""
        for entry in group:
            # The next group begins at a whole block; the padding for that is part of the last header.
            end = at + header_size(entry.stream.encode()) + padded(entry.size)
            header = _header(entry, synced=start, room=-end % BLOCK if entry is group[-1] else 0)
            parts += (gap + header, entry.payload)
            stride = len(header) + padded(entry.size)
            gap = bytes(stride - len(header) - entry.size)
            placed.append(PlacedEntry(entry, self.segment, at, stride))
            at += stride
        parts.append(gap)
        self._writer.write([part for part in parts if len(part)])
        return placed

    def _undo(self, start: int) -> None:
        """After a failed sync the disk may hold anything: cut the group off, or add no more to the file."""
        try:
            self._writer.cut(start)
        except OSError:
            self._writer.size, self._unusable = start, True

    def _rotate(self) -> None:
        following = self._files.open(self.segment + 1, 0, self._segment_bytes)
        self._writer.close()
        self._unusable = False
        full, self.segment, self._writer = self.segment, self.segment + 1, following
        self._sealed(full)


def _header(entry: LogEntry, synced: int, room: int) -> bytes:
    return write_header(
        stream=entry.stream.encode(),
        sequence=entry.sequence,
        rows=entry.rows,
        frontier=entry.frontier,
        arrived=entry.arrived,
        length=entry.size,
        total=entry.total,
        synced=synced,
        room=room,
    )
