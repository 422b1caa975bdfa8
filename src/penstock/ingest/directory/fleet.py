"""Which gates are used: free, starting, active, draining; started and stopped through a manager of nodes.

    free ──▶ starting ──▶ active ──▶ draining ──▶ closing ──▶ stopping ──▶ free
                            ▲────────────┘   all read      nothing came since

A gate that drains gets no streams, and readers take what it holds. If it is needed meanwhile, it is active
again at once. It is stopped and forgotten only when every reader has committed all of its rows, so no row is
lost. A gate that nobody here can start, since it registered by itself, is free instead of draining, and is
not stopped. The caller holds the lock of the registry; a mode is durable before anything follows from it.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.ingest.directory.measuring import Look
from penstock.ingest.directory.nodes import Nodes
from penstock.ingest.directory.registry import GateMode, StreamRegistry

__all__ = ["Fleet"]

AGAIN_S: Final = 5.0
"""Between two tries to start a gate."""
PATIENCE_S: Final = 120.0
"""A gate that has not registered for so long after its start is given up."""
_LOGGER = logging.getLogger("penstock.controller")


@dataclass
class Fleet:
    """The gates of a controller; without `nodes` only those that register by themselves."""

    registry: StreamRegistry
    nodes: Nodes | None = None
    _started: dict[str, float] = field(default_factory=dict)
    _first: dict[str, float] = field(default_factory=dict)
    _stopped: dict[str, float] = field(default_factory=dict)
    startup: float | None = None
    """The seconds that the last gate took to start, None if none has."""

    @property
    def managed(self) -> tuple[str, ...]:
        """The gates that can be started here."""
        return () if self.nodes is None else tuple(self.nodes.gates())

    def shares(self) -> dict[str, float]:
        """What the nodes say that each gate can take, as a multiple of a usual one; others are usual."""
        return {} if self.nodes is None else {each: self.nodes.share(each) for each in self.managed}

    def starting(self) -> list[str]:
        """The gates that are on their way."""
        return [each for each in self.managed if self.registry.mode(each) is GateMode.STARTING]

    def startable(self, now: float) -> list[str]:
        """The gates that could be used in addition: first those that run, then those to be started."""
        idle = [
            each.address
            for each in self.registry.gates()
            if self.registry.mode(each.address) in {GateMode.FREE, GateMode.DRAINING}
            and not self.registry.is_away(each.address, now)
            and not each.info.get("draining")
        ]
        more = [each for each in self.managed if self.registry.mode(each) is None]
        return [each for each in (*idle, *more) if self.registry.kept_out(each) is None]

    def start(self, gate: str, now: float) -> None:
        """Use a gate: at once if it runs."""
        if self.registry.mode(gate) in {GateMode.FREE, GateMode.DRAINING}:
            self.registry.set_mode(gate, GateMode.ACTIVE)
            _LOGGER.info("gate %s is used again", gate)
        elif self.registry.mode(gate) is None and gate in self.managed:
            self.registry.set_mode(gate, GateMode.STARTING)
            self._first[gate] = now
            self._run(gate, now)

    def drain(self, gate: str) -> None:
        """Use a gate no more."""
        if self.registry.mode(gate) is GateMode.ACTIVE:
            mode = GateMode.DRAINING if gate in self.managed else GateMode.FREE
            self.registry.set_mode(gate, mode)
            _LOGGER.info("gate %s is not used any more: it is %s", gate, mode)

    def look_after(self, now: float) -> list[str]:
        """Start what has to run, and take note of what has come and gone; the gates that have just come."""
        if self.nodes is None:
            return []
        come = []
        for gate in self.managed:
            mode, there = self.registry.mode(gate), not self.registry.is_away(gate, now)
            if mode is GateMode.STARTING and there:
                self.registry.set_mode(gate, GateMode.ACTIVE)
                began = self._first.pop(gate, None)
                if began is not None:  # else an earlier controller has started it
                    self.startup = now - began
                come.append(gate)
            elif mode is GateMode.STARTING and now - self._first.setdefault(gate, now) > PATIENCE_S:
                _LOGGER.warning("gate %s has not registered for %g s; it is given up", gate, PATIENCE_S)
                self.nodes.stop(gate)
                self.registry.set_mode(gate, None)
            elif mode is GateMode.STOPPING and not self.nodes.runs(gate):
                self._forget(gate)
            elif mode is GateMode.STOPPING and now - self._stopped.get(gate, -AGAIN_S) >= AGAIN_S:
                self._stop(gate, now)  # a node, or an earlier controller, may not have heard of it
            elif mode not in {None, GateMode.STOPPING} and not there and not self.nodes.runs(gate):
                self._run(gate, now)
        used = [
            each for each in self.managed if self.registry.mode(each) in {GateMode.STARTING, GateMode.ACTIVE}
        ]
        for gate in self.startable(now)[: max(self.nodes.least - len(used), 0)]:
            self.start(gate, now)
        return come

    def to_close(self, looks: Mapping[str, Look]) -> list[str]:
        """The draining gates that hold nothing for readers: they are to take no rows any more."""
        homes = {each.gate for each in self.registry.present()}
        return [
            gate
            for gate in self.managed
            if self.registry.mode(gate) is GateMode.DRAINING and gate not in homes and _read(looks.get(gate))
        ]

    def closed(self, gate: str) -> None:
        """A gate takes no rows any more; it is stopped when it still holds nothing at the next look."""
        self.registry.set_mode(gate, GateMode.CLOSING)

    def stop_closed(self, looks: Mapping[str, Look], now: float) -> None:
        """Stop the gates that take no rows and hold none for readers."""
        for gate in self.managed:
            if self.registry.mode(gate) is GateMode.CLOSING and _read(looks.get(gate)):
                self.registry.set_mode(gate, GateMode.STOPPING)
                self._stop(gate, now)

    def _stop(self, gate: str, now: float) -> None:
        assert self.nodes is not None, "only a managed gate is stopped"
        self._stopped[gate] = now
        self.nodes.stop(gate)

    def _forget(self, gate: str) -> None:
        assert self.nodes is not None, "only a managed gate is stopped"
        self.nodes.clear(gate)
        self.registry.forget_gate(gate)
        self.registry.set_mode(gate, None)
        _LOGGER.info("gate %s is stopped and forgotten: all of its rows were read", gate)

    def _run(self, gate: str, now: float) -> None:
        if self.nodes is not None and now - self._started.get(gate, -AGAIN_S) >= AGAIN_S:
            self._started[gate] = now
            self.nodes.start(gate)


def _read(look: Look | None) -> bool:
    """Whether a gate holds nothing that a reader needs, and nothing is on its way there."""
    return (
        look is not None
        and not look.told.pending_bytes
        and not any(each["kept_rows"] or each["client_rows"] for each in look.told.streams.values())
    )
