"""Runs a policy of admission on live gates: looks at them every period, decides, and has it carried out.

What holds: an assignment is durable before a gate or a client hears of it; a policy that fails changes
nothing; in the mode `observe` everything is decided and recorded and nothing is done. The caller of
every method holds the lock of the registry, except where it says otherwise.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from penstock.control.admission import (
    NOWHERE,
    Admission,
    AdmissionSetup,
    Admit,
    Arrivals,
    Decision,
    DrainGate,
    Redirect,
    Seen,
    StartGate,
)
from penstock.errors import NoGate
from penstock.forecast import CHARACTERISTICS
from penstock.ingest.directory.fleet import Fleet
from penstock.ingest.directory.journal import Journal
from penstock.ingest.directory.measuring import ROWS, Look, Measuring, StreamMeasure
from penstock.ingest.directory.registry import StreamRegistry

__all__ = ["ControlMode", "GateView", "Moves", "Steering"]

ControlMode = Literal["on", "observe"]
_LOGGER = logging.getLogger("penstock.controller")
PATIENCE_S: Final = 60.0
"""A stream that has not asked again for so long does not wait for its gate any more."""
_RATES: Final = frozenset({"max_rate", "min_rate", "expected_rate", "burst_peak"})
_NAMES: Final = tuple(each for each in CHARACTERISTICS if each != "phase")
_TRANSITIONS: Final = {"jump": 0.0, "trend": 1.0}

Moves = dict[str, dict[str, list[str]]]
"""Streams to be told, by the gate that they leave and the gate that they go to."""


@dataclass(frozen=True, slots=True)
class GateView:
    """A gate as the policy saw it last: the work of its streams a second, and what it can take."""

    load: float
    capacity: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A stream whose gate is or was being started, with what it declared when it asked, and when."""

    gate: str
    metadata: Mapping[str, Any] | None
    since: float


