"""The client: rows of one stream into the system, each held until it is durable, in order and none twice.

`Client` blocks, `AsyncClient` awaits; `StreamClient` is what they share. Only opening a stream waits for the
network.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import pyarrow as pa

from penstock.errors import BadPromise, BadRows, BufferFull, ClosedClient, IngestError, NotAcknowledged
from penstock.ingest.client.connection import Connection
from penstock.ingest.client.outbox import ClientLimits
from penstock.ingest.client.rows import Rows, as_batches, pieces
from penstock.ingest.client.stream import ClientStream, Redirection
from penstock.ingest.security.access import TLS
from penstock.ingest.wire.codec import check_stream
from penstock.ingest.wire.metadata import Metadata

if TYPE_CHECKING:
    from penstock.expressions.schema import Schema

__all__ = ["AsyncClient", "Client", "SchemaLike", "StreamClient"]

SchemaLike: TypeAlias = "str | pa.Schema | Schema"
Portion: TypeAlias = list[pa.RecordBatch]
"""Rows that enter the buffer together."""

_DEFAULT = ClientLimits()


class StreamClient(ABC):
    """One stream of a client, on a connection of its own or a shared one."""

    def __init__(  # noqa: PLR0913 -- each is one setting with a default
        self,
        address: str | Connection,
        stream: str,
        schema: SchemaLike,
        metadata: Mapping[str, Any] | None = None,
        *,
        token: str | None = None,
        tls: TLS | None = None,
        sequence: int | None = None,
        resume: Literal["acknowledged"] | None = "acknowledged",
        batch_rows: int = _DEFAULT.batch_rows,
        batch_bytes: int = _DEFAULT.batch_bytes,
        batch_seconds: float = _DEFAULT.batch_seconds,
        buffer_rows: int = _DEFAULT.buffer_rows,
        buffer_bytes: int = _DEFAULT.buffer_bytes,
    ) -> None:
        if isinstance(address, Connection) and (token is not None or tls is not None):
            raise IngestError("token and tls belong to the Connection; give them there")
        if sequence is not None and sequence < 0:
            raise IngestError(f"sequence is {sequence}; give the number of the next row, 0 or more")
        if resume not in ("acknowledged", None):
            raise IngestError(f"resume is {resume!r}; give 'acknowledged', or None to start at 0")
        self._name = check_stream(stream)
        self._schema = _arrow_schema(schema)
        self._metadata = None if metadata is None else Metadata.of(metadata).given()
        self._limits = ClientLimits(batch_rows, batch_bytes, batch_seconds, buffer_rows, buffer_bytes)
        self._sequence = 0 if sequence is None and resume is None else sequence
        self._connect = partial(_connection, address, token, tls)
        self._own = not isinstance(address, Connection)
        self._opened: tuple[Connection, ClientStream] | None = None
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """What a client does when it is made."""

    @property
    def stream(self) -> str:
        """The id of the stream."""
        return self._name

    @property
    def schema(self) -> pa.Schema:
        """The schema of its rows."""
        return self._schema

    @property
    def gate(self) -> str | None:
        """The address of the gate that the stream is at or goes to; None before one is found."""
        return self._flow.gate

    @property
    def sequence(self) -> int:
        """The sequence number that the next row pushed will have."""
        return self._flow.outbox.next

    @property
    def acknowledged(self) -> int:
        """Every row with a sequence number below this is durable."""
        return self._flow.outbox.acknowledged

    @property
    def buffered_rows(self) -> int:
        """Rows pushed and not acknowledged."""
        return self._flow.outbox.rows

    @property
    def buffered_bytes(self) -> int:
        """Bytes held for them."""
        return self._flow.outbox.bytes

    @property
    def redirections(self) -> list[Redirection]:
        """What the last 1,000 redirections of the stream cost, oldest first."""
        with self._flow.changed:
            return list(self._flow.redirections.finished)

    @property
    def _connection(self) -> Connection:
        return self._required()[0]

    @property
    def _flow(self) -> ClientStream:
        return self._required()[1]

    def _required(self) -> tuple[Connection, ClientStream]:
        if self._opened is None:
            raise ClosedClient(
                f"the client of stream {self._name!r} is not open; use async with, or await open()"
            )
        return self._opened

    def _open(self) -> None:
        """Open the stream; resuming asks a gate, which takes a call over the network."""
        connection = self._connect()
        try:
            stream = connection.open_stream(
                self._name, self._schema, self._sequence, self._limits, self._metadata
            )
        except BaseException:
            if self._own:
                connection.close()
            raise
        self._opened = connection, stream

    def _close(self) -> None:
        """Let go of the stream, and of the connection if it is the client's own."""
        connection, stream = self._required()
        connection.close_stream(stream)
        if self._own:
            connection.close()

    def _parts(self, rows: Rows, timeout: float | None) -> list[Portion]:
        """The rows in parts that fit the buffer: one, unless there are more than it ever holds."""
        batches = as_batches(rows, self._schema)
        limits = self._limits
        if _rows(batches) <= limits.buffer_rows and _bytes(batches) <= limits.buffer_bytes:
            return [batches]
        parts = [[piece] for piece in pieces(batches, limits.batch_rows, limits.batch_bytes)]
        if timeout is not None and len(parts) > 1:
            raise BadRows(
                f"stream {self._name!r}: the rows make {len(parts)} batches and more than the buffer holds; "
                "with a timeout push fewer at once, or give a larger buffer"
            )
        return parts

    def _has_room(self, part: Portion) -> bool:
        """Whether a part fits now; raises what the stream failed with."""
        self._check()
        return self._flow.outbox.fits(_rows(part), _bytes(part))

    def _offer(self, part: Portion) -> None:
        for batch in part:
            self._flow.outbox.offer(batch, time.monotonic())
        self._connection.offered(self._flow)

    def _promise(self, frontier: int) -> None:
        self._check()
        if not isinstance(frontier, int) or isinstance(frontier, bool) or abs(frontier) >= 2**63:
            raise BadPromise(
                f"stream {self._name!r}: the promise is {frontier!r}; give microseconds since 1970, "
                "a whole number of 64 bits"
            )
        self._flow.outbox.promise(frontier, time.monotonic())
        self._connection.offered(self._flow)

    def _hurry(self) -> Callable[[], bool]:
        """Send everything at once; the function returned says whether all of it is acknowledged."""
        self._check()
        outbox = self._flow.outbox
        outbox.hurry()
        upto = outbox.next
        self._connection.offered(self._flow)

        def done() -> bool:
            self._check()
            return outbox.acknowledged >= upto and outbox.promise_heard

        return done

    def _check(self) -> None:
        """Raise what the stream failed with, or that it is closed."""
        if self._flow.error is not None:
            raise self._flow.error
        if self._flow.closed:
            raise ClosedClient(f"the client of stream {self._name!r} is closed; open another")

    def _no_room(self, part: Portion, timeout: float | None) -> BufferFull:
        outbox = self._flow.outbox
        return BufferFull(
            f"stream {self._name!r}: no room for {_rows(part)} rows within {timeout:g} s; "
            f"{outbox.rows} rows ({outbox.bytes} bytes) wait for acknowledgement{self._trouble()}. None of "
            "the rows was taken: push them again, slower, or give a larger buffer"
        )

    def _not_acknowledged(self, timeout: float | None) -> NotAcknowledged:
        return NotAcknowledged(
            f"stream {self._name!r}: {self._flow.outbox.rows} rows"
            f"{'' if self._flow.outbox.promise_heard else ' and a promise'} not acknowledged within "
            f"{timeout:g} s"
            f"{self._trouble()}. They are still held: flush again"
        )

    def _trouble(self) -> str:
        trouble = self._connection.trouble
        outbox = self._flow.outbox
        waits = outbox.rows or not outbox.promise_heard
        return f" ({trouble})" if trouble is not None and waits else ""


