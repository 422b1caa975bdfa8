"""Segments: immutable Arrow files that hold the state of one channel.

A segment of windows has the key columns, `_ps_pane` (the first pane a row covers) and the columns of
every partial; all its rows cover the same number of panes. A segment of a join has the rows that one side
sent, in the order of their times, or marks of such rows. It is written once under a name that no other
attempt can have, described by a receipt, and read in place by memory map.
"""

from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import DamagedCheckpoint, MissingSegment
from penstock.runtime.storage import Location

__all__ = ["PANE", "Segment", "read", "store", "write"]

PANE = "_ps_pane"


@dataclass(frozen=True)
class Segment:
    """The receipt of a segment: its name, how many panes a row covers, the panes it spans, its size.

    Of a join, `first` and `end` bound the times of its rows, and `part` says whose they are.
    """

    name: str
    length: int
    first: int
    end: int
    rows: int
    bytes: int
    part: str = ""

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


def read(folder: Location, segment: Segment) -> Any:
    """The table of a segment, memory-mapped; an error names the file that is missing or damaged."""
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
