"""Segments: immutable Arrow files that hold the state of channels, and the views that channels have of them.

A segment is written once, under a name that no other attempt can have, described by a receipt, and read in
place by memory map. The receipt has a checksum of the file, which a process compares when it reads the file
for the first time. When keys move to another channel, the file does not change: each channel that may have
rows of it gets a receipt with a view (see `views`), and a read finds the rows that are its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import xxhash

from penstock.columns import CELL
from penstock.durable import Purpose
from penstock.errors import DamagedCheckpoint, MissingSegment
from penstock.routing.arrays import cells_of
from penstock.routing.spark_hash import spark_hash
from penstock.state.placing import Mask, Numbers
from penstock.state.storage import Location
from penstock.state.views import View, living

__all__ = ["ChannelStore", "Held", "Mask", "Segment", "opened", "read", "store"]

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
    - `rows`: the number of live rows, an estimate if it is not `exact`.
    - `bytes` of its file, the number of rows `held` in it, and its `checksum`.
    - `level`: 0 for base rows. Above 0 the rows are derived from lower levels and can be formed again; in a
      PaneTable it is the number of panes that a row covers. Below 0 the rows describe base rows of other
      segments and are not state themselves.
    - `views`: how it came to this channel, oldest first. The channel has read it through the first `seen`.
    - `start`: the first row of the file that is not yet rewritten elsewhere.
    """

    name: str
    table: str
    first: int
    end: int
    rows: int
    bytes: int
    level: int = 0
    held: int = 0
    checksum: str = ""
    views: tuple[View, ...] = ()
    seen: int = 0
    start: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """The names of its files."""
        return (self.name, *(view.rule for view in self.views))

    @property
    def exact(self) -> bool:
        """Whether its channel has counted its rows since the last move."""
        return self.seen == len(self.views)

    @property
    def state_rows(self) -> int:
        """The number of its rows that are state."""
        return self.rows if self.level >= 0 else 0

    @property
    def living_bytes(self) -> float:
        """The share of its size that its live rows have."""
        return self.bytes * self.rows / self.held if self.held else float(self.bytes)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Segment":
        """The segment from its plain values."""
        return cls(**{**value, "views": tuple(View(**each) for each in value["views"])})


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
    count = rows.num_rows
    return Segment(name, table, first, end, count, hashing.size, level, count, hashing.digest)


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


@dataclass(frozen=True, eq=False)
class Held:
    """A segment as its channel sees it: the rows of the file from its start on, and which are its own.

    The rows are memory-mapped. Views are evaluated for the rows that are asked for, and nothing is copied
    before somebody asks for rows of the channel alone.
    """

    folder: Location
    segment: Segment
    file: Any
    _parts: dict[tuple[int, int], Mask | None] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def table(self) -> Any:
        """The rows, whoever owns them."""
        rows = self.file.drop_columns([CELL]) if CELL in self.file.column_names else self.file
        return rows.slice(self.segment.start) if self.segment.start else rows

    @cached_property
    def own(self) -> Mask | None:
        """Which rows belong to the channel, None if all do."""
        return self._through(self.segment.views)

    @cached_property
    def seen(self) -> Mask | None:
        """Which rows belonged to the channel that has last written marks of them, None if all did."""
        return self._through(self.segment.views[: self.segment.seen])

    @cached_property
    def live(self) -> Any:
        """The rows of the channel; a copy if others are among them."""
        return self.table if self.own is None else self.table.filter(pa.array(self.own))

    @property
    def rows(self) -> int | None:
        """The number of rows of the channel, None as long as it has not asked for all of them."""
        if self.segment.views and "own" not in self.__dict__:
            return None
        return int(self.table.num_rows if self.own is None else np.count_nonzero(self.own))

    def owns(self, at: Numbers) -> Mask:
        """Which of the rows at these positions belong to the channel."""
        if not self.segment.views:
            return np.ones(len(at), np.bool_)
        found = self._living(at + self.segment.start)
        assert found is not None
        return found

    def part(self, start: int, stop: int) -> Mask | None:
        """Which of the rows in a range of positions belong to the channel, None if all do.

        If it is most of them, all are looked at, since the answer is remembered.
        """
        most = 2 * (stop - start) > self.table.num_rows
        if most or "own" in self.__dict__ or not self.segment.views:
            return None if self.own is None else self.own[start:stop]
        if (start, stop) not in self._parts:
            self._parts[start, stop] = self._living(np.arange(start, stop) + self.segment.start)
        return self._parts[start, stop]

    def first(self, count: int) -> Any:
        """The rows of the channel among the first ones."""
        rows, own = self.table.slice(0, count), self.part(0, count)
        return rows if own is None else rows.filter(pa.array(own))

    def _through(self, views: tuple[View, ...]) -> Mask | None:
        found = living(self.folder, self.segment.name, self.file, views)
        return None if found is None else found[self.segment.start :]

    def _living(self, numbers: Numbers) -> Mask | None:
        return living(self.folder, self.segment.name, self.file, self.segment.views, numbers)


