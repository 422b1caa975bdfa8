"""Gates on paper: streams with given rates, queues, redirections and failures under a policy of admission.

The policy is the object that the live system runs. One period is a few operations on arrays, so that a day of
100,000 streams on 1,000 gates takes minutes. The model:

- A gate works off `capacity` a second; what is above it waits, and rows wait queue / capacity seconds.
- A redirected stream is suspended for `redirect` seconds, and for `start` seconds more if its new gate must
  be started first. Its client buffers the rows of that time, and its share of the old gate's queue, which
  is not acknowledged, goes with it.
- A gate fails with the probability `failure` a period. Its streams are without a gate until the policy admits
  them again; it measures nothing in that period.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.control.admission import (
    NOWHERE,
    Admission,
    Admit,
    Decision,
    DrainGate,
    Redirect,
    Seen,
    StartGate,
)
from penstock_lab.algorithms.bin_bounds import lower_bound
from penstock_lab.errors import BadSimulation

__all__ = ["GateCosts", "GateCourse", "simulate_gates"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class GateCosts:
    """Capacity of a gate in work a second; seconds of a period, a redirection and a start; failures.

    A row that waits longer than `bound` seconds waits too long.
    """

    capacity: float = 1000.0
    period: float = 10.0
    redirect: float = 0.5
    start: float = 3.0
    failure: float = 0.0
    bound: float = 5.0


@dataclass(frozen=True)
class GateCourse:
    """What each period was like: arrays over periods; the first period has no decision before it."""

    redirections: Ints
    """Streams that changed their gate because the policy said so."""
    forced: Ints
    """Streams that lost their gate by a failure."""
    buffered: Floats
    """Rows that clients held during redirections."""
    delay: Floats
    """Seconds that streams were suspended, over all of them."""
    gates: Ints
    """Gates that hold streams."""
    optimal: Ints
    """The wasted-space bound for the rates of the period."""
    waiting: Floats
    """Mean seconds that a row waits, over all rows of the period."""
    over: Floats
    """The part of the work that lies in gates where rows wait longer than the bound."""

    def after(self, warm_up: int) -> "GateCourse":
        """Without the first periods."""
        return GateCourse(**{name: values[warm_up:] for name, values in vars(self).items()})

    @property
    def overhead(self) -> float:
        """Gates over the optimal number, in the mean, minus 1."""
        return float(self.gates.mean() / self.optimal.mean() - 1)


@dataclass
class _Gates:
    """The state of the cluster; gates never change their place in the arrays, those that are gone hold -1."""

    names: list[str]
    home: Ints
    queue: Floats
    serial: int = 0
    places: dict[str, int] = field(default_factory=dict)


def simulate_gates(
    policy: Admission,
    rows: Iterable[Floats],
    costs: GateCosts,
    rng: np.random.Generator,
    *,
    declared: Mapping[str, Floats] | None = None,
) -> GateCourse:
    """Runs the policy over the rates of each period."""
    control = policy.controller()
    measured: list[tuple[float, ...]] = []
    streams: tuple[str, ...] = ()
    cluster = _Gates([], np.empty(0, np.int64), np.empty(0))
    moves = (0, 0, 0.0, 0.0)
    at = 0.0
    for rate in rows:
        if not streams:
            streams = tuple(f"s{number:07d}" for number in range(len(rate)))
            cluster.home = np.full(len(rate), NOWHERE, np.int64)
            numbers = {stream: number for number, stream in enumerate(streams)}
        at += costs.period
        gates = len(cluster.names)
        placed = cluster.home >= 0
        load = np.bincount(cluster.home[placed], weights=rate[placed], minlength=gates)
        cluster.queue = np.maximum(0.0, cluster.queue + (load - costs.capacity) * costs.period)
        waiting = cluster.queue / costs.capacity
        held = np.bincount(cluster.home[placed], minlength=gates)
        total = max(float(load.sum()), 1e-300)
        measured.append(
            (
                *moves,
                int(np.count_nonzero(held)),
                lower_bound(rate, costs.capacity),
                float(load @ waiting) / total,
                float(load[waiting > costs.bound].sum()) / total,
            )
        )
        failed = rng.random(gates) < costs.failure if costs.failure else np.zeros(gates, np.bool_)
        work = rate
        if failed.any():
            lost = placed & failed[cluster.home]
            work = np.where(lost, np.nan, rate)
            cluster = _without(cluster, np.flatnonzero(~failed))
            waiting = cluster.queue / costs.capacity
        forced = int(np.count_nonzero(placed & (cluster.home < 0)))
        control.observe(
            Seen(
                at,
                streams,
                cluster.names,
                cluster.home.copy(),
                work,
                np.full(len(cluster.names), costs.capacity),
                waiting,
                np.ones(len(cluster.names), np.bool_),
                declared or {},
                epoch=len(measured),
                seconds=costs.period,
            )
        )
        made = [each.decision for each in control.decide(at) if each.carried_out]
        redirections, buffered, delay = _carry_out(cluster, made, rate, costs, numbers)
        moves = (redirections, forced, buffered, delay)
    if not measured:
        raise BadSimulation("no period to simulate; give at least one")
    columns = [np.array(each) for each in zip(*measured, strict=True)]
    names = ("redirections", "forced", "buffered", "delay", "gates", "optimal", "waiting", "over")
    return GateCourse(**dict(zip(names, columns, strict=True)))


def _carry_out(
    cluster: _Gates, decisions: Sequence[Decision], rate: Floats, costs: GateCosts, numbers: Mapping[str, int]
) -> tuple[int, float, float]:
    """Redirections, the rows that they buffered and the seconds that they took."""
    places = {name: place for place, name in enumerate(cluster.names)}
    fresh = set()
    for each in decisions:
        if isinstance(each, StartGate):
            cluster.serial += 1
            places[each.gate] = len(cluster.names)
            fresh.add(len(cluster.names))
            cluster.names.append(f"g{cluster.serial:06d}")
    cluster.queue = np.append(cluster.queue, np.zeros(len(cluster.names) - len(cluster.queue)))
    for each in decisions:
        if isinstance(each, Admit):
            cluster.home[numbers[each.stream]] = places[each.gate]
    moved = [
        (numbers[each.stream], places[each.source], places[each.target])
        for each in decisions
        if isinstance(each, Redirect)
    ]
    buffered = delay = 0.0
    if moved:
        stream, source, target = np.array(moved, np.int64).T
        placed = cluster.home >= 0
        load = np.bincount(cluster.home[placed], weights=rate[placed], minlength=len(cluster.names))
        share = np.divide(rate[stream], load[source], out=np.zeros(len(stream)), where=load[source] > 0)
        carried = share * cluster.queue[source]
        paused = costs.redirect + costs.start * np.isin(target, np.array(sorted(fresh), np.int64))
        held = carried + rate[stream] * paused
        cluster.home[stream] = target
        cluster.queue -= np.bincount(source, weights=carried, minlength=len(cluster.queue))
        cluster.queue += np.bincount(target, weights=held, minlength=len(cluster.queue))
        cluster.queue = np.maximum(cluster.queue, 0.0)
        buffered, delay = float(held.sum()), float(paused.sum())
    drained = {places[each.gate] for each in decisions if isinstance(each, DrainGate)}
    if drained:
        kept = np.array([place for place in range(len(cluster.names)) if place not in drained], np.int64)
        rest = _without(cluster, kept)
        cluster.names, cluster.home, cluster.queue = rest.names, rest.home, rest.queue
    return len(moved), buffered, delay


def _without(cluster: _Gates, kept: Ints) -> _Gates:
    """The cluster with these gates only; streams of others are nowhere."""
    numbers = np.full(len(cluster.names) + 1, NOWHERE, np.int64)
    numbers[kept] = np.arange(len(kept))
    return _Gates(
        [cluster.names[place] for place in kept.tolist()],
        numbers[cluster.home],
        cluster.queue[kept],
        cluster.serial,
    )
