"""The policy of admission: a period's measurements in, redirections and starts and drains of gates out.

Deterministic: the same observations give the same decisions, also when the state went through JSON between
any two of them. Gates report every period; a gate that is away reports NaN for its streams, never 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

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
from penstock.control.admission.decision import Admit, Decision, DrainGate, Redirect, StartGate
from penstock.control.admission.limits import Limits
from penstock.errors import BadAdmission

__all__ = ["Admission", "Expectations", "Planner", "Seen"]

# An exponentially weighted mean of the queue: about the last three periods ([000] §2.5).
_QUEUE_WEIGHT = 0.5


@dataclass(frozen=True)
class Seen:
    """A period as gates measured it; arrays over `streams` and `gates`, both in the order of their ids.

    `home` is a place in `gates`, or `NOWHERE`. `work` is the mean of the period, NaN where nobody measured
    it; `waiting` the seconds that a row waits, NaN if unknown. `declared` has what clients declare, by the
    name of the characteristic, NaN where nothing is declared.
    """

    at: float
    streams: Sequence[str]
    gates: Sequence[str]
    home: Ints
    work: Floats
    capacity: Floats
    waiting: Floats
    open: Bools
    declared: Mapping[str, Floats] = field(default_factory=dict)


class Planner(Protocol):
    """Decides where streams are to be, as a pure function."""

    @property
    def name(self) -> str:
        """The name of the strategy."""
        ...

    def plan(self, cluster: Cluster, outlook: Outlook, most: int) -> Placement:
        """The gate of every stream, with at most `most` redirections."""
        ...


class Expectations(Protocol):
    """Turns the measurements of a period into what to expect of every stream."""

    def observe(self, seen: Seen) -> None:
        """Takes in a period."""
        ...

    def outlook(self) -> Outlook:
        """What to expect of the streams of the last period."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What a restart must know."""
        ...

    def resume(self, value: Mapping[str, Any]) -> None:
        """Goes on from that."""
        ...


class Admission:
    """Observes periods and decides after each, by a planner and its expectations, within limits.

    `capacity` is that of a gate that is started.
    """

    def __init__(
        self, planner: Planner, expectations: Expectations, *, capacity: float, limits: Limits | None = None
    ) -> None:
        self.planner = planner
        self.expectations = expectations
        self.capacity = capacity
        self.limits = limits or Limits()
        self._seen: Seen | None = None
        self._waiting: dict[str, float] = {}
        self._moved: dict[str, float] = {}

    def observe(self, seen: Seen) -> None:
        """Takes in a period; `decide` answers for the last one."""
        if len(seen.work) != len(seen.streams) or len(seen.home) != len(seen.streams):
            raise BadAdmission(
                f"{len(seen.streams)} streams, {len(seen.work)} measurements and {len(seen.home)} gates; "
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

    def decide(self, now: float) -> Sequence[Decision]:
        """The decisions for the coming period: starts, streams, drains; none before a period is seen."""
        seen = self._seen
        if seen is None:
            return []
        cluster = Cluster(
            np.asarray(seen.home, np.int64),
            np.asarray(seen.capacity, np.float64),
            self.capacity,
            np.asarray(seen.open, np.bool_),
            np.array([self._waiting[gate] for gate in seen.gates], np.float64),
            self._movable(seen, now),
        )
        placed = self.planner.plan(cluster, self.expectations.outlook(), self.limits.most_moves)
        decisions = list(_decisions(seen, cluster, placed))
        if self.limits.least_interval > 0:
            self._moved = {
                stream: at for stream, at in self._moved.items() if now - at < self.limits.least_interval
            }
            self._moved |= {each.stream: now for each in decisions if isinstance(each, Redirect)}
        return decisions

    def to_json(self) -> dict[str, Any]:
        """Queues, last moves and what the expectations know, but not a period that waits for `decide`."""
        return {
            "planner": self.planner.name,
            "waiting": dict(self._waiting),
            "moved": dict(self._moved),
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
        self._moved = {str(stream): float(at) for stream, at in value["moved"].items()}
        self.expectations.resume(value["expectations"])
        self._seen = None

    def _movable(self, seen: Seen, now: float) -> Bools:
        movable = np.ones(len(seen.streams), np.bool_)
        recent = {stream for stream, at in self._moved.items() if now - at < self.limits.least_interval}
        fixed = recent | self.limits.excluded
        if fixed:
            movable[[place for place, stream in enumerate(seen.streams) if stream in fixed]] = False
        return movable


def _decisions(seen: Seen, cluster: Cluster, placed: Placement) -> "Sequence[Decision]":
    gates = len(seen.gates)
    names = [*seen.gates, *(f"new/{number}" for number in range(1, placed.gates - gates + 1))]
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


def _word(why: str) -> str:
    return {"overloaded": "is overloaded", "emptied": "is emptied"}.get(why, f"is {why}")
