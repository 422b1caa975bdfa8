"""The policy of admission: a period's measurements in, proposals to move streams, start and drain gates out.

Deterministic: the same observations give the same decisions, also when the state went through JSON between
any two of them. Gates report every period; a gate that is away reports NaN for its streams, never 0. Streams
that come between two periods are admitted at once, by what the last period left free.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from penstock.control.admission.best_fit import best_fit
from penstock.control.admission.cluster import (
    NOWHERE,
    Bools,
    Cluster,
    Floats,
    Ints,
    Outlook,
    Placement,
    loads,
)
from penstock.control.admission.costs import Costs
from penstock.control.admission.decision import Admit, Decision, DrainGate, Redirect, StartGate
from penstock.control.admission.limits import Budget, Limits
from penstock.control.admission.possible import possible
from penstock.control.controller import Controller, Mode
from penstock.control.proposal import Proposal
from penstock.control.scale import CLUSTER
from penstock.errors import BadAdmission

__all__ = ["NAME", "Admission", "AdmissionController", "Arrivals", "Expectations", "Planner", "Seen"]

NAME = "admission"
"""The name of the policy in rulings."""
# An exponentially weighted mean of the queue: about the last three periods ([000] §2.5).
_QUEUE_WEIGHT = 0.5
_PATIENCE = 3
"""The periods in a row in which gates could be settled or emptied before they are."""


@dataclass(frozen=True)
class Seen:
    """A period as gates measured it; arrays over `streams` and `gates`, both in the order of their ids.

    `home` is a place in `gates`, or `NOWHERE`. `rates` are the means of the period, NaN where nobody knows
    them, and `prices` what they cost a gate; without, a rate is the work itself. `waiting` has the seconds
    that a row waits, NaN if unknown. `declared` has what clients declare, by the name of the characteristic,
    NaN where nothing is declared. Streams of a gate that is `away` stay there: nobody can tell their clients.
    `startable` names the gates that can be started, in the order in which they are, each of `new_capacity`
    (by default the policy's); None stands for any number of them.
    """

    at: float
    streams: Sequence[str]
    gates: Sequence[str]
    home: Ints
    rates: Floats
    capacity: Floats
    waiting: Floats
    open: Bools
    declared: Mapping[str, Floats] = field(default_factory=dict)
    away: Bools | None = None
    startable: Sequence[str] | None = None
    prices: Costs | None = None
    new_capacity: float | None = None
    learnt: Mapping[str, Any] = field(default_factory=dict)
    """What is known of gates and prices, for whoever goes on after a restart."""
    epoch: int = 0
    """The number of the period."""
    seconds: float = 10.0
    """Its length."""
    startup: float | None = None
    """The seconds that a gate takes to start, if one has."""

    def costs(self) -> dict[int, tuple[float, float]]:
        """What the period cost in gates: those that were open, and what would have done the waiting work."""
        waits = float(np.nan_to_num(self.waiting).sum()) / self.seconds
        return {CLUSTER: (float(np.count_nonzero(self.open)) + waits, 1.0)}


@dataclass(frozen=True)
class Arrivals:
    """Streams that come between two periods, what they declare, and the gates that take streams now.

    `gates` are those that are open, also those that are being started, each with its capacity.
    """

    at: float
    streams: Sequence[str]
    gates: Sequence[str]
    capacity: Floats
    declared: Mapping[str, Floats] = field(default_factory=dict)
    startable: Sequence[str] | None = None
    prices: Costs | None = None
    new_capacity: float | None = None


class Planner(Protocol):
    """Decides where streams are to be, as a pure function."""

    @property
    def name(self) -> str:
        """The name of the strategy."""
        ...

    def plan(self, cluster: Cluster, outlook: Outlook, most: int) -> Placement:
        """The gate of every stream, with at most `most` redirections."""
        ...

    def charged(self, outlook: Outlook) -> Floats:
        """The work that each stream counts with when it is placed."""
        ...


class Expectations(Protocol):
    """Turns the measurements of a period into what to expect of every stream."""

    def observe(self, seen: Seen) -> None:
        """Takes in a period."""
        ...

    def outlook(self) -> Outlook:
        """What to expect of the streams of the last period."""
        ...

    def outlook_of_new(
        self, count: int, declared: Mapping[str, Floats], costs: Costs | None = None
    ) -> Outlook:
        """What to expect of streams that nobody has seen yet."""
        ...

    def rates_ahead(self, periods: int) -> dict[str, tuple[Floats, float]]:
        """Rows a second of each stream in the next periods, and the standard error of such a rate."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What a restart must know."""
        ...

    def resume(self, value: Mapping[str, Any]) -> None:
        """Goes on from that."""
        ...


class Admission:
    """Observes periods and proposes changes after each, by a planner and its expectations, within limits.

    `capacity` is that of a gate that is started, unless an observation says it.
    """

    def __init__(
        self,
        planner: Planner,
        expectations: Expectations,
        *,
        capacity: float = 1.0,
        limits: Limits | None = None,
    ) -> None:
        self.planner = planner
        self.expectations = expectations
        self.capacity = capacity
        self.budget = Budget(limits or Limits())
        self._seen: Seen | None = None
        self._waiting: dict[str, float] = {}
        self._lasted = 0
        """The periods in a row in which gates could be settled or emptied."""
        self._charged: dict[str, float] = {}
        """The work that every gate is charged with, after the last decisions."""

    def controller(self, mode: Mode = "on") -> "AdmissionController":
        """The arbiter of what it proposes."""
        return Controller({NAME: self}, self.budget, mode)

    def observe(self, seen: Seen) -> None:
        """Takes in a period; `propose` answers for the last one."""
        if len(seen.rates) != len(seen.streams) or len(seen.home) != len(seen.streams):
            raise BadAdmission(
                f"{len(seen.streams)} streams, {len(seen.rates)} measurements and {len(seen.home)} gates; "
                "give one for each"
            )
        self.expectations.observe(seen)
        before = self._waiting
        now = np.nan_to_num(seen.waiting, nan=0.0).tolist()
        self._waiting = {
            gate: _QUEUE_WEIGHT * each + (1 - _QUEUE_WEIGHT) * before.get(gate, each)
            for gate, each in zip(seen.gates, now, strict=True)
        }
        self._seen = seen

    def propose(self, now: float) -> list[Proposal[Decision]]:
        """Changes for the coming period: what gates need at once, and what pays; or why there is nothing."""
        seen = self._seen
        if seen is None:
            return [Proposal((), reason="no period was seen")]
        cluster = Cluster(
            np.asarray(seen.home, np.int64),
            np.asarray(seen.capacity, np.float64),
            self.capacity if seen.new_capacity is None else seen.new_capacity,
            np.asarray(seen.open, np.bool_),
            np.array([self._waiting[gate] for gate in seen.gates], np.float64),
            self._movable(seen, now),
            None if seen.startup is None else seen.startup / seen.seconds,
        )
        placed = self.planner.plan(cluster, self.expectations.outlook(), self.budget.limits.most_moves)
        startable = None if seen.startable is None else len(seen.startable)
        placed = possible(cluster, placed, startable, self.budget.limits.least_gates)
        names = [*seen.gates, *_new_names(seen.startable, placed.gates - len(seen.gates))]
        self._charged = dict(zip(names, loads(placed.home, placed.size, placed.gates).tolist(), strict=True))
        found = _proposals(seen, names, cluster, placed)
        self._lasted = self._lasted + 1 if any(not each.urgent and each.changes for each in found) else 0
        return [_patient(each, self._lasted) for each in found]

    def admit(self, arrivals: Arrivals) -> Sequence[Decision]:
        """Where streams enter that come between two periods: best fit decreasing into what is left free.

        What fits nowhere starts a gate, or enters where the most is free if none can be started. Streams find
        no gate only if there is none.
        """
        fresh = self.capacity if arrivals.new_capacity is None else arrivals.new_capacity
        outlook = self.expectations.outlook_of_new(len(arrivals.streams), arrivals.declared, arrivals.prices)
        size = self.planner.charged(outlook)
        order = np.lexsort((np.arange(len(size)), -size))
        load = [self._charged.get(gate, 0.0) for gate in arrivals.gates]
        free = [most - each for most, each in zip(arrivals.capacity.tolist(), load, strict=True)]
        chosen, count = best_fit(size[order], free, fresh)
        startable = arrivals.startable
        new = min(count - len(free), len(startable) if startable is not None else count)
        names = [*arrivals.gates, *_new_names(startable, new)]
        if not names:
            return []
        capacity = np.append(arrivals.capacity, np.full(new, fresh))
        filled = np.append(np.array(load, np.float64), np.zeros(new))
        found: list[Decision] = []
        for place, gate in zip(order.tolist(), chosen, strict=True):
            target = gate if gate < len(names) else int(np.argmax(capacity - filled))
            filled[target] += size[place]
            found.append(
                Admit(
                    arrivals.streams[place],
                    names[target],
                    f"new; {size[place]:.4g} expected of the stream; {names[target]} then has "
                    f"{filled[target]:.4g} of {capacity[target]:.4g}",
                )
            )
        self._charged |= dict(zip(names, filled.tolist(), strict=True))
        started = [
            StartGate(
                names[gate], f"no gate has space; it begins with {filled[gate]:.4g} of {capacity[gate]:.4g}"
            )
            for gate in range(len(arrivals.gates), len(names))
        ]
        return [*started, *found]

    def to_json(self) -> dict[str, Any]:
        """Queues and what the expectations know, but not a period that waits for `propose`."""
        return {
            "planner": self.planner.name,
            "waiting": dict(self._waiting),
            "charged": dict(self._charged),
            "lasted": self._lasted,
            "expectations": self.expectations.to_json(),
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Goes on from a state of the same planner."""
        if value["planner"] != self.planner.name:
            raise BadAdmission(
                f"a state of strategy {value['planner']!r}; this one is "
                f"{self.planner.name!r}: start without state"
            )
        self._waiting = {str(gate): float(each) for gate, each in value["waiting"].items()}
        self._charged = {str(gate): float(each) for gate, each in value["charged"].items()}
        self._lasted = int(value["lasted"])
        self.expectations.resume(value["expectations"])
        self._seen = None

    def _movable(self, seen: Seen, now: float) -> Bools:
        movable = np.ones(len(seen.streams), np.bool_)
        if seen.away is not None and len(seen.away):
            movable &= (seen.home < 0) | ~seen.away[seen.home]
        fixed = self.budget.fixed(now)
        if fixed:
            movable[[place for place, stream in enumerate(seen.streams) if stream in fixed]] = False
        return movable


def _new_names(startable: Sequence[str] | None, count: int) -> list[str]:
    return (
        [f"new/{number}" for number in range(1, count + 1)] if startable is None else list(startable[:count])
    )


def _proposals(
    seen: Seen, names: Sequence[str], cluster: Cluster, placed: Placement
) -> list[Proposal[Decision]]:
    """What gates need at once, and the rest, which has to pay."""
    made = list(_decisions(seen, names, cluster, placed))
    if not made:
        used = float(loads(cluster.home, placed.size, len(seen.gates)).sum()) / max(
            cluster.capacity.sum(), 1e-9
        )
        words = f"{np.count_nonzero(seen.open)} gates have {used:.0%} of the work that they can do"
        return [Proposal((), reason=f"{words}, and no move pays")]
    if placed.weighed is None:
        return [Proposal(tuple(made), urgent=True)]
    needed = {names[gate] for gate, why in placed.why.items() if why == "overloaded"}
    urgent, rest = list[Decision](), list[Decision]()
    for each in made:
        at_once = isinstance(each, Admit | StartGate) or (
            isinstance(each, Redirect) and (each.source in needed or each.target in needed)
        )
        (urgent if at_once else rest).append(each)
    found = [Proposal(tuple(urgent), urgent=True)] if urgent else []
    return [*found, Proposal(tuple(rest), placed.weighed)] if rest else found


def _decisions(seen: Seen, names: Sequence[str], cluster: Cluster, placed: Placement) -> "Sequence[Decision]":
    gates = len(seen.gates)
    load = loads(cluster.home, placed.size, gates)
    after = loads(placed.home, placed.size, placed.gates)
    capacity = np.append(cluster.capacity, np.full(placed.gates - gates, cluster.new_capacity))
    filled = [f"{each:.4g} of {most:.4g}" for each, most in zip(after, capacity, strict=True)]
    found: list[Decision] = [
        StartGate(names[gate], f"no gate has space; it begins with {filled[gate]}")
        for gate in range(gates, placed.gates)
    ]
    because = {
        gate: f"{names[gate]} {_word(why)}: {load[gate]:.4g} of {cluster.capacity[gate]:.4g}, rows wait "
        f"{cluster.waiting[gate]:.3g} s"
        for gate, why in placed.why.items()
    }
    changed = np.flatnonzero(placed.home != cluster.home)
    for stream, source, target, size in zip(
        changed.tolist(),
        cluster.home[changed].tolist(),
        placed.home[changed].tolist(),
        placed.size[changed].tolist(),
        strict=True,
    ):
        end = f"{size:.4g} expected of the stream; {names[target]} then has {filled[target]}"
        if source == NOWHERE:
            found.append(Admit(seen.streams[stream], names[target], end))
        else:
            why = because.get(source, f"{names[source]} gives up a stream")
            found.append(Redirect(seen.streams[stream], names[source], names[target], f"{why}; {end}"))
    found += [
        DrainGate(
            names[gate], f"its streams fit elsewhere; it had {load[gate]:.4g} of {cluster.capacity[gate]:.4g}"
        )
        for gate in placed.drained.tolist()
    ]
    return found


def _patient(proposal: Proposal[Decision], lasted: int) -> Proposal[Decision]:
    """What can wait, waits for some periods: streams that have just begun look smaller than they are."""
    if proposal.urgent or not proposal.changes:
        return proposal
    held = "" if lasted >= _PATIENCE else f"it has been so for fewer than {_PATIENCE} periods in a row"
    return replace(proposal, effect=replace(proposal.effect, lasted=lasted), held=held)


def _word(why: str) -> str:
    return {"overloaded": "is overloaded", "emptied": "is emptied"}.get(why, f"is {why}")


AdmissionController = Controller[Seen, Decision]
"""What rules on the proposals of admission."""
