"""The thread that looks at gates, has the steering decide, and tells gates what became of it.

Calls to gates are made without the lock of the registry; what they answer is taken in with it. A gate that
does not answer is left out: its streams have no value in that period.
"""

import logging
import threading
import time
from collections.abc import Iterable
from typing import Final, TypeVar

from penstock import threads
from penstock.errors import IngestError, Superseded
from penstock.ingest.directory.measuring import Look
from penstock.ingest.directory.registry import GateMode
from penstock.ingest.directory.steering import Moves, Steering
from penstock.ingest.security.access import Access
from penstock.ingest.wire.codec import Message
from penstock.ingest.wire.flight import Endpoint
from penstock.ingest.wire.protocol import (
    Drain,
    Follow,
    GateStatisticsRequest,
    RedirectStreams,
    Request,
)

__all__ = ["ControlLoop"]

CALL_S: Final = 2.0
TICK_S: Final = 0.25
LEAVING_S: Final = 1.0
"""Between two looks at gates that are to be stopped."""
CALLED_S: Final = 120.0
"""A gate that does not answer for so long after a takeover has to come by itself."""
_LOGGER = logging.getLogger("penstock.controller")
AnswerT = TypeVar("AnswerT", bound=Message)


class ControlLoop:
    """Decides every `period` seconds, and looks after starting and stopping gates more often."""

    def __init__(  # noqa: PLR0913, PLR0917 -- what it works on
        self,
        steering: Steering,
        lock: threading.Lock,
        access: Access,
        address: str,
        period: float,
        lost: threading.Event,
    ) -> None:
        self._steering, self._fleet, self._registry = steering, steering.fleet, steering.registry
        self._lock = lock
        self._access, self._address = access, address
        self._period = period
        self._endpoints: dict[str, Endpoint] = {}
        self._untold: Moves = {}
        """Redirections that a gate has not heard of, by the gate; told again until it has."""
        self._drained: set[str] = set()
        """The closing gates that have said that they take no rows."""
        self._lost = lost
        self._stop = threading.Event()
        self._thread = threads.service("penstock-directory-control", self._run, _LOGGER)
        self._caller = threads.service("penstock-directory-call", self._call_gates, _LOGGER)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._caller.start()

    def stop(self) -> None:
        """End after the call under way."""
        self._stop.set()
        self._thread.join()
        self._caller.join()
        for each in self._endpoints.values():
            each.close()

    def _call_gates(self) -> None:
        """Have the gates of an earlier controller register here, until all that answer have done so."""
        with self._lock:
            silent = [each.address for each in self._registry.gates() if not each.info.get("log")]
        end = time.monotonic() + CALLED_S
        while silent and time.monotonic() < end and not self._lost.is_set():
            for gate in silent:
                try:
                    with Endpoint(gate, self._access) as endpoint:
                        endpoint.ask(Follow(self._address), CALL_S)
                except IngestError as error:
                    _LOGGER.debug("gate %s did not follow: %s", gate, error)
                if self._stop.is_set():
                    return
            if self._stop.wait(LEAVING_S):
                return
            with self._lock:
                heard = {each.address for each in self._registry.gates() if each.info.get("log")}
                known = {each.address for each in self._registry.gates()}
            silent = [each for each in silent if each in known - heard]

    def _run(self) -> None:
        due, leaving = time.monotonic() + self._period, 0.0
        while not self._stop.wait(min(TICK_S, max(due - time.monotonic(), 0.0))):
            try:
                self._registry.check()
                self._look_after()
                if time.monotonic() >= leaving:
                    leaving = time.monotonic() + LEAVING_S
                    self._let_go()
                if time.monotonic() >= due:
                    # A period that was missed is not made up for.
                    due = max(due + self._period, time.monotonic() + self._period / 2)
                    self._decide()
            except Superseded as error:
                _LOGGER.critical("%s", error)
                self._lost.set()
                return
            except Exception:
                _LOGGER.exception("a look at the gates failed; the next one is in %g s", TICK_S)

    def _look_after(self) -> None:
        now = time.time()
        with self._lock:
            moves = [self._steering.gate_came(each, now) for each in self._fleet.look_after(now)]
        untold, self._untold = self._untold, {}
        for each in (untold, *moves):
            self._tell(each)

    def _decide(self) -> None:
        with self._lock:
            now = time.time()
            gates = [each.address for each in self._registry.gates()]
            there = [each for each in gates if not self._registry.is_away(each, now)]
        looks = self._looks(there)
        with self._lock:
            moves = self._steering.period(looks, time.time())
        self._tell(moves)

    def _let_go(self) -> None:
        """Close the draining gates that are read, and stop those that were closed and still are."""
        with self._lock:
            leaving = [
                each
                for each in self._fleet.managed
                if self._registry.mode(each) in {GateMode.DRAINING, GateMode.CLOSING}
            ]
        self._drained &= set(leaving)
        if not leaving:
            return
        looks = self._looks(leaving)
        with self._lock:
            # What a gate tells after it has drained holds for good.
            read = {gate: looks[gate] for gate in looks if gate in self._drained}
            self._fleet.stop_closed(read, time.time())
            for each in self._fleet.to_close(looks):
                self._fleet.closed(each)  # nobody is sent there any more, before it is told
            closing = [each for each in leaving if self._registry.mode(each) is GateMode.CLOSING]
        for gate in closing:
            if gate not in self._drained and self._ask(gate, Drain(self._address)) is not None:
                self._drained.add(gate)

    def _looks(self, gates: Iterable[str]) -> dict[str, Look]:
        found = {}
        for gate in gates:
            answer = self._ask(gate, GateStatisticsRequest())
            if answer is not None:
                found[gate] = Look(time.time(), answer)
        return found

    def _tell(self, moves: Moves) -> None:
        for source, targets in moves.items():
            for target, streams in targets.items():
                if self._ask(source, RedirectStreams(tuple(streams), target)) is None:
                    self._keep(source, target, streams)

    def _keep(self, source: str, target: str, streams: list[str]) -> None:
        """Tell a gate again later, unless it is away: its clients ask by themselves."""
        with self._lock:
            there = not self._registry.is_away(source, time.time())
            still = [each for each in streams if self._registry.gate_of(each) == target]
        if there and still:
            self._untold.setdefault(source, {})[target] = still
        else:
            _LOGGER.warning("gate %s is away; clients of %d streams will ask", source, len(streams))

    def _ask(self, gate: str, request: Request[AnswerT]) -> AnswerT | None:
        """What a gate answers; None if it does not."""
        endpoint = self._endpoints.get(gate)
        if endpoint is None:
            endpoint = self._endpoints[gate] = Endpoint(gate, self._access)
        try:
            return endpoint.ask(request, CALL_S)
        except IngestError as error:
            _LOGGER.debug("gate %s did not answer: %s", gate, error)
            self._endpoints.pop(gate).close()
            return None
