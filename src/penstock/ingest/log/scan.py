"""Reading a log file from its start: every valid record, what was torn off its end, and what is damaged."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.ingest.log.record import ALIGNMENT, MAGIC, RecordHeader, checksum, parse_header

__all__ = ["Damage", "Scan", "scan"]

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a segment that had been durable and are damaged; the header, if it can still be read."""

    segment: int
    offset: int
    length: int
    header: RecordHeader | None

    def __str__(self) -> str:
        what = "rows of an unknown stream"
        if self.header:
            first = self.header.sequence
            what = f"rows {first} to {first + self.header.rows} of stream {self.header.stream!r}"
        return f"segment {self.segment}, bytes {self.offset} to {self.offset + self.length}: {what}"


@dataclass(frozen=True, slots=True)
class Scan:
    """What a segment holds: valid records with their offsets, damage, and where the valid part ends."""

    records: tuple[tuple[int, RecordHeader], ...]
    damage: tuple[Damage, ...]
    end: int
    torn: int


def scan(segment: int, content: pa.Buffer) -> Scan:
    """Read and check every record; linear in the bytes.

    A broken record is damage only if a later one says that it had been durable; otherwise it was never
    acknowledged, and the file ends before it.
    """
    view = memoryview(content)
    records: list[tuple[int, RecordHeader]] = []
    broken: list[tuple[int, int, RecordHeader | None]] = []
    synced = 0
    at, used = 0, _used(view)
    while at < used:
        header = parse_header(view, at)
        if header and _valid(view, at, header):
            records.append((at, header))
            synced = max(synced, header.synced)
            at += header.stride
        else:
            following = at + header.stride if header else _next_record(view, at + ALIGNMENT)
            broken.append((at, min(following, len(view)), header))
            at = following
    torn = next((start for start, _, _ in broken if start >= synced), at)
    return Scan(
        records=tuple((offset, header) for offset, header in records if offset < torn),
        damage=tuple(Damage(segment, at, to - at, header) for at, to, header in broken if at < synced),
        end=torn,
        torn=max(used - torn, 0),
    )


def _valid(view: memoryview, at: int, header: RecordHeader) -> bool:
    start = at + header.size
    return (
        start + header.length <= len(view) and checksum(view[start : start + header.length]) == header.total
    )


def _used(view: memoryview) -> int:
    """Bytes before the zeros at the end, which are preallocated space."""
    for start in range(len(view) // _CHUNK * _CHUNK, -1, -_CHUNK):
        found = np.flatnonzero(np.frombuffer(view[start : start + _CHUNK], np.uint8))
        if len(found):
            return start + int(found[-1]) + 1
    return 0


def _next_record(view: memoryview, at: int) -> int:
    for place in _places(view, at):
        if parse_header(view, place):
            return place
    return len(view)


def _places(view: memoryview, at: int) -> Iterator[int]:
    for place in range(at, len(view), ALIGNMENT):
        if bytes(view[place : place + 4]) == MAGIC:
            yield place
