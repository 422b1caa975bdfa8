"""A gate as a process of its own: it registers, serves, and ends so that nothing acknowledged is lost."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock import threads
from penstock.cores import cores
from penstock.errors import IngestError
from penstock.ingest.gate.events import IntakeLimited, ReadersListed
from penstock.ingest.gate.gate import Gate
from penstock.ingest.gate.measures import oldest_seconds, room
from penstock.ingest.limits import Limits
from penstock.ingest.security.access import TLS, Access
from penstock.ingest.security.tokens import Security
from penstock.ingest.wire.flight import CONTROLLER_PORT, Address, Endpoint
from penstock.ingest.wire.protocol import NextRequest, NextSequences, Register

__all__ = ["Heartbeat", "run_gate"]

_EVERY: Final = 1.0
_TIMEOUT: Final = 2.0
_LOOK_S: Final = 10.0
"""Between two looks for readers that seem forgotten."""
_LOGGER = logging.getLogger("penstock.gate")


def run_gate(  # noqa: PLR0913 -- the options of the command
    address: str,
    folder: Path,
    limits: Limits,
    security: Security,
    *,
    controller: str | None = None,
    controller_tls: TLS | None = None,
    advertise: str | None = None,
    accept_loss: bool = False,
    give_up: Sequence[tuple[str, int, int]] = (),
) -> None:
    """Run a gate until SIGTERM or SIGINT; prints one line when it is ready, and logs to standard error.

    The process ends with status 1 if nothing can be made durable any more; the log says why.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    ended = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: ended.set())
    gate = Gate(
        address,
        folder,
        limits=limits,
        security=security,
        advertise=advertise,
        accept_loss=accept_loss,
        died=ended.set,
        awaits_readers=controller is not None,
        give_up=give_up,
    )
    heartbeat = Heartbeat(controller, gate, Access(controller_tls)) if controller else None
    sys.stdout.write(f"gate ready at {gate.address}\n")
    sys.stdout.flush()
    while not ended.wait(min(_LOOK_S, limits.silent_seconds)):
        gate.forgotten.look(time.time())
    if heartbeat:
        heartbeat.leave()
    failure = gate.shell.failure
    if failure is None:
        gate.stop(patience=5.0 if controller else 0.5, drain_to=heartbeat.address if heartbeat else None)
    else:
        gate.end_calls(patience=2.0)
    # Flight waits for pushes that are still open; what they sent is durable or was not answered.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0 if failure is None else 1)


_LIMIT_LASTS: Final = 30.0
"""As long as a controller remembers a run that is silent."""


class Heartbeat:
    """Registers a gate with a controller every second; the gate also serves while the controller is away.

    What the controller says of how much the gate takes holds for `lasts` seconds after its last answer.
    """

    def __init__(
        self, controller: str, gate: Gate, access: Access | None = None, lasts: float = _LIMIT_LASTS
    ) -> None:
        self._gate = gate
        self._access = access
        self._controller = Endpoint(controller, access, port=CONTROLLER_PORT)
        self._others = tuple(str(each) for each in self._controller.others)
        self._next: str | None = None
        self._ended = threading.Event()
        self._away = False
        self._limit, self._lasts, self._answered = IntakeLimited(), lasts, time.monotonic()
        gate.directory, gate.follow = self._ask, self._follow
        self._thread = threads.service("penstock-heartbeat", self._run, _LOGGER)
        self._thread.start()

    @property
    def address(self) -> str:
        """The controller that answered last."""
        return str(self._controller.address)

    def _ask(self, request: NextRequest) -> NextSequences:
        return self._controller.ask(request)

    def _follow(self, controller: str) -> None:
        """Register with another controller, which has taken over; those that were given stay known."""
        self._next = "/".join(dict.fromkeys((str(Address.parse(controller, CONTROLLER_PORT)), *self._others)))

    def leave(self) -> None:
        """Register for the last time, as draining."""
        self._ended.set()
        self._thread.join()
        self._register(draining=True)

    def _run(self) -> None:
        while True:
            try:
                self._register(draining=self._gate.state.draining or self._gate.shell.failure is not None)
            except Exception:
                _LOGGER.exception("the gate could not be registered; trying again each second")
            if self._ended.wait(_EVERY):
                return

    def _register(self, *, draining: bool) -> None:
        state = self._gate.state
        message = Register(
            gate=self._gate.address,
            log=self._gate.log.catalogue.log,
            streams=len(state.streams),
            rows=state.counts["rows"],
            bytes=state.counts["bytes"],
            pending_bytes=state.pending_bytes,
            draining=draining,
            life=self._gate.log.boot,
            batches=state.counts["batches"],
            cpu_seconds=self._gate.cpu.seconds(),
            oldest_seconds=oldest_seconds(state, time.time()),
            cores=cores(),
            rows_per_second=float(self._gate.limits.rows_per_second) or None,
            store_bytes=self._gate.log.bytes,
            room_bytes=room(self._gate.log, self._gate.limits),
            holding=self._gate.forgotten.found,
        )
        following, self._next = self._next, None
        if following is not None:
            # The one before may be in use by a question under way, which ends it.
            self._controller = Endpoint(following, self._access)
        try:
            known = self._controller.ask(message, _TIMEOUT)
            if known.term is not None:
                self._gate.shell.obey(known.term)
            self._gate.shell.control(ReadersListed(known.readers, known.forgotten))
            self._answered = time.monotonic()
            self._limited(IntakeLimited(known.most_rows or 0.0, known.reason or ""))
        except (IngestError, OSError) as error:
            if time.monotonic() - self._answered >= self._lasts:
                self._limited(IntakeLimited())
            if not self._away:
                _LOGGER.warning("the gate is not registered (%s); trying again each second", str(error)[:200])
            self._away = True
        else:
            if self._away:
                _LOGGER.warning("the gate is registered again")
            self._away = False

    def _limited(self, limit: IntakeLimited) -> None:
        if limit != self._limit:
            self._gate.shell.control(limit)
            self._limit = limit
