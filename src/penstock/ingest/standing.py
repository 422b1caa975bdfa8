"""How a stream stands at its client: what is sent, acknowledged, buffered, and what redirections cost."""

import pyarrow as pa

from penstock.ingest.pushing import Pushing
from penstock.ingest.redirections import Redirection

__all__ = ["Standing"]


class Standing:
    """What both forms of the client report."""

    @property
    def _pushing(self) -> Pushing:
        raise NotImplementedError

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
