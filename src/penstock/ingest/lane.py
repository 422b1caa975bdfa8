"""One stream on a connection: its outbox, the gate it is at, and whoever waits for it.

Every method is called with the connection's lock held.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import IngestError, Refused, StreamAhead
from penstock.ingest.messages import Answer
from penstock.ingest.outbox import Outbox
from penstock.ingest.redirections import Redirections

if TYPE_CHECKING:
    from penstock.ingest.link import Link

__all__ = ["Lane"]


class Lane:
    """What a connection knows of one stream."""

    def __init__(  # noqa: PLR0913 -- what makes a stream
        self,
        stream: str,
        schema: pa.Schema,
        outbox: Outbox,
        lock: threading.Lock,
        metadata: Mapping[str, Any] | None = None,
        *,
        numbered_by_user: bool,
    ) -> None:
        self.stream = stream
        self.schema = schema
        self.outbox = outbox
        self.metadata = metadata
        self.changed = threading.Condition(lock)
        self.watchers: list[Callable[[], None]] = []
        self.redirections = Redirections()
        self.link: Link | None = None
        self.gate: str | None = None
        self.tries = 0
        self.error: IngestError | None = None
        self.closed = False
        self._numbered_by_user = numbered_by_user

    def notify(self) -> None:
        """Wake whoever waits for room, for an acknowledgement or for the end."""
        self.changed.notify_all()
        for watcher in self.watchers:
            watcher()

    def fail(self, error: IngestError) -> None:
        """No more rows will go; the next call of the user raises this."""
        self.error = error
        self.outbox.suspend()
        self.notify()

    def acknowledge(self, answer: Answer) -> None:
        """Forget what is durable, whichever gate says so."""
        upto = answer.acknowledged
        assert upto is not None, "only acknowledgements come here"
        if upto > self.outbox.sent and not self._numbered_by_user:
            self.fail(
                StreamAhead(
                    f"the gate holds rows of {self.stream!r} up to {upto}, this client has sent up to "
                    f"{self.outbox.sent}: another client pushes the same stream; end it, or give sequence="
                )
            )
            return
        self.outbox.acknowledge(upto, answer.credit)
        self.notify()

    def obey(self, answer: Answer, now: float) -> None:
        """Do what the gate of this lane asks beside acknowledging: wait, send again, give up."""
        if answer.wait is not None:
            self.outbox.hold(answer.wait, now)
        elif answer.expected is not None:
            self.outbox.expect(answer.expected)
        elif answer.refused is not None:
            self.fail(
                Refused(
                    f"stream {self.stream!r} was refused by {self.gate}: {answer.message or answer.refused}"
                )
            )
