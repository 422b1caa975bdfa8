"""A connection: many streams over one call to each gate, through failures and redirections.

A stream is at one gate at a time. What was not acknowledged when its gate fell silent, died or sent it away
is sent again elsewhere, from the first such row on. A redirection goes in the order suspend, drop, connect,
resume (000, section 3.3).
"""

import atexit
import logging
import random
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import pyarrow as pa

from penstock import threads
from penstock.errors import BadMessage, ClosedClient, GateAway, IngestError, Refused, TakenOver
from penstock.ingest.client.calls import PATIENCE_S, DueQueue, PushCall, PushCalls
from penstock.ingest.client.outbox import ClientLimits, Outbox
from penstock.ingest.client.stream import ClientStream, Redirection
from penstock.ingest.security.access import TLS, Access
from penstock.ingest.wire.flight import Address, Endpoint
from penstock.ingest.wire.protocol import (
    Acknowledged,
    Answer,
    NextRequest,
    NextSequences,
    Redirect,
    Refusal,
    WhereRequest,
)

__all__ = ["Connection", "GateFinder", "backoff"]

TICK_S: Final = 0.5
CLOSE_S: Final = 5.0
FIRST_BACKOFF_S: Final = 0.05
MOST_BACKOFF_S: Final = 2.0
_LOGGER = logging.getLogger("penstock.client")


def backoff(failures: int) -> float:
    """Seconds to wait after failures in a row: doubled each time, up to 2 s.

    Only the upper half of the span is drawn, at random, so that many clients do not come at once.

    >>> 0.025 <= backoff(1) <= 0.05, 1.0 <= backoff(50) <= 2.0
    (True, True)
    """
    span = min(FIRST_BACKOFF_S * 2.0 ** min(failures - 1, 10), MOST_BACKOFF_S)
    return span * random.uniform(0.5, 1.0)  # noqa: S311 -- no secret


class GateFinder:
    """Asks the address that the user gave; finds out whether a gate or a controller listens there."""

    def __init__(self, address: str, access: Access) -> None:
        self._endpoint = Endpoint(address, access)
        self._controller: bool | None = None

    @property
    def address(self) -> Address:
        """The address that is asked; of several controllers the one that answered last."""
        return self._endpoint.address

    def close(self) -> None:
        """Close the channel."""
        self._endpoint.close()

    def gates_of(self, streams: Sequence[ClientStream]) -> dict[str, str]:
        """The gate of each stream.

        Without a controller, a stream whose gate fails tries that gate and the first one in turn: either
        takes it, and only the rows that the failed gate acknowledged wait for it to come back.
        """
        if not self.has_controller():
            home = str(self.address)
            return {each.stream: home if each.tries % 2 == 0 else each.gate or home for each in streams}
        producers = {each.stream: each.producer or 0 for each in streams}
        found = self._endpoint.ask(WhereRequest({each.stream: each.metadata for each in streams}, producers))
        return found.gates

    def next_sequence(self, stream: str) -> int:
        """The number after the last row held of a stream; a controller asks all gates that may hold some."""
        return self._endpoint.ask(NextRequest((stream,))).next[stream]

    def claim(self, streams: Mapping[str, Mapping[str, Any] | None]) -> NextSequences:
        """Become the producer of streams: gates refuse the rows of earlier ones from now on.

        A controller chooses the gates of new ones by their metadata.
        """
        known = {stream: dict(metadata) for stream, metadata in streams.items() if metadata}
        answer = self._endpoint.ask(NextRequest(tuple(streams), claim=True, metadata=known or None))
        if answer.producers is None:
            raise Refused(
                f"{self.address} does not know producers of streams; run the same version everywhere"
            )
        for stream, held in (answer.held or {}).items():
            _LOGGER.warning(
                "stream %s continues at %d, but gates hold rows only up to %d: the others were acknowledged "
                "and are gone",
                stream,
                answer.next[stream],
                held,
            )
        return answer

    def is_controller(self, address: str) -> bool:
        """Whether this is the address of the controller; does not ask."""
        return bool(self._controller) and address in map(str, self._endpoint.others)

    def has_controller(self) -> bool:
        """Whether a controller listens; asked once."""
        if self._controller is None:
            self._controller = self._endpoint.offers(WhereRequest)
        return self._controller


