"""The files of a gate's log: the one place that opens, writes, syncs, maps, cuts and deletes them.

A closed segment has an index: what a scan of it would find, without reading its rows.
"""

import errno
import mmap
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock import durable
from penstock.durable import Purpose
from penstock.ingest.log.record import RecordHeader, checksum

__all__ = ["SegmentFiles", "SegmentWriter", "read_index", "write_index"]

_SCHEMA: Final = pa.schema(
    [
        ("offset", pa.int64()),
        ("stream", pa.string()),
        ("sequence", pa.int64()),
        ("rows", pa.int64()),
        ("frontier", pa.int64()),
        ("arrived", pa.int64()),
        ("stride", pa.int64()),
    ]
)
IndexLine = tuple[int, str, int, int, int | None, int, int]
"""Offset, stream, sequence, rows, frontier, time of arrival and bytes to the next record."""


def line_of(offset: int, header: RecordHeader) -> IndexLine:
    """The line of the index for one scanned record."""
    return (
        offset,
        header.stream,
        header.sequence,
        header.rows,
        header.frontier,
        header.arrived,
        header.stride,
    )


def write_index(path: Path, size: int, lines: Sequence[IndexLine]) -> None:
    """Write the index of a segment of `size` bytes; it is not synced, since its loss costs only a scan."""
    values = list(zip(*lines, strict=True)) or [()] * len(_SCHEMA)
    columns = [pa.array(column, field.type) for column, field in zip(values, _SCHEMA, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA.with_metadata({"size": str(size)})) as writer:
        writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
    content = sink.getvalue()
    data = checksum(content).to_bytes(8, "little") + content.to_pybytes()
    with durable.writing(path, Purpose.GATE_INDEX):
        path.write_bytes(data)


def read_index(path: Path, size: int) -> tuple[int, list[IndexLine]] | None:
    """The size of a segment and the lines of its index; None if that is missing, damaged or of more bytes.

    A file may be longer than its index says: then its end could not be cut off, and nobody heard of the rest.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if checksum(content[8:]) != int.from_bytes(content[:8], "little"):
        return None
    with pa.ipc.open_stream(content[8:]) as reader:
        whole = int(reader.schema.metadata[b"size"])
        table = reader.read_all()
    if whole > size:
        return None
    return whole, list(zip(*(column.to_pylist() for column in table.columns), strict=True))


_MOST_MAPS: Final = 8
"""Segments that stay mapped when no reader holds them."""
_STAGE_BYTES: Final = 8 * 2**20


class AlignedBuffer:
    """Page-aligned memory, as writing past the page cache needs it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _STAGE_BYTES)
        self._bytes = np.frombuffer(self._memory, np.uint8)

    def fill(self, parts: Sequence[Any]) -> Iterator[memoryview]:
        """The parts one after the other, in pieces of the size of the buffer."""
        filled = 0
        for part in parts:
            rest = np.frombuffer(part, np.uint8)
            while len(rest):
                taken = min(len(rest), _STAGE_BYTES - filled)
                self._bytes[filled : filled + taken] = rest[:taken]
                filled, rest = filled + taken, rest[taken:]
                if filled == _STAGE_BYTES:
                    yield memoryview(self._memory)
                    filled = 0
        if filled:
            yield memoryview(self._memory)[:filled]


