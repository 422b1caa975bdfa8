"""A connection: many streams over one call to each gate, through failures and redirections.

What holds: a stream is at one gate at a time; what was not acknowledged when its gate fell silent, died or
sent it away is sent again elsewhere, from the first such row on. Redirection goes in the order suspend, drop,
connect, resume (000, section 3.3).
"""

import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Self

import pyarrow as pa

from penstock.errors import BadMessage, ClosedClient, GateAway, IngestError, Refused
from penstock.ingest.access import TLS, Access
from penstock.ingest.address import Address
from penstock.ingest.at_exit import remember
from penstock.ingest.backoff import backoff
from penstock.ingest.client_limits import ClientLimits
from penstock.ingest.finding import Finder
from penstock.ingest.lane import Lane
from penstock.ingest.link import Link
from penstock.ingest.links import PATIENCE_S, Links
from penstock.ingest.messages import Answer
from penstock.ingest.outbox import Outbox
from penstock.ingest.redirections import Redirection
from penstock.ingest.schedule import Schedule

__all__ = ["Connection"]

TICK_S: Final = 0.5
CLOSE_S: Final = 5.0


class Connection:
    """A way into the system for any number of streams; give it to clients in place of an address.

    `address` is that of a gate or of a controller. With `tls` (`penstock.TLS`) the gate proves who it is, and
    with a certificate of one's own so does the client; `token` is by default that of PENSTOCK_TOKEN.
    """

    def __init__(self, address: str, *, token: str | None = None, tls: TLS | None = None) -> None:
        self._access = Access(tls, token)
        self._finder = Finder(address, self._access)
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._lanes: dict[str, Lane] = {}
        self._links = Links(self._access, self._lock, self)
        self._homeless: Schedule[Lane] = Schedule()
        self._failures: dict[str, int] = {}
        self._closed = False
        self.trouble: IngestError | None = None
        self._keeper = threading.Thread(target=self._keep, name="penstock-connection", daemon=True)
        self._keeper.start()
        remember(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({str(self._finder.address)!r}, streams={len(self._lanes)})"

    def next_sequence(self, stream: str) -> int:
        """The sequence number after the last row that any gate holds of a stream; 0 for a new one."""
        return self._finder.next_sequence(stream)

    def unacknowledged(self) -> int:
        """Rows of all streams that were pushed and not acknowledged."""
        with self._lock:
            return sum(lane.outbox.rows for lane in self._lanes.values())

    def open_lane(
        self,
        stream: str,
        schema: pa.Schema,
        sequence: int | None,
        limits: ClientLimits,
        metadata: Mapping[str, Any] | None,
    ) -> Lane:
        """Take a stream on; its rows begin to flow as soon as a gate is found."""
        first = self.next_sequence(stream) if sequence is None else sequence
        outbox = Outbox(schema, first, limits)
        lane = Lane(stream, schema, outbox, self._lock, metadata, numbered_by_user=sequence is not None)
        with self._lock:
            if self._closed:
                raise ClosedClient(f"the connection to {self._finder.address} is closed; open another")
            if stream in self._lanes:
                raise IngestError(f"stream {stream!r} is open on this connection; close its client first")
            self._lanes[stream] = lane
            self._place(lane, time.monotonic())
        return lane

    def offered(self, lane: Lane) -> None:
        """Look again at a stream whose outbox was changed; called with the lock held."""
        if lane.link is not None:
            lane.link.changed(lane)

    def close_lane(self, lane: Lane) -> None:
        """Let a stream go, with whatever it still holds."""
        with self._lock:
            lane.closed = True
            self._leave(lane)
            self._homeless.set(lane, None)
            if self._lanes.get(lane.stream) is lane:
                del self._lanes[lane.stream]
            lane.notify()

    def close(self) -> None:
        """End all calls; clients that still hold rows are to be closed before."""
        with self._lock:
            self._closed = True
            links = self._links.close()
            for lane in self._lanes.values():
                if lane.error is None:
                    lane.fail(
                        ClosedClient(f"the connection of stream {lane.stream!r} is closed; open another")
                    )
            self._wake.notify()
        end = time.monotonic() + CLOSE_S
        for link in links:
            link.join(max(end - time.monotonic(), 0.0))
        self._keeper.join(CLOSE_S)
        self._finder.close()

    def answered(self, link: Link, answer: Answer, now: float) -> None:
        """Hand an answer to its stream; of a gate that the stream has left, only acknowledgements count."""
        self._failures.pop(link.gate, None)
        lane = self._lanes.get(answer.stream or "")
        if lane is None:
            return
        if answer.acknowledged is not None:
            lane.acknowledge(answer)
            if lane.link is link and answer.wait is None and answer.redirect is None:
                lane.tries = 0
                lane.redirections.resumed(link.gate, now)
        if lane.link is not link or lane.error is not None:
            self.offered(lane)
            return
        if answer.redirect is not None:
            self._redirect(lane, answer.redirect, now)
        else:
            lane.obey(answer, now)
            link.changed(lane)

    def failed(self, link: Link, error: IngestError) -> None:
        """Find the streams of a call that is over a new gate, or the same one again after a while."""
        self.trouble = error
        count = self._failures[link.gate] = self._failures.get(link.gate, 0) + 1
        again = time.monotonic() + backoff(count)
        self._links.forget(link)
        for lane in list(link.lanes):
            self._leave(lane)
            lane.tries += 1
            if isinstance(error, Refused):
                lane.fail(error)
            else:
                self._place(lane, again)

    def _redirect(self, lane: Lane, target: str, now: float) -> None:
        """Suspend, drop, connect, resume."""
        event = Redirection(lane.stream, lane.gate or "", target, lane.outbox.rows, 0.0)
        lane.redirections.suspended(event, now)
        self._leave(lane)
        lane.gate = target
        lane.tries += 1
        # Gates that send a stream back and forth without taking a row are asked ever more slowly.
        if lane.tries <= 2 and self._finder.is_controller(target):
            self._place(lane, now)
        elif lane.tries <= 2:
            self._attach(lane, target)
        else:
            self._place(lane, now + backoff(lane.tries))

    def _leave(self, lane: Lane) -> None:
        lane.outbox.suspend()
        if lane.link is not None:
            lane.link.drop(lane)

    def _place(self, lane: Lane, at: float) -> None:
        self._homeless.set(lane, at)
        self._wake.notify()

    def _attach(self, lane: Lane, gate: str) -> None:
        try:
            gate = str(Address.parse(gate))
        except BadMessage as error:
            lane.fail(Refused(f"stream {lane.stream!r} was sent to an address that is none: {error}"))
            return
        self._links.to(gate, lane.schema).attach(lane)

    def _keep(self) -> None:
        """The life of the keeping thread: homeless streams, silent gates, calls without streams."""
        look = 0.0
        while True:
            with self._lock:
                if self._closed:
                    return
                now = time.monotonic()
                if now >= look:
                    look = now + TICK_S
                    self._look_after_links(now)
                lanes = self._due(now)
                if not lanes:
                    first = self._homeless.first()
                    self._wake.wait(TICK_S if first is None else min(max(first - now, 0.0), TICK_S))
                    continue
            self._find(lanes)

    def _due(self, now: float) -> list[Lane]:
        lanes = []
        while (lane := self._homeless.pop(now)) is not None:
            lanes.append(lane)
        return lanes

    def _find(self, lanes: list[Lane]) -> None:
        """Ask where streams belong, which takes a call, and let them flow there."""
        try:
            gates = self._finder.gates_of(lanes)
        except IngestError as error:
            with self._lock:
                self._not_found(lanes, error)
            return
        with self._lock:
            for lane in lanes:
                if not lane.closed and lane.error is None and not self._closed:
                    self._attach(lane, gates[lane.stream])

    def _not_found(self, lanes: list[Lane], error: IngestError) -> None:
        self.trouble = error
        for lane in lanes:
            lane.tries += 1
            if isinstance(error, GateAway):
                self._place(lane, time.monotonic() + backoff(lane.tries))
            else:
                lane.fail(error)

    def _look_after_links(self, now: float) -> None:
        for link in self._links.silent(now):
            link.close()
            self.failed(link, GateAway(f"{link.gate} has not answered for {PATIENCE_S:g} s"))
        for link in self._links.idle(now):
            link.close()
            self._links.forget(link)
