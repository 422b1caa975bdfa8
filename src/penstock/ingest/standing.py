"""What both forms of the client are given, and how a stream stands there: sent, acknowledged, buffered."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from penstock.errors import ClosedClient
from penstock.ingest.access import TLS
from penstock.ingest.client_limits import ClientLimits
from penstock.ingest.connection import Connection
from penstock.ingest.pushing import Pushing, SchemaLike
from penstock.ingest.redirections import Redirection

__all__ = ["Standing"]

_DEFAULT = ClientLimits()


class Standing(ABC):
    """One stream of a client, in either form."""

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
        limits = ClientLimits(batch_rows, batch_bytes, batch_seconds, buffer_rows, buffer_bytes)
        self._stream = stream
        self._opened: Pushing | None = None
        self._open = partial(
            Pushing,
            address,
            stream,
            schema,
            metadata,
            limits,
            token=token,
            tls=tls,
            sequence=sequence,
            resume=resume,
        )
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """What a form of the client does when it is made."""

    @property
    def _pushing(self) -> Pushing:
        if self._opened is None:
            raise ClosedClient(
                f"the client of stream {self._stream!r} is not open; use async with, or await open()"
            )
        return self._opened

    @property
    def stream(self) -> str:
        """The id of the stream."""
        return self._pushing.stream

    @property
    def schema(self) -> pa.Schema:
        """The schema of its rows."""
        return self._pushing.schema

    @property
    def gate(self) -> str | None:
        """The address of the gate that the stream is at or goes to; None before one is found."""
        return self._pushing.lane.gate

    @property
    def sequence(self) -> int:
        """The sequence number that the next row pushed will have."""
        return self._pushing.lane.outbox.next

    @property
    def acknowledged(self) -> int:
        """Every row with a sequence number below this is durable."""
        return self._pushing.lane.outbox.acknowledged

    @property
    def buffered_rows(self) -> int:
        """Rows pushed and not acknowledged."""
        return self._pushing.lane.outbox.rows

    @property
    def buffered_bytes(self) -> int:
        """Bytes held for them."""
        return self._pushing.lane.outbox.bytes

    @property
    def redirections(self) -> list[Redirection]:
        """What the last 1,000 redirections of the stream cost, oldest first."""
        return self._pushing.redirections()
