"""One record of a gate's log: a header that names and checks the rows, then the rows as Arrow wrote them.

The header says which part of its segment was durable before it was written. So a reader that meets a broken
record knows whether it had been acknowledged: only if a later record says so.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

import xxhash

__all__ = [
    "ALIGNMENT",
    "BLOCK",
    "RecordHeader",
    "checksum",
    "header_size",
    "padded",
    "parse_header",
    "write_header",
]

MAGIC: Final = b"PSR1"
ALIGNMENT: Final = 64
"""Arrow reads in place what begins at a multiple of this; a broken log is searched in steps of it."""
BLOCK: Final = 4096
"""Groups of records begin at multiples of this, so that they can be written past the system's page cache."""
NO_FRONTIER: Final = -(2**63)
_FIXED: Final = struct.Struct("<4sIQqqqqQQI")
_SUM: Final = struct.Struct("<Q")
_PREFIX: Final = _FIXED.size + _SUM.size


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """What a record says of itself; `size` is the length of the header, `length` that of the rows."""

    stream: str
    sequence: int
    rows: int
    frontier: int | None
    arrived: int
    length: int
    total: int
    synced: int
    size: int

    @property
    def stride(self) -> int:
        """Bytes from this record to the next."""
        return self.size + padded(self.length)


def padded(length: int) -> int:
    """The next multiple of the alignment.

    >>> padded(0), padded(1), padded(64)
    (0, 64, 64)
    """
    return -length % ALIGNMENT + length


def checksum(payload: Any) -> int:
    """64 bits of XXH3: about 40 GB/s, and other threads run meanwhile."""
    return xxhash.xxh3_64_intdigest(payload)


def header_size(stream: bytes) -> int:
    """Bytes of the header of a record of a stream, without padding after it."""
    return padded(_PREFIX + len(stream))


def write_header(  # noqa: PLR0913 -- the fields of one record, by name
    *,
    stream: bytes,
    sequence: int,
    rows: int,
    frontier: int | None,
    arrived: int,
    length: int,
    total: int,
    synced: int,
    room: int = 0,
) -> bytes:
    """The header of a record whose rows take `length` bytes with the checksum `total`, after `room` zeros."""
    size = header_size(stream) + room
    promise = NO_FRONTIER if frontier is None else frontier
    fixed = _FIXED.pack(MAGIC, size, length, sequence, rows, promise, arrived, total, synced, len(stream))
    return (fixed + _SUM.pack(checksum(fixed + stream)) + stream).ljust(size, b"\0")


def parse_header(buffer: memoryview, at: int) -> RecordHeader | None:
    """The header at a position, or None if no complete and valid one is there."""
    if at + _PREFIX > len(buffer) or bytes(buffer[at : at + 4]) != MAGIC:
        return None
    _, size, length, sequence, rows, frontier, arrived, total, synced, name_size = _FIXED.unpack_from(
        buffer, at
    )
    name_at = at + _PREFIX
    name = bytes(buffer[name_at : name_at + name_size])
    (expected,) = _SUM.unpack_from(buffer, at + _FIXED.size)
    if checksum(bytes(buffer[at : at + _FIXED.size]) + name) != expected:
        return None
    promise = None if frontier == NO_FRONTIER else frontier
    return RecordHeader(name.decode(), sequence, rows, promise, arrived, length, total, synced, size)