class Steering:
    """A policy and its surroundings; without a setup it only measures."""

    def __init__(
        self,
        registry: StreamRegistry,
        fleet: Fleet,
        setup: AdmissionSetup | None,
        mode: ControlMode = "on",
        journal: Journal | None = None,
    ) -> None:
        self.registry = registry
        self.fleet = fleet
        self.setup = setup
        self.mode = mode
        self._journal = journal
        self._policy: Admission | None = None
        if setup is not None:
            self._policy = (journal.policy() if journal else None) or setup.policy()
        price = setup.price if setup is not None else None
        self._measuring = Measuring(price or ROWS, fitted=setup is not None and setup.fitted)
        self._waiting: dict[str, _Waiting] = {}
        self._streams: tuple[str, ...] = ()
        self._declared: dict[str, NDArray[np.float64]] = {}
        self._declared_by: tuple[Any, ...] = ()
        self._said: dict[tuple[str, str], Any] = {}
        self.forecasts: dict[str, float] = {}
        self.waits: dict[str, float] = {}
        """Seconds that a row waits for each gate, by what its clients hold."""
        self.views: dict[str, GateView] = {}
        self.why: dict[str, str] = {}
        """The reason of the last decision about each gate."""

    def measure(self, stream: str) -> StreamMeasure:
        """What gates last told of a stream."""
        return self._measuring.streams.get(stream, StreamMeasure())

    def close(self) -> None:
        """Write what is held back."""
        if self._journal is not None:
            self._journal.close()

    # ---- streams that ask ------------------------------------------------------------------------------

    def admit(self, asked: Mapping[str, Mapping[str, Any] | None], now: float) -> dict[str, str | None]:
        """The gates of new streams; None for one whose gate is being started.

        It leaves streams out if there is no policy, or it fails.
        """
        found: dict[str, str | None] = {}
        if self._policy is None:
            return found
        for stream in asked:
            known = self._waiting.get(stream)
            if known is not None and self.registry.accepts(known.gate, now):
                found[stream] = known.gate
                del self._waiting[stream]
            elif known is not None and known.gate in self.fleet.starting():
                found[stream] = None
        new = {stream: metadata for stream, metadata in asked.items() if stream not in found}
        return found | (self._admit_new(self._policy, new, now) if new else {})

    def _admit_new(
        self, policy: Admission, new: Mapping[str, Mapping[str, Any] | None], now: float
    ) -> dict[str, str | None]:
        assert self.setup is not None
        gates = sorted({*self._open_gates(now), *self.fleet.starting()})
        capacity = self.fleet.capacity(gates, self.setup.capacity)
        startable = tuple(self.fleet.startable(now))
        streams = tuple(sorted(new))
        declared = self._characteristics(streams, [new[each] for each in streams])
        arrivals = Arrivals(now, streams, gates, capacity, declared, startable)
        try:
            self._begin(policy)
            decisions = policy.admit(arrivals)
        except Exception:
            _LOGGER.exception("admission of %d streams failed; they go where the rate is lowest", len(new))
            self._cut()
            return {}
        self._record(arrivals, decisions)
        self._note(decisions)
        if self.mode == "observe":
            return {}
        found: dict[str, str | None] = {}
        for each in decisions:
            if isinstance(each, StartGate):
                self._say(each)
                self.fleet.start(each.gate, now)
            elif isinstance(each, Admit):
                ready = self.registry.accepts(each.gate, now)
                found[each.stream] = each.gate if ready else None
                if not ready:
                    self._waiting[each.stream] = _Waiting(each.gate, new[each.stream], now)
        return found

    def _open_gates(self, now: float) -> list[str]:
        return [each.address for each in self.registry.gates() if self.registry.accepts(each.address, now)]

    # ---- periods ---------------------------------------------------------------------------------------

    def period(self, looks: Mapping[str, Look], now: float) -> Moves:
        """Measure, decide and make it durable; what is to be told to whom, without the lock."""
        self._adopt_declared(looks)
        usable = {*self.fleet.starting(), *self._open_gates(now)}
        self._waiting = {
            stream: each
            for stream, each in self._waiting.items()
            if each.gate in usable and now - each.since < PATIENCE_S
        }
        seen = self._seen(looks, now)
        policy = self._policy
        if policy is None:
            return {}
        try:
            self._begin(policy)
            policy.observe(seen)
            decisions = policy.decide(now)
            self.forecasts = policy.expected()
        except Exception:
            _LOGGER.exception("admission failed; every stream stays where it is")
            self._cut()
            return {}
        self._record(seen, decisions)
        self._note(decisions)
        return self._carry_out(decisions, now) if self.mode == "on" else {}

    def gate_came(self, gate: str, now: float) -> Moves:
        """Move the streams that waited for a gate; new ones hear of it when they ask again."""
        there = {each.stream for each in self.registry.streams()}
        waited = [stream for stream, each in self._waiting.items() if each.gate == gate and stream in there]
        for stream in waited:
            del self._waiting[stream]
        return self._move({gate: waited}, now) if waited else {}

    def _carry_out(self, decisions: Sequence[Decision], now: float) -> Moves:
        for each in decisions:
            if isinstance(each, StartGate):
                self._say(each)
                self.fleet.start(each.gate, now)
        starting = set(self.fleet.starting())
        targets: dict[str, list[str]] = {}
        for each in decisions:
            if isinstance(each, Admit | Redirect):
                target = each.gate if isinstance(each, Admit) else each.target
                _LOGGER.debug("stream %s goes to gate %s: %s", each.stream, target, each.reason)
                known = self._waiting.pop(each.stream, None)
                if target in starting:
                    metadata = self.registry.metadata(each.stream) or (known.metadata if known else None)
                    self._waiting[each.stream] = _Waiting(target, metadata, now)
                else:
                    targets.setdefault(target, []).append(each.stream)
        moves = self._move(targets, now)
        for each in decisions:
            if isinstance(each, DrainGate):
                self._say(each)
                self.fleet.drain(each.gate)
        return moves

    def _move(self, targets: Mapping[str, Sequence[str]], now: float) -> Moves:
        moves: Moves = {}
        known = {each.stream for each in self.registry.streams()}
        for target, streams in targets.items():
            try:
                leaving = self.registry.move([each for each in streams if each in known], target, now)
            except NoGate as error:
                _LOGGER.warning("%d streams stay where they are: %s", len(streams), error)
                continue
            for source, group in leaving.items():
                moves.setdefault(source, {})[target] = group
        return moves

    # ---- what the policy sees --------------------------------------------------------------------------

    def _seen(self, looks: Mapping[str, Look], now: float) -> Seen:
        registered = [each for each in self.registry.gates() if not each.info.get("draining")]
        used = [each.address for each in registered if self.registry.mode(each.address) == "active"]
        gates = tuple(sorted({*used, *self.fleet.starting()}))
        places = {gate: place for place, gate in enumerate(gates)}
        # A stream that was declared and never asked for a gate is not there yet.
        at = {each.stream: each.gate for each in self.registry.streams() if each.gate}
        homes = at | {stream: each.gate for stream, each in self._waiting.items()}
        streams = tuple(sorted(homes))
        if streams == self._streams:
            streams = self._streams  # the same object tells the forecasts that nothing came or went
        self._streams = streams
        home = np.array([places.get(homes[each], NOWHERE) for each in streams], np.int64)
        # A stream that waits for a gate is measured where it still is.
        measured = self._measuring.period(now, {each: at.get(each) for each in streams}, looks)
        capacity = self.fleet.capacity(gates, 1.0 if self.setup is None else self.setup.capacity)
        queue = np.bincount(home[home >= 0], measured.waiting[home >= 0], len(gates))
        starting = set(self.fleet.starting())
        away = np.array(
            [each not in starting and self.registry.is_away(each, now) for each in gates], np.bool_
        )
        waiting = np.where(away, np.nan, queue / capacity)
        loads = np.bincount(home[home >= 0], np.nan_to_num(measured.work)[home >= 0], len(gates))
        told = zip(gates, loads.tolist(), capacity.tolist(), strict=True)
        self.views = {gate: GateView(load, most) for gate, load, most in told} if self.setup else {}
        self.waits = {gate: round(each, 3) for gate, each in zip(gates, waiting.tolist(), strict=True)}
        return Seen(
            at=now,
            streams=streams,
            gates=gates,
            home=home,
            work=measured.work,
            capacity=capacity,
            waiting=waiting,
            open=~away,
            declared=self._declared_now(streams),
            away=away,
            startable=tuple(self.fleet.startable(now)),
        )

    def _declared_now(self, streams: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
        costs = self._measuring.row_costs(streams)
        by = (streams, self.registry.declared_version, len(self._waiting), costs.tobytes())
        if by != self._declared_by:
            metadata = [
                self.registry.metadata(each)
                or (self._waiting[each].metadata if each in self._waiting else None)
                for each in streams
            ]
            self._declared, self._declared_by = self._characteristics(streams, metadata, costs), by
        return self._declared

    def _characteristics(
        self,
        streams: Sequence[str],
        metadata: Sequence[Mapping[str, Any] | None],
        costs: NDArray[np.float64] | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """What streams declare as the policy takes it: rates as work, jump and trend as numbers."""
        said = [each or {} for each in metadata]
        costs = self._measuring.row_costs(streams) if costs is None else costs
        found = {}
        for name in _NAMES:
            if name == "transition":
                values = [_TRANSITIONS.get(str(each.get(name)), np.nan) for each in said]
            else:
                values = [each.get(name, np.nan) for each in said]
            column = np.array(values, np.float64)
            found[name] = column * costs if name in _RATES else column
        return found

    def _adopt_declared(self, looks: Mapping[str, Look]) -> None:
        """Take over what was declared to gates since the last look; who declared last is right."""
        for gate, look in looks.items():
            for stream, told in look.told.streams.items():
                said = told.get("metadata")
                if said is None or self._said.get((gate, stream)) == said:
                    continue
                new = (gate, stream) in self._said
                self._said[gate, stream] = said
                if self.registry.knows(stream) and (new or self.registry.metadata(stream) is None):
                    self.registry.declare(stream, said)
        self._said = {each: said for each, said in self._said.items() if self.registry.knows(each[1])}

    # ---- the record ------------------------------------------------------------------------------------

    def _begin(self, policy: Admission) -> None:
        if self._journal is not None and self.setup is not None:
            self._journal.begin(policy)

    def _record(self, seen: Seen | Arrivals, decisions: Sequence[Decision]) -> None:
        if self._journal is not None:
            self._journal.add(seen, decisions)

    def asked(self, decisions: Sequence[Decision], now: float) -> None:
        """Take note of what an operator has decided."""
        if self._journal is not None and self._policy is not None:
            self._begin(self._policy)
            self._journal.asked(now, decisions)
        self._note(decisions)

    def _note(self, decisions: Sequence[Decision]) -> None:
        """Remember the reasons by gate: to start or drain it says more than a stream that comes or goes."""
        for each in decisions:
            if isinstance(each, Redirect):
                self.why[each.source] = self.why[each.target] = f"{each.stream}: {each.reason}"
        for each in decisions:
            if isinstance(each, StartGate | DrainGate):
                self.why[each.gate] = each.reason

    def _cut(self) -> None:
        if self._journal is not None:
            self._journal.cut()

    def _say(self, decision: StartGate | DrainGate) -> None:
        verb = "started" if isinstance(decision, StartGate) else "emptied"
        _LOGGER.info("gate %s is to be %s: %s", decision.gate, verb, decision.reason)
