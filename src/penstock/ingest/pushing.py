"""What both forms of the client do with a stream; no call of it waits for the network but the opening."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from penstock.errors import BadRows, BufferFull, ClosedClient, IngestError, NotAcknowledged
from penstock.expressions.schema import Schema, schema_of
from penstock.ingest.access import TLS
from penstock.ingest.client_limits import ClientLimits
from penstock.ingest.connection import Connection
from penstock.ingest.metadata import Metadata
from penstock.ingest.redirections import Redirection
from penstock.ingest.rows import Rows, as_batches, pieces
from penstock.ingest.wire import check_stream

__all__ = ["Pushing", "SchemaLike"]

SchemaLike: TypeAlias = str | pa.Schema | Schema


class Pushing:
    """One stream on a connection of its own or a shared one."""

    def __init__(  # noqa: PLR0913 -- each is one setting of a client
        self,
        to: "str | Connection",
        stream: str,
        schema: SchemaLike,
        metadata: Mapping[str, Any] | None,
        limits: ClientLimits,
        *,
        token: str | None,
        tls: TLS | None,
        sequence: int | None,
        resume: Literal["acknowledged"] | None,
    ) -> None:
        if isinstance(to, Connection) and (token is not None or tls is not None):
            raise IngestError("token and tls belong to the Connection; give them there")
        if sequence is not None and sequence < 0:
            raise IngestError(f"sequence is {sequence}; give the number of the next row, 0 or more")
        if resume not in ("acknowledged", None):
            raise IngestError(f"resume is {resume!r}; give 'acknowledged', or None to start at 0")
        if sequence is None and resume is None:
            sequence = 0
        check_stream(stream)
        self.stream = stream
        self.schema = schema_of(schema).arrow()
        declared = None if metadata is None else Metadata.of(metadata).given()
        self.connection = to if isinstance(to, Connection) else Connection(to, token=token, tls=tls)
        self._own = not isinstance(to, Connection)
        self._limits = limits
        try:
            self.lane = self.connection.open_lane(stream, self.schema, sequence, limits, declared)
        except BaseException:
            self._close_connection()
            raise

    def parts(self, rows: Rows) -> list[list[pa.RecordBatch]]:
        """The rows in parts that fit the buffer: one, unless they are more than it ever holds."""
        batches = as_batches(rows, self.schema)
        limits = self._limits
        rows_in_all, size = sum(each.num_rows for each in batches), sum(each.nbytes for each in batches)
        if rows_in_all <= limits.buffer_rows and size <= limits.buffer_bytes:
            return [batches]
        return [[piece] for piece in pieces(batches, limits.batch_rows, limits.batch_bytes)]

    def has_room(self, part: list[pa.RecordBatch]) -> bool:
        """Whether a part fits now; raises what the stream failed with."""
        self.check()
        return self.lane.outbox.fits(sum(b.num_rows for b in part), sum(b.nbytes for b in part))

    def offer(self, part: list[pa.RecordBatch]) -> None:
        """Take a part in."""
        for batch in part:
            self.lane.outbox.offer(batch, time.monotonic())
        self.connection.offered(self.lane)

    def promise(self, frontier: int) -> None:
        """Say that no later row is below this time, in microseconds since 1970."""
        self.check()
        self.lane.outbox.promise(frontier, time.monotonic())
        self.connection.offered(self.lane)

    def hurry(self) -> Callable[[], bool]:
        """Send all there is at once; the function given back says whether all of it is acknowledged."""
        self.check()
        outbox = self.lane.outbox
        outbox.hurry()
        upto = outbox.next
        self.connection.offered(self.lane)

        def done() -> bool:
            self.check()
            return outbox.acknowledged >= upto

        return done

    def check(self) -> None:
        """Raise what the stream failed with, or that it is closed."""
        if self.lane.error is not None:
            raise self.lane.error
        if self.lane.closed:
            raise ClosedClient(f"the client of stream {self.stream!r} is closed; open another")

    def close(self) -> None:
        """Let go of the stream, and of the connection if it is the client's own."""
        self.connection.close_lane(self.lane)
        self._close_connection()

    def redirections(self) -> list[Redirection]:
        """The last 1,000 redirections."""
        with self.lane.changed:
            return list(self.lane.redirections.finished)

    def no_room(self, part: list[pa.RecordBatch], timeout: float) -> BufferFull:
        """The error for a push that waited in vain."""
        outbox = self.lane.outbox
        return BufferFull(
            f"stream {self.stream!r}: no room for {sum(b.num_rows for b in part)} rows within {timeout:g} s; "
            f"{outbox.rows} rows ({outbox.bytes} bytes) wait for acknowledgement{self._trouble()}. None of "
            "the rows was taken: push them again, slower, or give a larger buffer"
        )

    def too_large(self, parts: int) -> BadRows:
        """The error for a push with a timeout that could be taken in part only."""
        return BadRows(
            f"stream {self.stream!r}: the rows make {parts} batches and more than the buffer holds; "
            "with a timeout push fewer at once, or give a larger buffer"
        )

    def not_acknowledged(self, timeout: float) -> NotAcknowledged:
        """The error for a flush that waited in vain."""
        return NotAcknowledged(
            f"stream {self.stream!r}: {self.lane.outbox.rows} rows not acknowledged within {timeout:g} s"
            f"{self._trouble()}. They are still held: flush again"
        )

    def _trouble(self) -> str:
        trouble = self.connection.trouble
        return (
            f" ({trouble})"
            if trouble is not None and self.lane.outbox.acknowledged < self.lane.outbox.next
            else ""
        )

    def _close_connection(self) -> None:
        if self._own:
            self.connection.close()
