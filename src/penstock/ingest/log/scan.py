"""Reading a log file from its start: every valid record, what was torn off its end, and what is damaged.

A broken record was either **torn** (its group was being written when the process or the power ended, so
nobody heard of it: it is cut off) or **damaged** (it had been acknowledged, and its bytes have changed since:
it must be told). Three things tell them apart, from the surest on:

1. A later record says that everything before its own group was durable: what is broken there is damaged.
   The same holds for all of a file after which another one was begun, and for what lies before the end that
   `AcknowledgedEnd` noted: that covers the last group, except just after a loss of power.
2. Otherwise the broken record is in the last group, of which nothing says that it was acknowledged. A write
   that did not finish leaves sectors that the disk never got: the file is too short there, or has the zeros
   of preallocated space. If a broken record of this group has such a stretch, the group was torn. Rows that
   have a sector of zeros by nature look the same: a group that lost power in the moment before its end was
   noted *and* was damaged may be cut off as torn. The number of bytes is told at the start.
3. A broken record of which every sector was written was complete once, so it is damage **in doubt**: that it
   was acknowledged is likely, but not sure. A gate does not start with it before someone accepts the loss.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.ingest.log.record import ALIGNMENT, MAGIC, RecordHeader, checksum, parse_header

__all__ = ["Damage", "Scan", "scan"]

_CHUNK: Final = 1 << 20
_SECTOR: Final = 512
"""The least that a disk writes or does not write."""
_LEAST_HEADER: Final = 2 * ALIGNMENT


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a segment that are damaged, and the header, if it can still be read.

    `doubt`: nothing says that they had been acknowledged, and nothing that they had not.
    """

    segment: int
    offset: int
    length: int
    header: RecordHeader | None
    doubt: bool = False

    @property
    def bounded(self) -> bool:
        """Whether it is sure which rows are lost, so that the others can be served."""
        return self.header is not None and not self.doubt

    def __str__(self) -> str:
        what = "rows of an unknown stream"
        if self.header:
            first = self.header.sequence
            what = f"rows {first} to {first + self.header.rows} of stream {self.header.stream!r}"
        doubt = ", perhaps never acknowledged" if self.doubt else ""
        return f"segment {self.segment}, bytes {self.offset} to {self.offset + self.length}: {what}{doubt}"


@dataclass(frozen=True, slots=True)
class Scan:
    """What a segment holds: valid records with their offsets, damage, and where the valid part ends."""

    records: tuple[tuple[int, RecordHeader], ...]
    damage: tuple[Damage, ...]
    end: int
    torn: int


@dataclass(frozen=True, slots=True)
class _Broken:
    start: int
    end: int
    header: RecordHeader | None


def scan(segment: int, content: pa.Buffer, acknowledged: int = 0, *, closed: bool = False) -> Scan:
    """Read and check every record; linear in the bytes.

    Everything before `acknowledged` is known to have been acknowledged; in a `closed` segment, everything.
    """
    view = memoryview(content)
    records: list[tuple[int, RecordHeader]] = []
    broken: list[_Broken] = []
    at, used, synced = 0, _used(view), acknowledged
    while at < used:
        header = parse_header(view, at)
        if header and _valid(view, at, header):
            records.append((at, header))
            synced = max(synced, header.synced)
            at += header.stride
        else:
            following = at + header.stride if header else _next_record(view, at + ALIGNMENT)
            broken.append(_Broken(at, following if header else min(following, used), header))
            at = following
    synced = max(synced, used) if closed else synced
    if at < synced:
        broken.append(_Broken(at, synced, None))
    last = [each for each in broken if each.start >= synced]
    torn = last[0].start if any(_torn(view, each) for each in last) else None
    kept = [each for each in broken if torn is None or each.start < torn]
    return Scan(
        records=tuple((offset, header) for offset, header in records if torn is None or offset < torn),
        damage=tuple(
            Damage(segment, each.start, each.end - each.start, each.header, doubt=each.start >= synced)
            for each in kept
        ),
        end=max(at, synced) if torn is None else torn,
        torn=0 if torn is None else max(used - torn, 0),
    )


def _valid(view: memoryview, at: int, header: RecordHeader) -> bool:
    start = at + header.size
    return (
        start + header.length <= len(view) and checksum(view[start : start + header.length]) == header.total
    )


def _torn(view: memoryview, broken: _Broken) -> bool:
    """Whether a part of a broken record was never written."""
    if broken.header is None:
        # No valid header has 64 zeros where it begins.
        halves = range(broken.start, broken.start + _LEAST_HEADER, ALIGNMENT)
        return any(_unwritten(view, start, start + ALIGNMENT) for start in halves)
    start = broken.start + broken.header.size
    end = start + broken.header.length
    edges = [start, *range(start - start % _SECTOR + _SECTOR, end, _SECTOR), end]
    return any(_unwritten(view, low, high) for low, high in pairwise(edges))


def _unwritten(view: memoryview, start: int, end: int) -> bool:
    return end > len(view) or not any(view[start:end])


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
