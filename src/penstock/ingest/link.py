"""One call to one gate that carries the batches of many streams of one schema: a thread sends, one listens.

Batches of a stream are written in the order in which its outbox gives them. The lock is the connection's; it
is held to decide what to send, never while sending.
"""

import threading
import time
from typing import Protocol

import pyarrow as pa
import pyarrow.flight as fl

from penstock.errors import IngestError
from penstock.ingest.access import Access
from penstock.ingest.dial import Line, told
from penstock.ingest.lane import Lane
from penstock.ingest.messages import PUSH, Answer, beside, read_answers
from penstock.ingest.outbox import Parcel
from penstock.ingest.schedule import Schedule

__all__ = ["Link", "Owner"]


class Owner(Protocol):
    """Who hears what a link hears; both are called with the lock held."""

    def answered(self, link: "Link", answer: Answer, now: float) -> None:
        """The gate has said something about a stream."""

    def failed(self, link: "Link", error: IngestError) -> None:
        """The call is over; called once, unless the link was closed."""


class Link:
    """The call and its two threads; `start` begins."""

    def __init__(
        self, gate: str, schema: pa.Schema, access: Access, lock: threading.Lock, owner: Owner
    ) -> None:
        self.gate = gate
        self.schema = schema
        self.lanes: set[Lane] = set()
        self.heard = self.idle_since = time.monotonic()
        self.over = False
        self._line = Line(gate, access)
        self._owner = owner
        self._lock = lock
        self._wake = threading.Condition(lock)
        self._schedule: Schedule[Lane] = Schedule()
        self._closing = False
        self._unanswered = 0
        self._sender = threading.Thread(target=self._send, name=f"penstock-to-{gate}", daemon=True)

    def start(self) -> None:
        """Call the gate."""
        self._sender.start()

    def attach(self, lane: Lane) -> None:
        """Let a stream flow here."""
        self.lanes.add(lane)
        lane.link, lane.gate = self, self.gate
        lane.outbox.resume()
        self.changed(lane)

    def drop(self, lane: Lane) -> None:
        """Let a stream flow here no more."""
        self.lanes.discard(lane)
        self._schedule.set(lane, None)
        lane.link = None
        self.idle_since = time.monotonic()

    def changed(self, lane: Lane) -> None:
        """Look again at when a stream is due."""
        due = lane.outbox.due()
        before = self._schedule.first()
        self._schedule.set(lane, due)
        if due is not None and (before is None or due < before):
            self._wake.notify()

    def silent(self, now: float) -> float:
        """For how long answers have been owed and none has come, in seconds."""
        owed = any(lane.outbox.waiting for lane in self.lanes)
        return now - self.heard if owed else 0.0

    def close(self) -> None:
        """End the call after what is being sent; does not wait for it."""
        self._closing = self.over = True
        self._wake.notify()

    def join(self, timeout: float) -> None:
        """Wait for the end of the call; called without the lock."""
        self._sender.join(timeout)

    def _send(self) -> None:
        """The life of the sending thread."""
        listener = threading.Thread(target=self._listen, name=f"penstock-from-{self.gate}", daemon=True)
        try:
            descriptor = fl.FlightDescriptor.for_command(PUSH)
            writer, self._reader = self._line.flight.do_put(
                descriptor, self.schema, self._line.access.options()
            )
            listener.start()
            while (taken := self._next()) is not None:
                lane, parcel = taken
                writer.write_with_metadata(parcel.batch, beside(lane.stream, parcel, lane.metadata))
            writer.done_writing()
            listener.join()
            writer.close()
        except Exception as error:  # noqa: BLE001 -- whatever ends this thread, its streams must go on elsewhere
            self._fail(error)
        finally:
            self._line.close()

    def _next(self) -> tuple[Lane, Parcel] | None:
        """The next batch to send, when there is one; None when the link is to end."""
        with self._lock:
            while not self._closing:
                now = time.monotonic()
                lane = self._schedule.pop(now)
                if lane is not None:
                    parcel = lane.outbox.take(now)
                    self._schedule.set(lane, lane.outbox.due())
                    if parcel is not None:
                        self._owe(now)
                        lane.redirections.sent(parcel.ready)
                        return lane, parcel
                else:
                    first = self._schedule.first()
                    self._wake.wait(None if first is None else first - now)
            return None

    def _owe(self, now: float) -> None:
        """The silence of a gate counts from the first batch that it has not answered."""
        if self._unanswered == 0:
            self.heard = now
        self._unanswered += 1

    def _listen(self) -> None:
        """The life of the listening thread."""
        try:
            while (message := self._reader.read()) is not None:
                answers = read_answers(message.to_pybytes())
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
                self._owner.failed(self, told(error, self._line.address))
            self.close()
