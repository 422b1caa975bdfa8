"""Runs a policy of admission on live gates: looks at them every period, decides, and has it carried out.

What holds: an assignment is durable before a gate or a client hears of it; a policy that fails changes
nothing; in the mode `observe` everything is decided and recorded and nothing is done. The caller of
every method holds the lock of the registry, except where it says otherwise.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.control.admission import (
    NOWHERE,
    AdmissionSetup,
    Admit,
    Arrivals,
    Costs,
    Decision,
    DrainGate,
    Redirect,
    Seen,
    StartGate,
)
from penstock.control.expected import Expected, QueryLoad
from penstock.control.ruling import DRY_RUN
from penstock.errors import NoGate
from penstock.forecast import CHARACTERISTICS
from penstock.ingest.directory.fleet import Fleet
from penstock.ingest.directory.journal import Journal
from penstock.ingest.directory.measuring import Ability, Look, Measuring, StreamMeasure
from penstock.ingest.directory.queries import Queries
from penstock.ingest.directory.registry import StreamRegistry
from penstock.ingest.wire.protocol import inlet_of

__all__ = ["GateView", "Moves", "Steering"]

_LOGGER = logging.getLogger("penstock.controller")
AHEAD: Final = 12
"""The periods that runs are told of."""
PATIENCE_S: Final = 60.0
"""A stream that has not asked again for so long does not wait for its gate any more."""
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
    """A policy and its surroundings; in the mode "off" it only measures."""

    def __init__(
        self,
        registry: StreamRegistry,
        fleet: Fleet,
        setup: AdmissionSetup,
        journal: Journal | None = None,
    ) -> None:
        self.registry = registry
        self.fleet = fleet
        self._setup = setup
        self._journal = journal
        known = journal.resumed() if journal is not None else None
        self._policy, self._control = known or setup.policy_and_controller()
        self._measuring = Measuring(setup.capacity, setup.bound)
        if journal is not None:
            self._measuring.resume(journal.learnt)
        self._periods = 0
        self._waiting: dict[str, _Waiting] = {}
        self._streams: tuple[str, ...] = ()
        self._declared: dict[str, NDArray[np.float64]] = {}
        self._declared_by: tuple[Any, ...] = ()
        self._said: dict[tuple[str, str], Any] = {}
        self._missing: set[str] = set()
        self._queries = Queries()
        self._ahead: dict[str, tuple[NDArray[np.float64], float]] | None = None
        self._looked = 0.0
        self.intake: dict[str, tuple[float, str]] = {}
        """The gates that should take no more than so many rows a second for now, and why."""
        self.waits: dict[str, float] = {}
        """Seconds that a row waits for each gate, by what its clients hold."""
        self._costs: Costs | None = None
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
        if self._setup.mode == "off":
            return found
        for stream in asked:
            known = self._waiting.get(stream)
            if known is not None and self.registry.accepts(known.gate, now):
                found[stream] = known.gate
                del self._waiting[stream]
            elif known is not None and known.gate in self.fleet.starting():
                found[stream] = None
        new = {stream: metadata for stream, metadata in asked.items() if stream not in found}
        return found | (self._admit_new(new, now) if new else {})

    def _admit_new(self, new: Mapping[str, Mapping[str, Any] | None], now: float) -> dict[str, str | None]:
        gates = sorted({*self._open_gates(now), *self.fleet.starting()})
        streams = tuple(sorted(new))
        arrivals = Arrivals(
            now,
            streams,
            gates,
            self._capacity_of(gates),
            _characteristics([new[each] for each in streams]),
            tuple(self.fleet.startable(now)),
            self._measuring.costs(streams, self._abilities()),
            self._new_capacity(),
        )
        try:
            self._begin()
            decisions = self._policy.admit(arrivals)
        except Exception:
            _LOGGER.exception(
                "admission of %d streams failed; they go where the fewest streams are", len(new)
            )
            self._cut()
            return {}
        if self._journal is not None:
            self._journal.arrivals(arrivals, decisions)
        self._note(decisions)
        if self._setup.mode == "observe":
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
        self._come_and_go(looks)
        usable = {*self.fleet.starting(), *self._open_gates(now)}
        self._waiting = {
            stream: each
            for stream, each in self._waiting.items()
            if each.gate in usable and now - each.since < PATIENCE_S
        }
        seen = self._seen(looks, now)
        self._looked = now
        self._limit_intake(seen, now)
        self._ahead = None
        if self._setup.mode == "off":
            return {}
        self._begin()
        self._control.observe(seen)
        rulings = self._control.decide(now)
        failed = [each for each in rulings if each.failed]
        for each in failed:
            _LOGGER.error("admission: %s", each.held)
        if failed:
            self._cut()
        elif self._journal is not None:
            self._journal.period(seen, rulings)
        self._note([each.decision for each in rulings if each.carried_out or each.held == DRY_RUN])
        return self._carry_out([each.decision for each in rulings if each.carried_out], now)

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

    # ---- the runs behind the gates -----------------------------------------------------------------------

    def query(
        self, inlet: str, reader: str, load: QueryLoad, now: float, *, by_stream: bool
    ) -> Expected | None:
        """A run says how it is; the rates that it has to expect, None as long as nobody knows."""
        self._queries.tell(inlet, reader, load, now)
        own = {stream: each for stream, each in self._rates_ahead().items() if inlet_of(stream) == inlet}
        if not own:
            return None
        return Expected.of(self._looked, self._setup.period, own, single=by_stream)

    @property
    def forecasts(self) -> dict[str, float]:
        """Rows a second of each stream in the next period."""
        return {stream: float(path[0]) for stream, (path, _) in self._rates_ahead().items()}

    @property
    def work_ahead(self) -> dict[str, float]:
        """The work of each stream in the next period, in the unit of capacities."""
        forecasts = self.forecasts
        rates = np.array([forecasts.get(each, np.nan) for each in self._streams], np.float64)
        told = zip(self._streams, self._work(rates).tolist(), strict=True)
        return {stream: work for stream, work in told if stream in forecasts}

    def _work(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the streams of the last period take of gates at these rates; 0 where nobody knows a rate."""
        known = np.nan_to_num(rates)
        return known if self._costs is None else self._costs.work(known)

    def _rates_ahead(self) -> dict[str, tuple[NDArray[np.float64], float]]:
        if self._ahead is None:
            self._ahead = self._policy.expectations.rates_ahead(AHEAD)
        return self._ahead

    def _limit_intake(self, seen: Seen, now: float) -> None:
        """Gates take no more than the runs behind them."""
        rates: dict[str, dict[str, float]] = {}
        for stream, home, rate in zip(
            seen.streams, seen.home.tolist(), np.nan_to_num(seen.rates).tolist(), strict=True
        ):
            if home != NOWHERE:
                inlets = rates.setdefault(seen.gates[home], {})
                inlets[inlet_of(stream)] = inlets.get(inlet_of(stream), 0.0) + rate
        before, self.intake = self.intake, self._queries.intake(rates, now)
        if self._setup.mode != "on":
            self.intake = {}
        for gate in self.intake.keys() - before.keys():
            rows, why = self.intake[gate]
            _LOGGER.info("gate %s takes %.0f rows/s for now: %s", gate, rows, why)

    # ---- what the policy sees --------------------------------------------------------------------------

    def _seen(self, looks: Mapping[str, Look], now: float) -> Seen:
        registered = [each for each in self.registry.gates() if not each.info.get("draining")]
        used = [each.address for each in registered if self.registry.mode(each.address) == "active"]
        gates = tuple(sorted({*used, *self.fleet.starting()}))
        places = {gate: place for place, gate in enumerate(gates)}
        # A stream that was declared and never asked for a gate is not there yet.
        at = {each.stream: each.gate for each in self.registry.present()}
        homes = at | {stream: each.gate for stream, each in self._waiting.items()}
        streams = tuple(sorted(homes))
        if streams == self._streams:
            streams = self._streams  # the same object tells the forecasts that nothing came or went
        self._streams = streams
        home = np.array([places.get(homes[each], NOWHERE) for each in streams], np.int64)
        # A stream that waits for a gate is measured where it still is.
        where = {each: at.get(each) for each in streams}
        measured = self._measuring.period(now, where, looks, self._abilities(), self.intake)
        starting = set(self.fleet.starting())
        away = np.array(
            [each not in starting and self.registry.is_away(each, now) for each in gates], np.bool_
        )
        waits = [measured.waiting.get(each, 0.0) for each in gates]
        waiting = np.where(away, np.nan, np.array(waits, np.float64))
        self.waits = {gate: round(each, 3) for gate, each in zip(gates, waiting.tolist(), strict=True)}
        capacity, self._costs = self._capacity_of(gates), measured.costs
        loads = np.bincount(home[home >= 0], self._work(measured.rates)[home >= 0], len(gates))
        told = zip(gates, loads.tolist(), capacity.tolist(), strict=True)
        self.views = {gate: GateView(load, most) for gate, load, most in told}
        self._periods += 1
        return Seen(
            at=now,
            streams=streams,
            gates=gates,
            home=home,
            rates=measured.rates,
            capacity=capacity,
            waiting=waiting,
            open=~away,
            declared=self._declared_now(streams),
            away=away,
            # More gates do not help a run that cannot take what the present ones would.
            startable=() if self.intake else tuple(self.fleet.startable(now)),
            prices=measured.costs,
            new_capacity=self._new_capacity(),
            learnt=self._measuring.to_json(),
            epoch=self._periods,
            seconds=self._setup.period,
            startup=self.fleet.startup,
        )

    def _capacity_of(self, gates: Sequence[str]) -> NDArray[np.float64]:
        shares = self.fleet.shares()
        return np.array([self._measuring.capacity_of(each, shares) for each in gates], np.float64)

    def _new_capacity(self) -> float:
        """What a gate is taken to be able to do that is about to be started: as much as a usual one."""
        return self._measuring.capacity_of("", self.fleet.shares())

    def _abilities(self) -> dict[str, Ability]:
        """What gates said about themselves when they registered."""
        return {
            each.address: Ability(each.info.get("cores") or 1.0, each.info.get("rows_per_second") or 0.0)
            for each in self.registry.gates()
        }

    def _declared_now(self, streams: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
        by = (streams, self.registry.declared_version, len(self._waiting))
        if by != self._declared_by:
            metadata = [
                self.registry.metadata(each)
                or (self._waiting[each].metadata if each in self._waiting else None)
                for each in streams
            ]
            self._declared, self._declared_by = _characteristics(metadata), by
        return self._declared

    def _come_and_go(self, looks: Mapping[str, Look]) -> None:
        """A stream that is without a client at two looks, and without rows of one, takes nothing any more."""
        there: dict[str, bool] = {}
        for look in looks.values():
            for stream, told in look.told.streams.items():
                here = told.get("connected", True) or told["client_rows"] > 0
                there[stream] = there.get(stream, False) or here
        missing = {stream for stream, here in there.items() if not here}
        for stream in there:
            if self.registry.gate_of(stream) in looks:
                self.registry.went(stream, gone=stream in missing and stream in self._missing)
        self._missing = missing

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

    def _begin(self) -> None:
        if self._journal is not None:
            self._journal.begin(self._control)

    def asked(self, decisions: Sequence[Decision], now: float) -> None:
        """Take note of what an operator has decided."""
        if self._journal is not None:
            self._begin()
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


def _characteristics(metadata: Sequence[Mapping[str, Any] | None]) -> dict[str, NDArray[np.float64]]:
    """What streams declare as the policy takes it: jump and trend as numbers, NaN for what is not said."""
    said = [each or {} for each in metadata]
    found = {}
    for name in _NAMES:
        values = [each.get(name, np.nan) for each in said]
        if name == "transition":
            values = [_TRANSITIONS.get(str(each), np.nan) for each in values]
        found[name] = np.array(values, np.float64)
    return found