def opened(folder: Location, segment: Segment) -> Held:
    """A segment to read from; an error names the file that is missing or damaged."""
    return Held(folder, segment, _opened(folder, segment))


def read(folder: Location, segment: Segment) -> Any:
    """The live rows of a segment."""
    return opened(folder, segment).live


@dataclass(frozen=True)
class ChannelStore:
    """What a table opens in a channel: the folder, the naming of new files, and the present segments.

    `segments` are those of all tables of the channel; a table selects its own by name.
    """

    folder: Location
    label: str
    segments: tuple[Segment, ...] = ()
    _open: dict[tuple[Any, ...], Held] = field(default_factory=dict, init=False, compare=False, repr=False)

    def of(self, table: str) -> tuple[Segment, ...]:
        """The segments of a table, oldest first."""
        return tuple(each for each in self.segments if each.table == table)

    def open(self, segment: Segment) -> Held:
        """A segment, opened once in an epoch."""
        key = _read_as(segment)
        if key not in self._open:
            self._open[key] = opened(self.folder, segment)
        return self._open[key]

    def read(self, segment: Segment) -> Any:
        """The live rows of a segment."""
        return self.open(segment).live

    def counted(self, segment: Segment) -> Segment:
        """The segment with the exact number of its rows, if all were read since it moved."""
        held = self._open.get(_read_as(segment))
        if held is None or held.rows is None or segment.exact:
            return segment
        return replace(segment, rows=held.rows, seen=len(segment.views))

    def rest(self, segment: Segment, count: int) -> list[Segment]:
        """What is left of a segment when so many rows of its file are rewritten; often nothing."""
        if count >= segment.held - segment.start:
            return []
        segment = self.counted(segment)
        own = self.open(segment).part(0, count)
        rows = segment.rows - (count if own is None else int(np.count_nonzero(own)))
        # Of nodes, those of some panes count and the others do not.
        rows = rows if segment.exact and segment.level <= 0 else max(1, rows)
        return [replace(segment, rows=rows, start=segment.start + count)] if rows else []

    def store(  # noqa: PLR0913 -- the parts of the receipt
        self, rows: Any, *, table: str, first: int, end: int, level: int = 0, keys: Sequence[str] = ()
    ) -> Segment:
        """Write rows as a new segment of a table, with the cells of these keys; `segments` stays as it is."""
        suffix = f"-{level}" if level > 0 else ""
        label = f"{self.label}-{table}{suffix}"
        if keys:
            cells = cells_of(spark_hash([rows[name] for name in keys], rows.num_rows))
            rows = rows.append_column(CELL, pa.array(cells))
        return store(self.folder, label, rows, table=table, first=first, end=end, level=level)


def _read_as(segment: Segment) -> tuple[Any, ...]:
    """What a read of a segment depends on."""
    return segment.name, segment.views, segment.start


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
    if table.num_rows != segment.held:
        raise DamagedCheckpoint(
            f"segment {where} has {table.num_rows} rows, but the manifest says {segment.held}; restore it "
            "from a backup, or start with a new checkpoint"
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
