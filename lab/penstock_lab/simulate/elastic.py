"""Operators with units that come and go, on paper, tuple by tuple, under a scaling policy of the live system.

Every operator has a pool of units with a queue each, first come first served. A unit takes `startup` seconds
to be ready; when the number of units changes, the operator stands still for `pause` seconds, and tuples
that had not begun are routed over the new units; what has begun is finished. Within a tick all is computed
on arrays, so that a run of a hundred thousand tuples takes well under a second.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from penstock.control.scaling import Edge, Load, OperatorLoad, PoolLoad, Scale, Scaler
from penstock.routing import Channels, Costs
from penstock.sketches import splitmix64
from penstock_lab.errors import BadSimulation
from penstock_lab.simulate.groupings import DealtInTurn, Grouping

__all__ = ["Arrivals", "ElasticCosts", "ElasticCourse", "Operator", "queue_up", "simulate_elastic"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Made = Callable[[int], Grouping]

_AHEAD = 120.0  # seconds that the horizon of a queue is ahead
_APART = 1e7  # seconds between the time lines of two units when they are computed as one


@dataclass(frozen=True)
class Arrivals:
    """Tuples from outside: when each comes, in order, and its value."""

    times: Floats
    values: Ints


@dataclass(frozen=True)
class Operator:
    """`cost` has the seconds of each value, or one number for all; edges say where tuples come from.

    The selectivity of an edge is the part of the parent's tuples that comes. `grouping` makes the grouping
    for a number of units.
    """

    name: str
    cost: Floats | float
    parents: tuple[Edge, ...] = ()
    grouping: Made = DealtInTurn


@dataclass(frozen=True)
class ElasticCosts:
    """Seconds of a tick, of the start of a unit and of a change; units at first and at most."""

    tick: float = 10.0
    startup: float = 5.0
    pause: float = 1.0
    units: int = 1
    most: int = 36


@dataclass(frozen=True)
class ElasticCourse:
    """What became of every tuple that reached the end, and of the units in every tick."""

    born: Floats
    done: Floats
    unfinished: int
    """Tuples that were not at the end when the run was."""
    times: Floats
    """Ends of the ticks."""
    units: Mapping[str, Ints]
    """Units of each pool in each tick, starting ones included."""
    unit_seconds: float
    changes: int
    decisions: tuple[Scale, ...] = field(repr=False, default=())
    loads: tuple[Load, ...] = field(repr=False, default=())
    """What the policy saw after each tick."""

    @property
    def latency(self) -> Floats:
        """Seconds from outside to the end, of each tuple."""
        return self.done - self.born

    def late(self, bound: float) -> float:
        """The share of tuples that took longer than a bound, or had not come to the end."""
        total = len(self.done) + self.unfinished
        return float((np.count_nonzero(self.latency > bound) + self.unfinished) / max(total, 1))

    @property
    def mean_units(self) -> float:
        """Units in the mean over time, of all pools."""
        return self.unit_seconds / float(self.times[-1])

    def lag(self, longest: int = 60) -> float:
        """By how many seconds the throughput follows the input: the shift at which they agree best."""
        end = int(self.times[-1])
        given, out = (
            np.bincount(each.astype(np.int64), minlength=end)[:end] for each in (self.born, self.done)
        )
        smooth = np.ones(5) / 5
        one, two = (np.convolve(each, smooth, "same") for each in (given, out))
        scores = [float(np.corrcoef(one[: end - shift], two[shift:])[0, 1]) for shift in range(longest)]
        return float(np.nanargmax(scores)) if np.isfinite(scores).any() else math.nan


def queue_up(routes: Channels, seconds: Costs, arrivals: Costs, free: Costs) -> tuple[Costs, Costs]:
    """When each tuple begins on its unit, first come first served, and when each unit is free again.

    >>> routes, seconds, arrivals = np.array([0, 0, 1]), np.array([2.0, 1, 1]), np.array([0.0, 1, 1])
    >>> starts, free = queue_up(routes, seconds, arrivals, np.zeros(2))
    >>> starts.tolist(), free.tolist()
    ([0.0, 2.0, 1.0], [3.0, 2.0])
    """
    order = np.argsort(routes, kind="stable")
    unit, took = routes[order].astype(np.int64), seconds[order]
    total = np.cumsum(took)
    firsts = np.flatnonzero(np.diff(unit, prepend=-1))
    before = np.repeat(total[firsts] - took[firsts], np.diff(np.append(firsts, len(unit))))
    work = total - before
    # A unit is done with a tuple after all work since it was last idle: the latest slack so far.
    slack = np.maximum(arrivals[order] - (work - took), free[unit]) + _APART * unit
    done = work + np.maximum.accumulate(slack) - _APART * unit
    starts = np.empty(len(routes))
    starts[order] = done - took
    after = free.copy()
    after[unit] = done  # the last of each unit stays
    return starts, after


_HASHES = splitmix64(np.arange(1 << 16, dtype=np.uint64), 1)


def hashed(values: Ints) -> NDArray[np.uint64]:
    """The hash of each value; values are below 65,536."""
    return np.asarray(_HASHES[values], np.uint64)


class _Running:
    """An operator with its units, and the tuples that are in it."""

    def __init__(self, spec: Operator, units: int) -> None:
        self.spec = spec
        self.units = units
        self.grouping = spec.grouping(units)
        self.free = np.zeros(units)
        self.starting: list[tuple[float, int]] = []
        # Tuples here: born, came, starts, done, unit, value, and whether the present grouping routed them.
        # Those that are done after the horizon lie apart: a long queue is not looked through every time.
        self.here, self.far = np.empty((7, 0)), [np.empty((7, 0))]
        self.horizon = _AHEAD
        self.told = 0.0
        self.measured()

    def measured(self) -> None:
        """Begin to measure a tick."""
        self.received = self.processed = 0
        self.spent = self.stayed = 0.0
        self.busy = np.zeros(self.units)

    @property
    def present(self) -> int:
        """Units that are ready or starting."""
        return self.units + sum(count for _, count in self.starting)

    def take(self, born: Floats, came: Floats, values: Ints) -> None:
        """Route tuples in the order in which they come, block by block."""
        self.received += len(born)
        block = self.grouping.block or max(len(born), 1)
        for begin in range(0, len(born), block):
            part = slice(begin, begin + block)
            self._tell(float(came[begin]))
            self._place(born[part], came[part], values[part], came[part])

    def give(self, begin: float, until: float) -> tuple[Floats, Floats, Ints]:
        """The tuples that are done in a span: when they were born, when done, and their values."""
        self._tell(until)
        if until + _AHEAD / 2 > self.horizon:
            self.horizon = until + _AHEAD
            self._near()
        spans = np.clip(self.here[3], begin, until) - np.clip(self.here[2], begin, until)
        # A unit that is gone finishes what it has begun, and is not measured any more.
        self.busy += np.bincount(self.here[4].astype(np.int64), spans, self.units)[: self.units]
        out = self.here[3] < until
        gone, self.here = self.here[:, out], self.here[:, ~out]
        gone = gone[:, np.argsort(gone[3], kind="stable")]
        self.processed += gone.shape[1]
        self.spent += float((gone[3] - gone[2]).sum())
        self.stayed += float((gone[3] - gone[1]).sum())
        return gone[0], gone[3], gone[5].astype(np.int64)

    def resize(self, now: float, units: int, pause: float) -> None:
        """Tuples that have not begun are routed over the new units, after the pause."""
        self._tell(now)
        self.here = np.concatenate([self.here, *self.far], axis=1)
        self.far = []
        waiting = self.here[2] >= now
        moved, self.here = self.here[:, waiting], self.here[:, ~waiting]
        self.here[6] = 0.0
        free = np.full(units, now + pause)
        kept = self.here[4] < units
        np.maximum.at(free, self.here[4, kept].astype(np.int64), self.here[3, kept])
        self.free = free
        self.busy = np.resize(np.append(self.busy, np.zeros(max(units - self.units, 0))), units)
        self.units = units
        self.grouping.resized(units)
        moved = moved[:, np.argsort(moved[1], kind="stable")]
        block = self.grouping.block or max(moved.shape[1], 1)
        for begin in range(0, moved.shape[1], block):
            part = moved[:, begin : begin + block]
            self._place(part[0], part[1], part[5].astype(np.int64), np.full(part.shape[1], now))

    @property
    def pending(self) -> int:
        """Tuples that are not done."""
        return self.here.shape[1] + sum(each.shape[1] for each in self.far)

    def load(self, costs: "ElasticCosts") -> tuple[OperatorLoad, PoolLoad]:
        """What is measured of the tick."""
        name = self.spec.name
        seconds = self.spent / self.processed if self.processed else math.nan
        stayed = self.stayed / self.processed if self.processed else 0.0
        starting = self.present - self.units
        use = tuple((self.busy / costs.tick).round(6).tolist())
        return (
            OperatorLoad(
                name, name, self.received, self.processed, self.pending, seconds, self.spec.parents, stayed
            ),
            PoolLoad(name, self.units, use, starting, startup=costs.startup, pause=costs.pause),
        )

    def _place(self, born: Floats, came: Floats, values: Ints, at: Floats) -> None:
        if not len(born):
            return
        routes = self.grouping.route(hashed(values))
        seconds = self._seconds(values)
        starts, self.free = queue_up(routes, seconds, at, self.free)
        rows = (born, came, starts, starts + seconds, routes, values, np.ones(len(born)))
        new = np.stack([each.astype(np.float64) for each in rows])
        far = new[3] >= self.horizon
        if far.any():
            self.far.append(new[:, far])
            new = new[:, ~far]
        self.here = np.concatenate([self.here, new], axis=1)

    def _near(self) -> None:
        """Take up those that are done before the horizon."""
        far = np.concatenate([np.empty((7, 0)), *self.far], axis=1)
        near = far[3] < self.horizon
        self.here = np.concatenate([self.here, far[:, near]], axis=1)
        self.far = [far[:, ~near]]

    def _tell(self, now: float) -> None:
        """Tell the grouping what was done before an instant."""
        if self.grouping.block:
            known = (self.here[3] < now) & (self.here[3] >= self.told) & (self.here[6] > 0)
            told = self.here[:, known]
            told = told[:, np.lexsort((told[3], told[4]))]
            values = told[5].astype(np.int64)
            hashes, seconds = hashed(values), self._seconds(values)
            edges = np.flatnonzero(np.diff(told[4], prepend=-1, append=-1))
            for begin, end in pairwise(edges.tolist()):
                self.grouping.completed(int(told[4, begin]), hashes[begin:end], seconds[begin:end])
            self.grouping.told()
        self.told = max(self.told, now)

    def _seconds(self, values: Ints) -> Floats:
        cost = self.spec.cost
        return cost[values] if isinstance(cost, np.ndarray) else np.full(len(values), float(cost))


def simulate_elastic(  # noqa: C901, PLR0913 -- one loop over time, and what a run is made of
    operators: Sequence[Operator],
    arrivals: Arrivals,
    policy: Scaler,
    costs: ElasticCosts,
    *,
    seconds: float,
    rng: np.random.Generator,
) -> ElasticCourse:
    """Runs operators in topological order over the arrivals, and asks the policy after every tick.

    The first operator gets the arrivals, and tuples that the last one has done are at the end. The rng draws
    which tuples an edge lets through.
    """
    if not operators or operators[0].parents or any(not each.parents for each in operators[1:]):
        raise BadSimulation("give operators in topological order, of which the first alone has no parents")
    running = [_Running(each, costs.units) for each in operators]
    ends: list[tuple[Floats, Floats]] = []
    units: dict[str, list[int]] = {each.name: [] for each in operators}
    times, decisions, loads = [], [], []
    unit_seconds, changes, now = 0.0, 0, 0.0
    at = 0
    for number in range(math.ceil(seconds / costs.tick)):
        tick = (number + 1) * costs.tick
        passed = np.zeros((len(operators), len(operators)))
        while now < tick:
            end = min([tick, *(ready for each in running for ready, _ in each.starting)])
            if end > now:
                upto = int(np.searchsorted(arrivals.times, end))
                came = (arrivals.times[at:upto], arrivals.times[at:upto], arrivals.values[at:upto])
                at = upto
                ends.append(_flow(running, came, (now, end), rng, passed))
                unit_seconds += (end - now) * sum(each.present for each in running)
                now = end
            for each in running:
                ready = sum(count for then, count in each.starting if then <= now)
                if ready:
                    each.starting = [one for one in each.starting if one[0] > now]
                    each.resize(now, each.units + ready, costs.pause)
        for each in running:
            units[each.spec.name].append(each.present)
        times.append(tick)
        seen = _seen(running, passed, tick, costs, ends[-1])
        for each in running:
            each.measured()
        policy.observe(seen)
        loads.append(seen)
        for scale in policy.decide(tick):
            decisions.append(scale)
            if not scale.held:
                changes += 1
                _carry_out(next(each for each in running if each.spec.name == scale.pool), scale, tick, costs)
    born, done = (np.concatenate(each) for each in zip(*ends, strict=True))
    left = sum(each.pending for each in running) + len(arrivals.times) - at
    series = {name: np.array(each) for name, each in units.items()}
    return ElasticCourse(
        born, done, left, np.array(times), series, unit_seconds, changes, tuple(decisions), tuple(loads)
    )


def _flow(
    running: Sequence[_Running],
    came: tuple[Floats, Floats, Ints],
    span: tuple[float, float],
    rng: np.random.Generator,
    passed: Floats,
) -> tuple[Floats, Floats]:
    """One span without a change: tuples go through the operators in their order."""
    given: list[tuple[Floats, Floats, Ints]] = []
    for place, each in enumerate(running):
        parts = [came] if not each.spec.parents else []
        for edge in each.spec.parents:
            born, done, values = given[edge.parent]
            through = rng.random(len(born)) < edge.selectivity
            passed[edge.parent, place] += np.count_nonzero(through)
            parts.append((born[through], done[through], values[through]))
        born, at, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(at, kind="stable")
        each.take(born[order], at[order], values[order])
        given.append(each.give(*span))
    return given[-1][:2]


def _seen(
    running: Sequence[_Running],
    passed: Floats,
    at: float,
    costs: ElasticCosts,
    last: tuple[Floats, Floats],
) -> Load:
    loads, pools = zip(*(each.load(costs) for each in running), strict=True)
    measured = []
    for place, each in enumerate(loads):
        edges = tuple(
            Edge(
                edge.parent,
                float(passed[edge.parent, place] / loads[edge.parent].processed)
                if loads[edge.parent].processed
                else edge.selectivity,
            )
            for edge in each.parents
        )
        measured.append(OperatorLoad(**{**vars(each), "parents": edges}))
    born, done = last
    latency = float((done - born).mean()) if len(born) else math.nan
    return Load(at, costs.tick, tuple(measured), tuple(pools), latency)


def _carry_out(each: _Running, scale: Scale, now: float, costs: ElasticCosts) -> None:
    if scale.units > each.present:
        each.starting.append((now + costs.startup, scale.units - each.present))
        return
    each.starting = []
    if scale.units < each.units:
        each.resize(now, scale.units, costs.pause)