class Client(StreamClient):
    """Pushes the rows of one stream to the gate at `address`, or to the one that the controller there names.

    Rows are buffered, sent in batches and held until a gate has acknowledged them: then they are on its disk.
    When a gate dies, what it did not acknowledge is sent again; when it sends the stream elsewhere, the
    client goes there. Safe to use from several threads; rows have the order in which `push` took them.

    A new client continues after the last row that the gates hold (`resume="acknowledged"`): `sequence` then
    says which row comes next. If you can read your input again from any row, give that number instead: the
    gates recognise rows that they hold already and do not store them twice.
    """

    def _begin(self) -> None:
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client(stream={self.stream!r}, gate={self.gate!r}, sequence={self.sequence})"

    def push(self, rows: Rows, *, timeout: float | None = None) -> None:
        """Take rows in: a RecordBatch, a Table or a list of dicts.

        Waits while the buffer is full. With a `timeout` in seconds it raises BufferFull after that long, and
        then none of the rows was taken.
        """
        for part in self._parts(rows, timeout):
            with self._flow.changed:
                if not self._flow.changed.wait_for(partial(self._has_room, part), timeout):
                    raise self._no_room(part, timeout)
                self._offer(part)

    def promise(self, frontier: int) -> None:
        """Promise that no later row is before this time, in microseconds since 1970; it never goes back."""
        with self._flow.changed:
            self._promise(frontier)

    def flush(self, timeout: float | None = None) -> None:
        """Send what is buffered and wait until everything pushed and promised before is acknowledged."""
        with self._flow.changed:
            done = self._hurry()
            if not self._flow.changed.wait_for(done, timeout):
                raise self._not_acknowledged(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Flush, then let go of the stream, also after an error or a timeout. Safe to call twice."""
        if self._flow.closed:
            return
        try:
            self.flush(timeout)
        finally:
            self._close()


class AsyncClient(StreamClient):
    """`Client` for asyncio, with the same arguments; opened by `async with` or by `await client.open()`."""

    def _begin(self) -> None:
        self._changed = asyncio.Event()

    async def open(self) -> Self:
        """Ask where the stream continues; needed once, before everything else."""
        if self._opened is None:
            loop = asyncio.get_running_loop()
            await asyncio.to_thread(self._open)
            with self._flow.changed:
                self._flow.watchers.append(lambda: _wake(loop, self._changed))
        return self

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient(stream={self.stream!r})"

    async def push(self, rows: Rows, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- as in Client
        """Take rows in; waits while the buffer is full, for at most `timeout` seconds."""
        self._required()
        for part in self._parts(rows, timeout):
            if not await self._until(partial(self._taken, part), timeout):
                raise self._no_room(part, timeout)

    async def promise(self, frontier: int) -> None:
        """Promise that no later row is before this time, in microseconds since 1970; it never goes back."""
        with self._flow.changed:
            self._promise(frontier)

    async def flush(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- as in Client
        """Send what is buffered and wait until everything pushed and promised before is acknowledged."""
        with self._flow.changed:
            done = self._hurry()
        if not await self._until(done, timeout):
            raise self._not_acknowledged(timeout)

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- as in Client
        """Flush, then let go of the stream, also after an error or a timeout. Safe to call twice."""
        if self._opened is None or self._flow.closed:
            return
        try:
            await self.flush(timeout)
        finally:
            await asyncio.to_thread(self._close)

    def _taken(self, part: Portion) -> bool:
        if not self._has_room(part):
            return False
        self._offer(part)
        return True

    async def _until(self, done: Callable[[], bool], timeout: float | None) -> bool:  # noqa: ASYNC109
        """Wait until `done`, asked with the lock held and again after every change, says so."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    self._changed.clear()
                    with self._flow.changed:
                        if done():
                            return True
                    await self._changed.wait()
        except TimeoutError:
            return False


def _connection(address: str | Connection, token: str | None, tls: TLS | None) -> Connection:
    return address if isinstance(address, Connection) else Connection(address, token=token, tls=tls)


def _arrow_schema(schema: SchemaLike) -> pa.Schema:
    from penstock.expressions.schema import schema_of  # noqa: PLC0415 -- it imports a parser of SQL

    return schema_of(schema).arrow()


def _rows(part: Portion) -> int:
    return sum(int(each.num_rows) for each in part)


def _bytes(part: Portion) -> int:
    return sum(int(each.nbytes) for each in part)


def _wake(loop: asyncio.AbstractEventLoop, changed: asyncio.Event) -> None:
    # The loop may have been closed under a client that nobody closed.
    if not loop.is_closed():
        loop.call_soon_threadsafe(changed.set)