class Connection:
    """A way into the system for any number of streams; give it to clients in place of an address.

    `address` is that of a gate or of a controller, with that of one that stands by for it as "a:7300/b:7300".
    With `tls` (`penstock.TLS`) the gate proves who it is, and
    with a certificate of its own so does the client; `token` is by default that of PENSTOCK_TOKEN.
    """

    def __init__(self, address: str, *, token: str | None = None, tls: TLS | None = None) -> None:
        self._access = Access(tls, token)
        self._finder = GateFinder(address, self._access)
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._streams: dict[str, ClientStream] = {}
        self._calls = PushCalls(self._access, self._lock, self)
        self._unplaced: DueQueue[ClientStream] = DueQueue()
        self._failures: dict[str, int] = {}
        self._closed = False
        self.trouble: IngestError | None = None
        self._keeper = threads.service("penstock-connection", self._keep, _LOGGER, self._keeper_died)
        self._keeper.start()
        _OPEN.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({str(self._finder.address)!r}, streams={len(self._streams)})"

    def next_sequence(self, stream: str) -> int:
        """The sequence number after the last row that any gate holds of a stream; 0 for a new one."""
        return self._finder.next_sequence(stream)

    def unacknowledged(self) -> int:
        """Rows of all streams that were pushed and not acknowledged."""
        with self._lock:
            return sum(stream.outbox.rows for stream in self._streams.values())

    def open_stream(
        self,
        name: str,
        schema: pa.Schema,
        sequence: int | None,
        limits: ClientLimits,
        metadata: Mapping[str, Any] | None,
    ) -> ClientStream:
        """Add a stream; its rows begin to flow as soon as a gate is found."""
        producer = None
        first = sequence
        if first is None:
            claimed = self._finder.claim({name: metadata})
            first, producer = claimed.next[name], (claimed.producers or {})[name]
        outbox = Outbox(schema, first, limits)
        stream = ClientStream(
            name, schema, outbox, self._lock, metadata, numbered_by_user=sequence is not None
        )
        stream.producer = producer
        with self._lock:
            if self._closed:
                raise ClosedClient(f"the connection to {self._finder.address} is closed; open another")
            if name in self._streams:
                raise IngestError(f"stream {name!r} is open on this connection; close its client first")
            self._streams[name] = stream
            self._place(stream, time.monotonic())
        return stream

    def offered(self, stream: ClientStream) -> None:
        """Look again at a stream whose outbox was changed; called with the lock held."""
        if stream.call is not None:
            stream.call.changed(stream)

    def close_stream(self, stream: ClientStream) -> None:
        """Remove a stream, with whatever it still holds."""
        with self._lock:
            stream.closed = True
            self._leave(stream)
            self._unplaced.set(stream, None)
            if self._streams.get(stream.stream) is stream:
                del self._streams[stream.stream]
            stream.notify()

    def close(self) -> None:
        """End all calls; close clients that still hold rows before."""
        with self._lock:
            self._closed = True
            calls = self._calls.close()
            for stream in self._streams.values():
                if stream.error is None:
                    stream.fail(
                        ClosedClient(f"the connection of stream {stream.stream!r} is closed; open another")
                    )
            self._wake.notify()
        end = time.monotonic() + CLOSE_S
        for call in calls:
            call.join(max(end - time.monotonic(), 0.0))
        self._keeper.join(CLOSE_S)
        self._finder.close()

    def answered(self, call: PushCall, answer: Answer, now: float) -> None:
        """Hand an answer to its stream; from a gate that the stream has left, only acknowledgements count."""
        self._failures.pop(call.gate, None)
        stream = self._streams.get(answer.stream or "")
        if stream is None:
            return
        if not isinstance(answer, Refusal) and answer.acknowledged is not None:
            credit = None if isinstance(answer, Redirect) else answer.credit
            stream.acknowledge(answer.acknowledged, credit)
            if stream.call is call and isinstance(answer, Acknowledged):
                stream.tries = 0
                stream.redirections.resumed(call.gate, now)
        if stream.call is not call or stream.error is not None:
            self.offered(stream)
            return
        if isinstance(answer, Redirect):
            self._redirect(stream, answer.redirect, now)
        else:
            stream.obey(answer, now)
            call.changed(stream)

    def failed(self, call: PushCall, error: IngestError) -> None:
        """Find a new gate for the streams of a call that is over, or the same one again after a while."""
        self.trouble = error
        count = self._failures[call.gate] = self._failures.get(call.gate, 0) + 1
        again = time.monotonic() + backoff(count)
        if count == 1:
            _LOGGER.warning("%s; %d streams look for a gate", error, len(call.streams))
        self._calls.forget(call)
        for stream in list(call.streams):
            self._leave(stream)
            stream.tries += 1
            if isinstance(error, Refused):
                stream.fail(error)
            else:
                self._place(stream, again)

    def _redirect(self, stream: ClientStream, target: str, now: float) -> None:
        """Suspend, drop, connect, resume."""
        event = Redirection(stream.stream, stream.gate or "", target, stream.outbox.rows, 0.0)
        stream.redirections.suspended(event, now)
        self._leave(stream)
        stream.gate = target
        stream.tries += 1
        _LOGGER.debug("stream %s is redirected from %s to %s", stream.stream, event.source, target)
        # Gates that send a stream back and forth without taking a row are asked ever more slowly.
        if stream.tries <= 2 and self._finder.is_controller(target):
            self._place(stream, now)
        elif stream.tries <= 2:
            self._attach(stream, target)
        else:
            self._place(stream, now + backoff(stream.tries))

    def _leave(self, stream: ClientStream) -> None:
        stream.outbox.suspend()
        if stream.call is not None:
            stream.call.detach(stream)

    def _place(self, stream: ClientStream, at: float) -> None:
        self._unplaced.set(stream, at)
        self._wake.notify()

    def _attach(self, stream: ClientStream, gate: str) -> None:
        try:
            gate = str(Address.parse(gate))
        except BadMessage as error:
            stream.fail(
                Refused(f"stream {stream.stream!r} was sent to something that is no address: {error}")
            )
            return
        self._calls.to(gate, stream.schema).attach(stream)

    def _keep(self) -> None:
        """The keeping thread: streams without a gate, silent gates, calls without streams."""
        look = 0.0
        while True:
            with self._lock:
                if self._closed:
                    return
                now = time.monotonic()
                if now >= look:
                    look = now + TICK_S
                    self._check_calls(now)
                streams = self._due(now)
                if not streams:
                    first = self._unplaced.first()
                    self._wake.wait(TICK_S if first is None else min(max(first - now, 0.0), TICK_S))
                    continue
            self._find(streams)

    def _keeper_died(self, error: Exception) -> None:
        """Nobody finds gates any more: whoever waits hears of it."""
        with self._lock:
            self.trouble = IngestError(f"the connection has failed ({error}); open another")
            for stream in self._streams.values():
                stream.fail(self.trouble)

    def _due(self, now: float) -> list[ClientStream]:
        streams = []
        while (stream := self._unplaced.pop(now)) is not None:
            streams.append(stream)
        return streams

    def _find(self, streams: list[ClientStream]) -> None:
        """Take streams over that are new, ask where all belong, and let them flow there."""
        try:
            self._claim([each for each in streams if each.producer is None])
            gates = self._finder.gates_of(streams)
        except IngestError as error:
            with self._lock:
                self._not_found(streams, error)
            return
        with self._lock:
            for stream in streams:
                if stream.closed or stream.error is not None or self._closed:
                    continue
                if stream.stream in gates:
                    self._attach(stream, gates[stream.stream])
                else:
                    stream.fail(
                        TakenOver(
                            f"another client has taken over stream {stream.stream!r}, says the controller "
                            f"{self._finder.address}; end one of the two, since a stream has one producer"
                        )
                    )

    def _claim(self, streams: list[ClientStream]) -> None:
        if not streams:
            return
        producers = self._finder.claim({each.stream: each.metadata for each in streams}).producers or {}
        with self._lock:
            for stream in streams:
                stream.producer = producers[stream.stream]

    def _not_found(self, streams: list[ClientStream], error: IngestError) -> None:
        self.trouble = error
        for stream in streams:
            stream.tries += 1
            if isinstance(error, GateAway):
                self._place(stream, time.monotonic() + backoff(stream.tries))
            else:
                stream.fail(error)

    def _check_calls(self, now: float) -> None:
        for call in self._calls.silent(now):
            call.close()
            self.failed(call, GateAway(f"{call.gate} has not answered for {PATIENCE_S:g} s"))
        for call in self._calls.idle(now):
            call.close()
            self._calls.forget(call)


_OPEN: "weakref.WeakSet[Connection]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Threads inside of gRPC must not outlive the interpreter.
    for connection in list(_OPEN):
        left = connection.unacknowledged()
        connection.close()
        if left:
            _LOGGER.warning(
                "penstock: %d rows were pushed and not acknowledged when the program ended; flush or close "
                "their clients before",
                left,
            )
