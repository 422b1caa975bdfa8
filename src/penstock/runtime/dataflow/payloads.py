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

__all__ = ["MOST_BYTES", "Inbox", "Payload", "TaskId", "new_task"]

MOST_BYTES: Final = 16 * 2**20
"""The most bytes of rows in one payload, about."""

_HELD: Final = 64 * 2**20
"""The bytes that an inbox holds in memory; what comes after them is on the local disk."""

_HEADER: Final = struct.Struct("<HIHB?HI8s")


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
    data: Any = field(repr=False)

    @classmethod
    def of(cls, rows: Any, **fields: Any) -> "Payload":
        """Rows as a payload."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return cls(**fields, data=sink.getvalue())

    def to_bytes(self) -> bytes:
        """Header and rows."""
        task = self.task
        head = _HEADER.pack(
            self.stage, self.channel, self.port, self.hop, self.formed, task.level, task.number,
            task.attempt.encode(),
        )  # fmt: skip
        return b"".join([head, struct.pack("<I", self.number), memoryview(self.data)])

    @classmethod
    def from_bytes(cls, data: Any) -> "Payload":
        """The payload in a buffer; its rows stay there."""
        view = memoryview(data)
        stage, channel, port, hop, formed, level, task, attempt = _HEADER.unpack_from(view)
        (number,) = struct.unpack_from("<I", view, _HEADER.size)
        sender = TaskId(level, task, attempt.decode())
        return cls(stage, channel, port, formed, hop, sender, number, view[_HEADER.size + 4 :])

    def rows(self) -> Any:
        """The rows, in place."""
        return pa.ipc.open_stream(pa.py_buffer(self.data)).read_all()


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
        # Arrow reads numbers in place, so they have to lie where they lay before.
        begin = -(-self._file.tell() // 64) * 64 + 64 - (_HEADER.size + 4)
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
