"""The open pushes of a connection: one call to each gate and schema, for as long as streams are there.

A call carries the batches of many streams of one schema; one thread sends, one listens. Batches of a stream
are written in the order in which its outbox gives them. The lock is the connection's: it is held to decide
what to send, never while sending.
"""

import heapq
import logging
import threading
import time
from typing import Final, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from penstock import threads
from penstock.errors import IngestError
from penstock.ingest.client.outbox import OutgoingBatch
from penstock.ingest.client.stream import ClientStream
from penstock.ingest.security.access import Access
from penstock.ingest.wire.flight import Endpoint, ingest_error
from penstock.ingest.wire.protocol import Answer, OpenPush, Push, decode_answers

__all__ = ["IDLE_S", "PATIENCE_S", "CallOwner", "DueQueue", "PushCall", "PushCalls"]

_LOGGER = logging.getLogger("penstock.client")
PATIENCE_S: Final = 15.0
"""A gate that owes answers and is silent for this long is given up."""
IDLE_S: Final = 10.0
"""A call without streams is closed after this long."""
Item = TypeVar("Item")


class DueQueue(Generic[Item]):
    """Items by the time at which they are due, the earliest first; one heap, O(log n) for each change.

    >>> queue = DueQueue()
    >>> queue.set("a", 5.0); queue.set("b", 3.0); queue.set("b", 7.0)
    >>> queue.first(), queue.pop(now=6.0), queue.pop(now=6.0)
    (5.0, 'a', None)
    """

    def __init__(self) -> None:
        self._at: dict[Item, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Item]] = []
        self._count = 0

    def set(self, item: Item, due: float | None) -> None:
        """Make an item due at a time, or never with None; this replaces what was set before."""
        known = self._at.get(item)
        if due is None:
            self._at.pop(item, None)
        elif known is None or known[0] != due:
            self._count += 1
            self._at[item] = (due, self._count)
            heapq.heappush(self._heap, (due, self._count, item))

    def first(self) -> float | None:
        """When the first item is due."""
        # A replaced entry stays in the heap until it comes up here; each is looked at once.
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> Item | None:
        """Remove and return the first item that is due by now; among equals the one that was set first."""
        first = self.first()
        if first is None or first > now:
            return None
        item = heapq.heappop(self._heap)[2]
        del self._at[item]
        return item


class CallOwner(Protocol):
    """Who hears what a call receives; both methods are called with the lock held."""

    def answered(self, call: "PushCall", answer: Answer, now: float) -> None:
        """The gate has said something about a stream."""

    def failed(self, call: "PushCall", error: IngestError) -> None:
        """The call is over; called once, unless the call was closed."""


