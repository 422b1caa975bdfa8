"""Segments: immutable Arrow files that hold the state of one channel, and masks over them.

A segment is written once, under a name that no other attempt can have, described by a receipt, and read in
place by memory map. The receipt has a checksum of the file, which a process compares when it reads the file
for the first time. When keys move to another channel, the file does not change: a small mask says which of
its rows still live here, and reads return only those.
"""

import zlib
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from penstock.durable import Purpose
from penstock.errors import DamagedCheckpoint, MissingSegment
from penstock.state.storage import Location

__all__ = ["ChannelStore", "Mask", "Segment", "masked", "read", "store"]

Mask = NDArray[np.bool_]

_CHECKSUM = 4  # bytes

# Segments that this process has compared with their checksums, in the order in which it did.
_verified: dict[tuple[str, str], None] = {}
_MOST_VERIFIED = 100_000


@dataclass(frozen=True)
class Segment:
    """The receipt of a segment.

    - `name` of its file.
    - `table`: the name of the state table that it belongs to.
    - `first`, `end`: bounds of its rows, `first` included, in the order of its table: event times in a
      TimeTable, timers in a VersionTable, panes in a PaneTable.
    - `rows`: the number of live rows. With a `mask`, the file has `held` rows in all.
    - `bytes` of its file, without the mask, and their `checksum`.
    - `level`: 0 for base rows. Above 0 the rows are derived from lower levels and can be formed again; in a
      PaneTable it is the number of panes that a row covers. Below 0 the rows describe base rows of other
      segments and are not state themselves.
    """

    name: str
    table: str
    first: int
    end: int
    rows: int
    bytes: int
    level: int = 0
    mask: str = ""
    held: int = 0
    checksum: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The names of its files."""
        return (self.name, self.mask) if self.mask else (self.name,)

    @property
    def state_rows(self) -> int:
        """The number of its rows that are state."""
        return self.rows if self.level >= 0 else 0

    @property
    def living_bytes(self) -> float:
        """The share of its size that its live rows have."""
        return self.bytes * self.rows / self.held if self.mask else float(self.bytes)

    def to_json(self) -> dict[str, Any]:
        """Plain values; `Segment(**values)` restores the segment."""
        return asdict(self)


def store(  # noqa: PLR0913 -- the parts of the receipt
    folder: Location, label: str, rows: Any, *, table: str, first: int, end: int, level: int = 0
) -> Segment:
    """Write rows as a new segment of a table, within the given bounds."""
    name = f"{label}-{uuid4().hex[:12]}.arrow"
    with folder.output(name, Purpose.SEGMENT) as stream:
        hashing = _Hashing(stream)
        with pa.PythonFile(hashing, mode="w") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
    folder.sync(name, Purpose.SEGMENT)
    return Segment(name, table, first, end, rows.num_rows, hashing.size, level, checksum=hashing.digest)


class _Hashing:
    """A file that is written and hashed in one pass."""

    def __init__(self, stream: Any) -> None:
        self.state = xxhash.xxh3_64()
        self.size = 0
        self.closed = False
        self._stream = stream

    @property
    def digest(self) -> str:
        """The checksum of everything so far."""
        found: str = self.state.hexdigest()
        return found

    def write(self, data: Any) -> int:
        """Write and hash some bytes."""
        self.state.update(data)
        self._stream.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        """The number of bytes so far."""
        return self.size

    def flush(self) -> None:
        """The stream below is flushed when it is closed."""

    def close(self) -> None:
        """The stream below is closed by its owner."""
        self.closed = True


def masked(folder: Location, segment: Segment, stays: Mask) -> Segment:
    """The same segment with only the live rows that stay; no file changes, a mask is added."""
    assert len(stays) == segment.rows
    if segment.mask:
        before = _read_mask(folder, segment)
        before[before] = stays
        stays = before
    name = f"{segment.name.removesuffix('.arrow')}-{uuid4().hex[:12]}.mask"
    bits = np.packbits(stays).tobytes()
    with folder.output(name, Purpose.MASK) as stream:
        stream.write(zlib.crc32(bits).to_bytes(_CHECKSUM, "little") + bits)
    folder.sync(name, Purpose.MASK)
    return replace(segment, rows=int(np.count_nonzero(stays)), mask=name, held=len(stays))


def read(folder: Location, segment: Segment) -> Any:
    """The live rows of a segment; an error names the file that is missing or damaged.

    The file is memory-mapped; with a mask the live rows are copied.
    """
    table = _opened(folder, segment)
    return table.filter(pa.array(_read_mask(folder, segment))) if segment.mask else table


@dataclass(frozen=True)
class ChannelStore:
    """What a table opens in a channel: the folder, the naming of new files, and the present segments.

    `segments` are those of all tables of the channel; a table selects its own by name.
    """

    folder: Location
    label: str
    segments: tuple[Segment, ...] = ()

    def of(self, table: str) -> tuple[Segment, ...]:
        """The segments of a table, oldest first."""
        return tuple(each for each in self.segments if each.table == table)

    def read(self, segment: Segment) -> Any:
        """The live rows of a segment."""
        return read(self.folder, segment)

    def store(self, rows: Any, *, table: str, first: int, end: int, level: int = 0) -> Segment:
        """Write rows as a new segment of a table; it is not added to `segments`."""
        suffix = f"-{level}" if level > 0 else ""
        label = f"{self.label}-{table}{suffix}"
        return store(self.folder, label, rows, table=table, first=first, end=end, level=level)


def _opened(folder: Location, segment: Segment) -> Any:
    where = f"{folder.uri}/{segment.name}"
    size = folder.size(segment.name)
    if size is None:
        raise MissingSegment(
            f"the manifest names segment {where}, but it does not exist; restore it from a backup, "
            "or start with a new checkpoint to compute from the source again"
        )
    if size != segment.bytes:
        raise DamagedCheckpoint(
            f"segment {where} has {size} bytes, but the manifest says {segment.bytes}; restore it from a "
            "backup, or start with a new checkpoint"
        )
    try:
        file = folder.input(segment.name)
        _verify(file, where, segment)
        table = pa.ipc.open_file(file).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise DamagedCheckpoint(
            f"segment {where} cannot be read: {error}; restore it from a backup"
        ) from error
    expected = segment.held if segment.mask else segment.rows
    if table.num_rows != expected:
        raise DamagedCheckpoint(
            f"segment {where} has {table.num_rows} rows, but the manifest says {expected}; restore it from a "
            "backup, or start with a new checkpoint"
        )
    return table


def _verify(file: Any, where: str, segment: Segment) -> None:
    """Compare the checksum of a file, once in the life of a process: later reads are of the same pages."""
    if (where, segment.checksum) in _verified:
        return
    found = xxhash.xxh3_64_hexdigest(file.read_buffer())
    file.seek(0)
    if found != segment.checksum:
        raise DamagedCheckpoint(
            f"segment {where} is altered: its checksum is {found}, but the manifest says {segment.checksum}; "
            "restore it from a backup, go back with start(from_epoch=…), or start with a new checkpoint"
        )
    _verified[where, segment.checksum] = None
    while len(_verified) > _MOST_VERIFIED:
        del _verified[next(iter(_verified))]


def _read_mask(folder: Location, segment: Segment) -> Mask:
    """Which rows of the file are live: one bit each, after a checksum."""
    data = folder.read(segment.mask) if folder.has(segment.mask) else b""
    checksum, bits = data[:_CHECKSUM], data[_CHECKSUM:]
    if zlib.crc32(bits).to_bytes(_CHECKSUM, "little") != checksum or len(bits) != -(-segment.held // 8):
        raise DamagedCheckpoint(
            f"mask {folder.uri}/{segment.mask} of {segment.held} rows is missing or altered "
            f"({len(data)} bytes); restore it from a backup, or start with a new checkpoint"
        )
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=segment.held).astype(np.bool_)
