"""What an operator asks of a controller: streams and gates moved by hand, and what is gone forgotten.

It goes the way of every decision: durable before a gate hears of it, and recorded with the reason `ASKED`. A
gate that an operator has drained is not used again, also after a restart, before the operator says so.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from penstock.control.admission import Decision, DrainGate, Redirect, StartGate
from penstock.errors import BadMessage, IngestError, NoGate
from penstock.ingest.directory.registry import GateMode
from penstock.ingest.directory.steering import Moves, Steering
from penstock.ingest.wire.flight import Endpoint
from penstock.ingest.wire.protocol import DeleteInlet, ForgetReader, RedirectStreams, Request

__all__ = ["ASKED", "Operator"]

ASKED: Final = "asked by an operator"
_CALL_S: Final = 2.0
_LOGGER = logging.getLogger("penstock.controller")


class Operator:
    """Carries out what operators ask; every method takes the lock, and calls gates without it."""

    def __init__(self, steering: Steering, lock: threading.Lock, open_: Callable[[str], Endpoint]) -> None:
        self._steering, self._registry, self._fleet = steering, steering.registry, steering.fleet
        self._lock, self._open = lock, open_

    def redirect(self, streams: list[str], to: str) -> dict[str, list[str]]:
        """Move streams to a gate; tells the gates they are at, which tell the clients.

        Returns the streams that were moved and those whose gate did not answer: their clients will ask.
        """
        with self._lock:
            now = time.time()
            before = {each: self._registry.gate_of(each) or "" for each in streams}
            leaving = self._registry.move(streams, to, now)
            decided = [
                Redirect(stream, before[stream], to, ASKED) for group in leaving.values() for stream in group
            ]
            self._steering.asked(decided, now)
        return self._tell({gate: {to: group} for gate, group in leaving.items()})

    def drain(self, gate: str) -> dict[str, list[str]]:
        """Move all streams away from a gate and use it no more; where to is what admission says."""
        with self._lock:
            now = time.time()
            self._check_drained(gate, now)
            self._registry.keep_out(gate, ASKED)
            self._fleet.drain(gate)
            # One that has gone enters anew when it is back.
            own = [each.stream for each in self._registry.present() if each.gate == gate]
            decided: list[Decision] = [DrainGate(gate, ASKED)]
            moves: dict[str, list[str]] = {}
            for stream in own:
                target = self._moved(stream, now)
                if target is not None:
                    moves.setdefault(target, []).append(stream)
                    decided.append(Redirect(stream, gate, target, ASKED))
            self._steering.asked(decided, now)
        _LOGGER.info("gate %s is drained, %s", gate, ASKED)
        return self._tell({gate: moves})

    def _moved(self, stream: str, now: float) -> str | None:
        """The new gate of a stream; None if it is being started, and the stream moves when it is there."""
        try:
            return self._registry.where({stream: None}, now, self._steering.admit)[stream]
        except NoGate:
            return None

    def _check_drained(self, gate: str, now: float) -> None:
        there = [each.address for each in self._registry.gates()]
        if gate not in there:
            raise BadMessage(f"no gate {gate} is known; the gates are: {', '.join(there) or 'none'}")
        if self._registry.mode(gate) is GateMode.STARTING:
            raise BadMessage(f"gate {gate} is being started; drain it when it is there")
        others = [each for each in there if each != gate and self._registry.accepts(each, now)]
        if not others and not [each for each in self._fleet.startable(now) if each != gate]:
            raise NoGate(f"no other gate can take the streams of gate {gate}; start one, then drain it")

    def use(self, gate: str) -> None:
        """Let admission use a gate again that was drained."""
        with self._lock:
            now = time.time()
            if self._registry.kept_out(gate) is None:
                out = ", ".join(sorted(self._registry.all_kept_out())) or "none"
                raise BadMessage(f"gate {gate} was not drained; the drained ones are: {out}")
            self._registry.keep_out(gate, None)
            if self._registry.mode(gate) is not None:
                self._fleet.start(gate, now)
            self._steering.asked([StartGate(gate, ASKED)], now)

    def forget_reader(self, inlet: str, reader: str) -> None:
        """Forget a reader that does not come back; gates that are away hear of it when they register."""
        with self._lock:
            self._registry.forget_reader(inlet, reader)
            there = self._there()
        for gate in there:
            if not self._told(gate, ForgetReader(inlet, reader)):
                _LOGGER.info("gate %s hears later that reader %s is forgotten", gate, reader)

    def delete_inlet(self, inlet: str) -> None:
        """Delete an inlet at all gates, its readers and its streams; refused while a gate is away.

        A gate that refuses, since a client pushes there, leaves the rest as it is: ask again.
        """
        with self._lock:
            gates, there = [each.address for each in self._registry.gates()], self._there()
            known = inlet in self._registry.inlets()
        away = sorted({*gates} - {*there})
        if away:
            raise NoGate(
                f"gate {away[0]} is away and may hold rows of inlet {inlet!r}; start it, or forget it, then "
                "delete the inlet"
            )
        if not known:
            raise BadMessage(f"no inlet {inlet!r} is known; `penstock streams` lists all streams")
        for gate in gates:
            with self._open(gate) as endpoint:
                endpoint.ask(DeleteInlet(inlet))
        with self._lock:
            for each in self._registry.readers():
                if each.inlet == inlet:
                    self._registry.forget_reader(inlet, each.reader)
            self._registry.forget_streams([each.stream for each in self._registry.streams(inlet)])
        _LOGGER.warning("inlet %s is deleted, %s", inlet, ASKED)

    def _there(self) -> list[str]:
        now = time.time()
        return [
            each.address for each in self._registry.gates() if not self._registry.is_away(each.address, now)
        ]

    def _tell(self, moves: Moves) -> dict[str, list[str]]:
        moved: list[str] = []
        unreached: list[str] = []
        for gate, targets in moves.items():
            for target, group in targets.items():
                if self._told(gate, RedirectStreams(tuple(group), target)):
                    moved += group
                else:
                    _LOGGER.warning("gate %s was not told to redirect %d streams", gate, len(group))
                    unreached += group
        return {"moved": moved, "unreached": unreached}

    def _told(self, gate: str, request: Request[Any]) -> bool:
        try:
            with self._open(gate) as endpoint:
                endpoint.ask(request, _CALL_S)
        except IngestError as error:
            _LOGGER.debug("gate %s did not answer: %s", gate, error)
            return False
        return True
