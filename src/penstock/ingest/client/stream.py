"""One stream on a connection: its outbox, the gate it is at, what redirections cost, and who waits for it."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.errors import IngestError, Refused, StreamAhead, TakenOver
from penstock.ingest.client.outbox import Outbox
from penstock.ingest.wire.protocol import Acknowledged, Answer, Redirect, Refusal, Wait

if TYPE_CHECKING:
    from penstock.ingest.client.calls import PushCall

__all__ = ["KEPT", "ClientStream", "Redirection", "Redirections"]

KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class Redirection:
    """A stream went from one gate to another.

    `seconds` runs from the moment when the client stopped sending, or from the first row that was ready to
    go after it, to the first acknowledgement of the new gate; `rows` were buffered at the suspension.
    """

    stream: str
    source: str
    target: str
    rows: int
    seconds: float


class Redirections:
    """The last 1,000 redirections of a stream; time comes as an argument.

    >>> log = Redirections()
    >>> log.suspended(Redirection("reports/v1", "a:1", "b:1", rows=3, seconds=0.0), now=10.0)
    >>> log.sent(ready=10.5)
    >>> log.resumed("b:1", now=10.625)
    >>> log.finished[0].seconds
    0.125
    """

    def __init__(self) -> None:
        self.finished: deque[Redirection] = deque(maxlen=KEPT)
        self._under_way: Redirection | None = None
        self._since = 0.0
        self._sent = False

    def suspended(self, redirection: Redirection, now: float) -> None:
        """The stream is to leave; if it had not yet arrived where it was sent before, the clock goes on."""
        if self._under_way is None:
            self._since = now
        else:
            redirection = replace(redirection, source=self._under_way.source)
        self._under_way = redirection
        self._sent = False

    def sent(self, ready: float) -> None:
        """The first batch goes to the new gate; it was ready since then."""
        if self._under_way is not None and not self._sent:
            self._since = max(self._since, ready)
            self._sent = True

    def resumed(self, gate: str, now: float) -> None:
        """The gate where the stream has arrived has acknowledged."""
        if self._under_way is not None and self._sent:
            seconds = max(now - self._since, 0.0)
            self.finished.append(replace(self._under_way, target=gate, seconds=seconds))
            self._under_way = None


class ClientStream:
    """What a connection knows of one stream; every method is called with the connection's lock held."""

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
        self.metadata = None if metadata is None else dict(metadata)
        self.changed = threading.Condition(lock)
        self.watchers: list[Callable[[], None]] = []
        self.redirections = Redirections()
        self.call: PushCall | None = None
        self.gate: str | None = None
        self.producer: int | None = None
        """The number under which this client took the stream; None until it has."""
        self.tries = 0
        self.error: IngestError | None = None
        self.closed = False
        self._numbered_by_user = numbered_by_user

    def notify(self) -> None:
        """Wake everyone who waits for room, for an acknowledgement or for the end."""
        self.changed.notify_all()
        for watcher in self.watchers:
            watcher()

    def fail(self, error: IngestError) -> None:
        """Send no more rows; the next call of the user raises this error."""
        self.error = error
        self.outbox.suspend()
        self.notify()

    def acknowledge(self, upto: int, credit: int | None) -> None:
        """Forget what is durable, whichever gate says so."""
        if upto > self.outbox.sent and not self._numbered_by_user:
            self.fail(
                StreamAhead(
                    f"the gate holds rows of {self.stream!r} up to {upto}, this client has sent up to "
                    f"{self.outbox.sent}: another client pushes the same stream; end it, or give sequence="
                )
            )
            return
        self.outbox.acknowledge(upto, credit)
        self.notify()

    def obey(self, answer: Answer, now: float) -> None:
        """Do what the gate of this stream asks: wait, send again, give up."""
        match answer:
            case Wait():
                self.outbox.hold(answer.wait, now)
            case Refusal(expected=int(expected)):
                self.outbox.expect(expected)
            case Refusal(refused=TakenOver.__name__):
                self.fail(TakenOver(answer.message or f"another client has taken over {self.stream!r}"))
            case Refusal():
                reason = answer.message or answer.refused
                self.fail(Refused(f"stream {self.stream!r} was refused by {self.gate}: {reason}"))
            case Acknowledged() | Redirect():
                pass
