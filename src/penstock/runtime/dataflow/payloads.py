"""Rows on their way through an exchange: Arrow buffers with a header, and the inbox that collects them.

The blocks of a shuffle arrive in any order. A header says which task sent a payload and as what number, so a
channel takes payloads in one order, whatever order they arrive in: sums of floats keep their bits. It also
says which attempt of the task sent it: two channels must not take rows from different attempts.
"""

import mmap
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from penstock.columns import TIME

__all__ = ["MOST_BYTES", "Inbox", "Payload", "TaskId", "new_task", "once"]

MOST_BYTES: Final = 16 * 2**20
"""The most bytes of rows in one payload, about."""

_HELD: Final = 64 * 2**20
"""The bytes that an inbox holds in memory; what comes after them is on the local disk."""

_SAME: Final = b"_ps_same"
_HEADER: Final = struct.Struct("<HIHB?HII8s")
_FRONT: Final = 64
"""The room for the header: Arrow reads numbers in place, so they lie at multiples of it."""


@dataclass(frozen=True)
class TaskId:
    """An attempt of a task: its level and number, and a mark that no other attempt has."""

    level: int
    number: int
    attempt: str

    @property
    def place(self) -> tuple[int, int]:
        """The task, whatever the attempt."""
        return self.level, self.number


def new_task(level: int, number: int) -> TaskId:
    """A new attempt of a task."""
    return TaskId(level, number, uuid4().hex[:8])


@dataclass(frozen=True)
class Payload:
    """Rows for a port of a channel, as partials if they are `formed`; the `number`-th of a task.

    On the first of two hops they go to a channel that forms partials for others.
    """

    stage: int
    channel: int
    port: int
    formed: bool
    hop: int
    task: TaskId
    number: int
    framed: Any = field(repr=False)

    @classmethod
    def of(cls, rows: Any, **fields: Any) -> "Payload":
        """Rows as a payload, written once into memory of the right size, behind their header."""
        sizing = pa.MockOutputStream()
        _write(sizing, rows)
        framed = pa.allocate_buffer(_FRONT + sizing.size())
        found = cls(**fields, framed=memoryview(framed))
        task = found.task
        head = _HEADER.pack(
            found.stage, found.channel, found.port, found.hop, found.formed, task.level, task.number,
            found.number, task.attempt.encode(),
        )  # fmt: skip
        with pa.FixedSizeBufferWriter(framed) as sink:
            sink.write(head.ljust(_FRONT, b"\0"))
            _write(sink, rows)
        return found

    def to_bytes(self) -> Any:
        """Header and rows, in place."""
        return self.framed

    @classmethod
    def from_bytes(cls, data: Any) -> "Payload":
        """The payload in a buffer; its rows stay there."""
        view = memoryview(data)
        stage, channel, port, hop, formed, level, task, number, attempt = _HEADER.unpack_from(view)
        sender = TaskId(level, task, attempt.decode())
        return cls(stage, channel, port, formed, hop, sender, number, view)

    @property
    def data(self) -> Any:
        """The rows as they were sent."""
        return self.framed[_FRONT:]

    def rows(self) -> Any:
        """The rows, in place."""
        return _whole(pa.ipc.open_stream(pa.py_buffer(self.data)).read_all())


def _write(sink: Any, rows: Any) -> None:
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)


def once(table: Any) -> Any:
    """Without columns that are the event time under another name: they lie in the same memory.

    A stream's own column of time is such a one, as long as nothing was computed with it. The schema tells the
    reader what was left out.
    """
    if TIME not in table.column_names:
        return table
    same = [name for name in table.column_names if name != TIME and _shared(table[name], table[TIME])]
    if not same:
        return table
    left_out = {_SAME: table.schema.serialize().to_pybytes()}
    return table.drop_columns(same).replace_schema_metadata(left_out)


def _shared(column: Any, times: Any) -> bool:
    """Whether a column of times is the event time, chunk by chunk."""
    if not pa.types.is_timestamp(column.type) or column.type.unit != "us":
        return False
    if column.null_count or column.num_chunks != times.num_chunks:
        return False
    return all(map(_in_one_place, column.chunks, times.chunks))


def _in_one_place(one: Any, other: Any) -> bool:
    places = [(each.buffers()[1].address, each.offset, len(each)) for each in (one, other) if len(each)]
    return len({*places}) == 1 and len(places) != 1


def _whole(rows: Any) -> Any:
    """The rows with what `once` left out."""
    left_out = (rows.schema.metadata or {}).get(_SAME)
    if left_out is None:
        return rows
    schema = pa.ipc.read_schema(pa.py_buffer(left_out))
    sent = {*rows.column_names}
    columns = [rows[each.name] if each.name in sent else rows[TIME].cast(each.type) for each in schema]
    return pa.Table.from_arrays(columns, schema=schema)


class Inbox:
    """The payloads of one task: in memory at first, and on the local disk if they are many."""

    def __init__(self) -> None:
        self._held: list[Payload] = []
        self._size = 0
        self._file: Any = None
        self._spilled: list[tuple[int, int]] = []
        self.consumed: dict[tuple[int, int], str] = {}

    def add(self, payload: Payload) -> None:
        """Take a payload."""
        self.consumed[payload.task.place] = payload.task.attempt
        if self._size + len(payload.data) <= _HELD:
            self._held.append(payload)
            self._size += len(payload.data)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- it lives as long as the inbox
        data = payload.to_bytes()
        begin = -(-self._file.tell() // _FRONT) * _FRONT
        self._file.seek(begin)
        self._file.write(data)
        self._spilled.append((begin, len(data)))

    def payloads(self) -> Iterator[Payload]:
        """All payloads in the order of their tasks."""
        every = [*self._held, *self._mapped()]
        yield from sorted(every, key=lambda each: (each.task.place, each.number))

    def _mapped(self) -> Iterator[Payload]:
        if self._file is None:
            return
        self._file.flush()
        view = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        for begin, size in self._spilled:
            yield Payload.from_bytes(view[begin : begin + size])
