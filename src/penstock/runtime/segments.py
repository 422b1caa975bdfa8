"""Segments: immutable Arrow files that hold the state of one channel.

A segment of windows has the key columns, `_ps_pane` (the first pane a row covers) and the columns of
every partial; all its rows cover the same number of panes. A segment of a join has the rows that one side
sent, in the order of their times, or marks of such rows. It is written once under a name that no other
attempt can have, described by a receipt, and read in place by memory map.

Where keys have moved to another channel, the file stays as it is; a small mask beside it says which of its
rows still live here, and reading gives those alone.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import DamagedCheckpoint, MissingSegment
from penstock.runtime.masks import read_mask, write_mask
from penstock.runtime.storage import Location

__all__ = ["PANE", "Segment", "masked", "read", "store", "write"]

PANE = "_ps_pane"


@dataclass(frozen=True)
class Segment:
    """The receipt of a segment: its name, how many panes a row covers, the panes it spans, its size.

    Of a join, `first` and `end` bound the times of its rows, and `part` says whose they are. `rows` are
    those that live; with a `mask`, the file has `held` rows in all.
    """

    name: str
    length: int
    first: int
    end: int
    rows: int
    bytes: int
    part: str = ""
    mask: str = ""
    held: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """The names of its files."""
        return (self.name, self.mask) if self.mask else (self.name,)

    @property
    def living_bytes(self) -> float:
        """The share of its size that its living rows have."""
        return self.bytes * self.rows / self.held if self.mask else float(self.bytes)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def write(folder: Location, label: str, length: int, table: Any) -> Segment:
    """Write a table of partials as a new segment."""
    panes = pc.min_max(table[PANE])
    return store(
        folder, label, table, first=panes["min"].as_py(), end=panes["max"].as_py() + length, length=length
    )


def store(  # noqa: PLR0913 -- the parts of the receipt
    folder: Location, label: str, table: Any, *, first: int, end: int, length: int = 0, part: str = ""
) -> Segment:
    """Write a table as a new segment that spans the given bounds."""
    name = f"{label}-{uuid4().hex[:12]}.arrow"
    with folder.output(name) as stream, pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
        # The footer is written on close, so the size is only known after it.
    folder.sync(name)
    size = folder.size(name)
    assert size is not None
    return Segment(name, length, first, end, table.num_rows, size, part)


def masked(folder: Location, segment: Segment, stays: NDArray[np.bool_]) -> Segment:
    """The same segment with only those of its living rows that stay; its file is not touched."""
    if segment.mask:
        before = read_mask(folder, segment.mask, segment.held)
        before[before] = stays
        stays = before
    name = write_mask(folder, segment.name, stays)
    return replace(segment, rows=int(np.count_nonzero(stays)), mask=name, held=len(stays))


def read(folder: Location, segment: Segment) -> Any:
    """The living rows of a segment; an error names the file that is missing or damaged.

    Memory-mapped; with a mask the rows that live are copied.
    """
    table = _opened(folder, segment)
    if not segment.mask:
        return table
    return table.filter(pa.array(read_mask(folder, segment.mask, segment.held)))


def _opened(folder: Location, segment: Segment) -> Any:
    where = f"{folder.uri}/{segment.name}"
    size = folder.size(segment.name)
    if size is None:
        raise MissingSegment(
            f"segment {where} is named by the manifest but is not there; restore it from a backup, "
            "or start with a new checkpoint to compute from the source again"
        )
    if size != segment.bytes:
        raise DamagedCheckpoint(
            f"segment {where} has {size} bytes, the manifest says {segment.bytes}; restore it from a backup, "
            "or start with a new checkpoint"
        )
    try:
        return pa.ipc.open_file(folder.input(segment.name)).read_all()
    except pa.ArrowInvalid as error:
        raise DamagedCheckpoint(
            f"segment {where} cannot be read: {error}; restore it from a backup"
        ) from error