class SegmentWriter:
    """The end of the log: a file that only grows; `size` counts what was written to it.

    `most` bytes are preallocated as zeros, and rows bypass the page cache where the file system allows it:
    on ext4 this made 400 MB durable 1.3 times, and a gigabyte 3 times as fast as through the cache. This is
    why every write is of whole blocks.
    """

    def __init__(self, path: Path, size: int, most: int, stage: AlignedBuffer) -> None:
        self._path = path
        self._stage = stage
        self.size = size
        with durable.writing(path, Purpose.GATE_SEGMENT):
            self._file = _open(path)
            with suppress(OSError):
                os.posix_fallocate(self._file, size, max(most - size, 1))

    def write(self, parts: Sequence[Any]) -> None:
        """Write all parts, one after the other; together they are whole blocks."""
        for whole in self._stage.fill(parts):
            with durable.writing(self._path, Purpose.GATE_GROUP):
                rest = whole
                while rest:
                    written = os.pwrite(self._file, rest, self.size)
                    self.size += written
                    rest = rest[written:]

    def sync(self) -> None:
        """Return when all that was written is on disk."""
        durable.sync_handle(self._file, self._path, Purpose.GATE_GROUP)

    def cut(self, size: int) -> None:
        """Cut off what was written after `size`."""
        durable.cut(self._file, self._path, size, Purpose.GATE_SEGMENT)
        self.size = size
        durable.sync_handle(self._file, self._path, Purpose.GATE_SEGMENT)

    def close(self) -> None:
        """Give back the space that was not used and close the file."""
        with suppress(OSError):
            durable.cut(self._file, self._path, self.size, Purpose.GATE_SEGMENT)
        with suppress(OSError):  # everything in it that counts was synced before
            os.close(self._file)


class SegmentFiles:
    """The log files in a folder, named by their numbers, each with an index file once it is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._maps: OrderedDict[int, pa.Buffer] = OrderedDict()
        self._lock = threading.Lock()
        self._stage = AlignedBuffer()

    def path(self, number: int) -> Path:
        """The file of a segment."""
        return self.folder / f"{number:012d}.log"

    def index_path(self, number: int) -> Path:
        """The index of a closed segment."""
        return self.folder / f"{number:012d}.index"

    def numbers(self) -> list[int]:
        """The segments that are there, oldest first."""
        return sorted(int(path.stem) for path in self.folder.glob("*.log") if path.stem.isdigit())

    def size(self, number: int) -> int:
        """Bytes of a segment."""
        return self.path(number).stat().st_size

    def open(self, number: int, size: int, most: int) -> SegmentWriter:
        """Continue a segment after its first `size` bytes; the name of a new one is made durable."""
        writer = SegmentWriter(self.path(number), size, most, self._stage)
        try:
            durable.sync_folder(self.folder, Purpose.GATE_SEGMENT)
        except OSError:
            writer.close()
            raise
        return writer

    def mapped(self, number: int, least: int = 0) -> pa.Buffer:
        """A segment in memory, mapped again if fewer than `least` bytes of it were."""
        with self._lock:
            held = self._maps.pop(number, None)
            if held is None or held.size < least:
                with pa.memory_map(str(self.path(number)), "r") as file:
                    held = file.read_buffer()
            self._maps[number] = held
            if len(self._maps) > _MOST_MAPS:
                self._maps.popitem(last=False)
            return held

    def cut(self, number: int, size: int) -> None:
        """Cut a segment that is not being written to its first `size` bytes, durably."""
        self._forget(number)
        path = self.path(number)
        with path.open("r+b") as file:
            durable.cut(file.fileno(), path, size, Purpose.GATE_SEGMENT)
            durable.sync_handle(file.fileno(), path, Purpose.GATE_SEGMENT)

    def sync(self, number: int) -> None:
        """Return when a segment is on disk: after a kill its end may be in the system's cache only."""
        durable.sync(self.path(number), Purpose.GATE_SEGMENT)

    def delete(self, number: int, step: Purpose) -> None:
        """Remove a segment and its index; maps of it that readers still hold stay valid.

        The index goes first: one without its segment would speak of another segment of that number.
        """
        self._forget(number)
        durable.delete(self.index_path(number), step)
        durable.delete(self.path(number), step)

    def delete_index(self, number: int) -> None:
        """Remove an index; it costs the next start a scan."""
        durable.delete(self.index_path(number), Purpose.GATE_INDEX)

    def sync_deletions(self) -> None:
        """Return when files that were deleted cannot come back."""
        durable.sync_folder(self.folder, Purpose.GATE_RETENTION)

    def _forget(self, number: int) -> None:
        with self._lock:
            self._maps.pop(number, None)


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_DIRECT, 0o640)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # This file system cannot bypass its cache.
        return os.open(path, flags, 0o640)