class PushCall:
    """One push to one gate and its two threads; `start` begins."""

    def __init__(
        self, gate: str, schema: pa.Schema, access: Access, lock: threading.Lock, owner: CallOwner
    ) -> None:
        self.gate = gate
        self.schema = schema
        self.streams: set[ClientStream] = set()
        self.heard = self.idle_since = time.monotonic()
        self.over = False
        self._endpoint = Endpoint(gate, access)
        self._owner = owner
        self._lock = lock
        self._wake = threading.Condition(lock)
        self._due: DueQueue[ClientStream] = DueQueue()
        self._closing = False
        self._unanswered = 0
        self._sender = threads.service(f"penstock-to-{gate}", self._send, _LOGGER)

    def start(self) -> None:
        """Call the gate."""
        self._sender.start()

    def attach(self, stream: ClientStream) -> None:
        """Send a stream here."""
        self.streams.add(stream)
        stream.call, stream.gate = self, self.gate
        stream.outbox.resume()
        self.changed(stream)

    def detach(self, stream: ClientStream) -> None:
        """Stop sending a stream here."""
        self.streams.discard(stream)
        self._due.set(stream, None)
        stream.call = None
        self.idle_since = time.monotonic()

    def changed(self, stream: ClientStream) -> None:
        """Look again at when a stream is due."""
        due = stream.outbox.due()
        before = self._due.first()
        self._due.set(stream, due)
        if due is not None and (before is None or due < before):
            self._wake.notify()

    def silent(self, now: float) -> float:
        """For how many seconds the gate has owed answers and given none."""
        owed = any(stream.outbox.waiting for stream in self.streams)
        return now - self.heard if owed else 0.0

    def close(self) -> None:
        """End the call after what is being sent; does not wait for it."""
        self._closing = self.over = True
        self._wake.notify()

    def join(self, timeout: float) -> None:
        """Wait for the end of the call; called without the lock."""
        self._sender.join(timeout)

    def _send(self) -> None:
        """The sending thread."""
        listener = threads.service(f"penstock-from-{self.gate}", self._listen, _LOGGER)
        try:
            descriptor = fl.FlightDescriptor.for_command(OpenPush.current().encode())
            options = self._endpoint.access.options()
            writer, self._reader = self._endpoint.flight.do_put(descriptor, self.schema, options)
            listener.start()
            while (taken := self._next()) is not None:
                stream, outgoing = taken
                writer.write_with_metadata(outgoing.batch, _label(stream, outgoing))
            writer.done_writing()
            listener.join()
            writer.close()
        except Exception as error:  # noqa: BLE001 -- whatever ends this thread, its streams must go on elsewhere
            self._fail(error)
        finally:
            self._endpoint.close()

    def _next(self) -> tuple[ClientStream, OutgoingBatch] | None:
        """The next batch to send, when there is one; None when the call is to end."""
        with self._lock:
            while not self._closing:
                now = time.monotonic()
                stream = self._due.pop(now)
                if stream is not None:
                    outgoing = stream.outbox.take(now)
                    self._due.set(stream, stream.outbox.due())
                    if outgoing is not None:
                        self._count_unanswered(now)
                        stream.redirections.sent(outgoing.ready)
                        return stream, outgoing
                else:
                    first = self._due.first()
                    self._wake.wait(None if first is None else first - now)
            return None

    def _count_unanswered(self, now: float) -> None:
        """The silence of a gate counts from the first batch that it has not answered."""
        if self._unanswered == 0:
            self.heard = now
        self._unanswered += 1

    def _listen(self) -> None:
        """The listening thread."""
        try:
            while (message := self._reader.read()) is not None:
                answers = decode_answers(message.to_pybytes())
                with self._lock:
                    now = self.heard = time.monotonic()
                    self._unanswered = 0
                    for answer in answers:
                        self._owner.answered(self, answer, now)
            self._fail(fl.FlightUnavailableError("the gate has ended the call"))
        except Exception as error:  # noqa: BLE001 -- as above
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        with self._lock:
            if not self.over:
                self._owner.failed(self, ingest_error(error, self._endpoint.address))
            self.close()


def _label(stream: ClientStream, outgoing: OutgoingBatch) -> pa.Buffer:
    """What goes with a batch; the stream's metadata only with the first one on a call."""
    declare = stream.metadata if outgoing.connect else None
    push = Push(
        stream.stream,
        outgoing.sequence,
        outgoing.connect,
        outgoing.frontier,
        declare,
        stream.producer or 0,
        round(outgoing.oldest, 3),
        outgoing.upto,
    )
    return pa.py_buffer(push.encode())


class PushCalls:
    """The calls of a connection by gate and schema; methods are called with the connection's lock held."""

    def __init__(self, access: Access, lock: threading.Lock, owner: CallOwner) -> None:
        self._access = access
        self._lock = lock
        self._owner = owner
        self._open: dict[tuple[str, str], PushCall] = {}

    def __len__(self) -> int:
        return len(self._open)

    def to(self, gate: str, schema: pa.Schema) -> PushCall:
        """The call to a gate with rows of a schema, a new one if the last is over; does not wait."""
        key = (gate, schema.to_string(show_field_metadata=False))
        call = self._open.get(key)
        if call is None or call.over:
            call = self._open[key] = PushCall(gate, schema, self._access, self._lock, self._owner)
            call.start()
        return call

    def forget(self, call: PushCall) -> None:
        """Drop a call that is over."""
        self._open = {key: known for key, known in self._open.items() if known is not call}

    def silent(self, now: float) -> list[PushCall]:
        """Calls on which answers have been owed for too long."""
        return [each for each in self._open.values() if each.silent(now) > PATIENCE_S]

    def idle(self, now: float) -> list[PushCall]:
        """Calls that have had no streams for a while."""
        return [each for each in self._open.values() if not each.streams and now - each.idle_since > IDLE_S]

    def close(self) -> list[PushCall]:
        """End all calls; the caller joins them without the lock."""
        calls = list(self._open.values())
        for call in calls:
            call.close()
        self._open = {}
        return calls
