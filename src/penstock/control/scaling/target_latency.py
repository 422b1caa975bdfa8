"""Penstock's own policy: as few units as keep the latency that forecasts and backlog lead to below the bound.

It differs from AutoScale+ in four ways. It plans for a latency and not for a load: the queue of every pool is
followed over the next ticks, as a fluid or epoch by epoch, with the units that there are until new ones are
ready. It counts what is forecast from outside with the upper end of an interval, and passes on what each pool
will give out; an edge that lets more tuples through counts at once.
It weighs a move: units go when what they cost, over the time that they were not needed, exceeds the price of
letting them go and starting them again. And it asks first what is wrong: skew is for rebalancing, units that
wait for something else are not joined by more, and rows that a pause held up get time to be caught up.
"""

import base64
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.control.bound import DEFAULT_BOUND
from penstock.control.scaling.fluid import Course, Ramp, course, epochs
from penstock.control.scaling.gate_forecasts import gates_words, with_gates
from penstock.control.scaling.load import Load, PoolLoad
from penstock.control.scaling.scaler import Scaler, ScalingLimits, Wish
from penstock.errors import BadScaling
from penstock.forecast import Combined, Forecaster, Holt, Naive, Regression
from penstock.shown import shown_seconds

__all__ = ["TargetLatency", "TargetSettings"]

_METHOD = Combined((Naive(), Naive(window=4), Holt(), Regression(window=8)))
_LEAST_STEPS, _MOST_STEPS = 3, 24
_AHEAD = 2.0  # bounds that are looked ahead when units are there
_RISING, _RISE = 3, 0.2  # rates that rose so many times by this part in all rise on
_FEW = 3  # ticks before which a forecast says nothing
_SKEWED = 1.6  # most over mean use of units from which they are called skewed,
_BUSY = 0.9  # if the busiest is as busy as this
_BLOCKED = 0.5  # units with a backlog that are less busy than this wait for something else
_SURPRISE, _LEAST_JUMP = 0.98, 1.5  # a jump is outside of this interval and so many times the mean
_QUIET, _LEVEL = 0.1, 8  # a pause is a rate below this part of the median of so many ticks
_LONGEST_PAUSE = 12  # ticks after which a pause is how things are


@dataclass(frozen=True)
class TargetSettings:
    """`bound` is the latency to keep, and `goal` the part of it that is planned with.

    The part `tight` is used up while units start and a backlog is worked off. `usable` is the part of a unit
    that is planned with, `level` the probability with which the next ticks stay below what is planned for.
    `startup` and `pause` are used until they have been measured. `catch_up` is how long a backlog may take
    where it cannot keep the bound any more, in bounds. `patience` is how many times the price of a change has
    to be paid for units that are not needed before they go. A rate that jumps out of its interval counts
    `jump` times as far from its mean as it was seen.
    """

    bound: float = DEFAULT_BOUND
    goal: float = 0.6
    tight: float = 0.7
    usable: float = 0.9
    level: float = 0.8
    startup: float = 10.0
    pause: float = 1.0
    catch_up: float = 0.5
    patience: float = 1.0
    jump: float = 1.5

    def __post_init__(self) -> None:
        for name in ("goal", "tight", "usable", "level"):
            if not 0 < getattr(self, name) <= 1:
                raise BadScaling(f"{name}={getattr(self, name)}; give a share above 0 and up to 1")
        for name in ("startup", "pause", "catch_up", "patience", "jump"):
            if not 0 <= getattr(self, name) < math.inf:
                raise BadScaling(f"{name}={getattr(self, name)}; give a number from 0")
        if not 0 < self.bound < math.inf:
            raise BadScaling(f"bound={self.bound}; give a latency in seconds above 0")


@dataclass(frozen=True)
class _Outlook:
    """What a pool has to do: its queue and the work that comes in each of the next steps."""

    queue: float
    arriving: list[float]
    fixed: float
    usable: float
    startup: float
    pause: float
    excused: float
    """Seconds within which the bound need not hold: it cannot, or a pause is being caught up."""


class TargetLatency(Scaler):
    """The policy "penstock"."""

    name = "penstock"

    def __init__(self, limits: ScalingLimits | None = None, **settings: float) -> None:
        super().__init__(limits)
        self.settings = TargetSettings(**settings)
        self._rates: Forecaster | None = None
        self._tick = 0
        self._cpu: dict[str, float] = {}
        self._passed: dict[str, list[float]] = {}
        self._got: dict[str, float] = {}
        self._received: dict[str, deque[float]] = {}
        self._paused: dict[str, int] = {}
        self._resumed: dict[str, float] = {}
        self._needs: dict[str, deque[tuple[float, int]]] = {}
        self._units: dict[str, int] = {}
        self._whole: dict[str, bool] = {}
        self._jumped: list[float] = []

    def learn(self, seen: Load) -> None:
        """Rates from outside go to the forecaster, without pauses; costs are smoothed."""
        sources = [each for each in seen.operators if not each.parents]
        if self._rates is None or self._rates.streams != len(sources):
            self._rates, self._tick = _METHOD.start(len(sources)), 0
        values = [self._steady(each.name, each.received / seen.seconds) for each in sources]
        self._jumped = self._jumps(values)
        self._rates.observe(values, self._tick)
        self._tick += 1
        # Units that came within the tick look idle: how busy they are is known a tick later.
        self._whole = {each.name: self._units.get(each.name) == each.units for each in seen.pools}
        self._units = {each.name: each.units for each in seen.pools}
        for each in seen.operators:
            if math.isfinite(each.cpu):
                before = self._cpu.get(each.name, each.cpu)
                self._cpu[each.name] = before + 0.5 * (each.cpu - before)
            # Windows close now and then: more counts at once, less by and by.
            now = [edge.selectivity for edge in each.parents]
            then = self._passed.get(each.name, now)
            if len(then) != len(now):
                then = now
            self._passed[each.name] = [max(two, (one + two) / 2) for one, two in zip(then, now, strict=True)]
        for pool in seen.pools:
            if any(pool.use):
                self._got[pool.name] = (self._got.get(pool.name, pool.got) + pool.got) / 2
        self._resumed = {name: until for name, until in self._resumed.items() if until > seen.at}
        for name in [name for name, count in self._paused.items() if count < 0]:
            del self._paused[name]
            self._resumed[name] = seen.at + self._catch_up

    def wishes(self, seen: Load) -> Sequence[Wish]:
        """Pools in the order of the graph, each with what those before it will give out."""
        found, given = [], self._from_outside(seen)
        for pool in self._ordered(seen):
            outlook = self._outlook(seen, pool, given)
            units, plan = self._needed(pool, outlook)
            self._pass_on(seen, pool, given, plan, outlook)
            if wish := self._wish(seen, pool, outlook, units):
                found.append(wish)
        return found

    def state(self) -> dict[str, Any]:
        """Forecaster, costs, recent rates, pauses and needs."""
        data = None if self._rates is None else base64.b64encode(self._rates.to_bytes()).decode()
        return {
            "rates": data,
            "tick": self._tick,
            "cpu": dict(self._cpu),
            "passed": dict(self._passed),
            "got": dict(self._got),
            "received": {name: list(each) for name, each in self._received.items()},
            "paused": dict(self._paused),
            "resumed": dict(self._resumed),
            "units": dict(self._units),
            "whole": dict(self._whole),
            "jumped": list(self._jumped),
            "needs": {name: [list(need) for need in each] for name, each in self._needs.items()},
        }

    def restore(self, value: Mapping[str, Any]) -> None:
        """Continue from what `state` gave."""
        data = value["rates"]
        self._rates = None if data is None else _METHOD.resume(base64.b64decode(data))
        self._tick, self._cpu = value["tick"], dict(value["cpu"])
        self._passed, self._got = dict(value["passed"]), dict(value["got"])
        self._units, self._whole = dict(value["units"]), dict(value["whole"])
        self._jumped = list(value["jumped"])
        self._received = {name: deque(each, _LEVEL) for name, each in value["received"].items()}
        self._paused, self._resumed = dict(value["paused"]), dict(value["resumed"])
        self._needs = {name: deque((at, need) for at, need in each) for name, each in value["needs"].items()}

    @property
    def _catch_up(self) -> float:
        return self.settings.catch_up * self.settings.bound

    def _steady(self, name: str, rate: float) -> float:
        """The rate, or NaN in a pause and in the tick that brings what the pause held up."""
        recent = self._received.setdefault(name, deque(maxlen=_LEVEL))
        level = sorted(recent)[len(recent) // 2] if recent else 0.0
        paused = self._paused.get(name, 0)
        if len(recent) >= _LEVEL // 2 and rate < _QUIET * level and paused < _LONGEST_PAUSE:
            self._paused[name] = paused + 1
            return math.nan
        if 0 < paused < _LONGEST_PAUSE and rate > level:
            self._paused[name] = -1
            return math.nan
        self._paused.pop(name, None)
        recent.append(rate)
        return rate

    def _jumps(self, values: list[float]) -> list[float]:
        """The rate that each source has jumped to, 0 where it is within what was forecast.

        A jump that begins within a tick shows only a part of itself, half in the mean.
        """
        assert self._rates is not None
        if not self._tick:
            return [0.0] * len(values)
        means = self._rates.predict(1)[:, 0]
        _, upper = self._rates.intervals(1, _SURPRISE)
        return [
            mean + self.settings.jump * (value - mean) if value > max(high, _LEAST_JUMP * mean) else 0.0
            for value, mean, high in zip(values, means.tolist(), upper[:, 0].tolist(), strict=True)
        ]

    def _risen(self, name: str) -> float:
        """By how much a rate has risen in each of the last ticks, 0 if it did not rise in all of them.

        Forecasts that were right on a level load believe in a rise only when it is nearly over, which is too
        late where units take longer to start than work may wait.
        """
        recent = list(self._received.get(name, ()))[-_RISING:]
        if len(recent) < _RISING or any(two <= one for one, two in pairwise(recent)):
            return 0.0
        rise = recent[-1] - recent[0]
        return rise / (_RISING - 1) if rise >= _RISE * recent[0] else 0.0

    def _slow(self, pool: PoolLoad) -> bool:
        """Whether units take longer to start than work may wait until they are there."""
        own = self.settings
        return _known(pool.startup, own.startup) + _known(pool.pause, own.pause) >= own.tight * own.bound

    def _steps(self, seen: Load) -> int:
        own = self.settings
        startups = [_known(each.startup, own.startup) + _known(each.pause, own.pause) for each in seen.pools]
        ahead = max(startups) + _AHEAD * own.bound
        return min(max(math.ceil(ahead / seen.seconds) + 1, _LEAST_STEPS), _MOST_STEPS)

    def _from_outside(self, seen: Load) -> list[list[float] | None]:
        """Tuples that will come to each operator in each step; None where parents say it."""
        assert self._rates is not None
        steps = self._steps(seen)
        _, upper = self._rates.intervals(
            steps, 2 * self.settings.level - 1 if self.settings.level > 0.5 else 0.01
        )
        means = self._rates.predict(steps)
        few = self._tick < _FEW
        found: list[list[float] | None] = []
        number = 0
        for each in seen.operators:
            if each.parents:
                found.append(None)
                continue
            now = each.received / seen.seconds
            ahead = [
                now if math.isnan(mean) or few else min(high, 2 * max(mean, now))
                for mean, high in zip(means[number], upper[number], strict=True)
            ]
            risen = self._risen(each.name) if self._slow(seen.pool(each.pool)) else 0.0
            ahead = [
                max(rate, self._jumped[number], min(now + risen * (step + 1), 2 * now))
                for step, rate in enumerate(ahead)
            ]
            found.append(
                [
                    rate * seen.seconds
                    for rate in with_gates(
                        seen, each, ahead, self._forecast_horizon(seen.pool(each.pool)), self.settings.level
                    )
                ]
            )
            number += 1
        return found

    def _forecast_horizon(self, pool: PoolLoad) -> float:
        """When units that are asked for now would be there and have caught up; what comes later can wait."""
        startup, pause = _known(pool.startup, self.settings.startup), _known(pool.pause, self.settings.pause)
        return startup + pause + self._catch_up

    def _ordered(self, seen: Load) -> list[PoolLoad]:
        """Pools in the order of their first operators."""
        names = dict.fromkeys(each.pool for each in seen.operators)
        return [seen.pool(name) for name in names]

    def _costs_to_go(self, seen: Load, pool: str) -> dict[int, float]:
        """What a tuple costs in its operator and in those of the same pool behind it."""
        costs: dict[int, float] = {}
        for place in reversed(seen.within(pool)):
            behind = sum(
                passed * costs[other]
                for other in costs
                for edge, passed in zip(seen.operators[other].parents, self._of(seen, other), strict=True)
                if edge.parent == place
            )
            costs[place] = self._cpu.get(seen.operators[place].name, 0.0) + behind
        return costs

    def _of(self, seen: Load, place: int) -> list[float]:
        """The selectivity of each edge to an operator."""
        each = seen.operators[place]
        return self._passed.get(each.name, [edge.selectivity for edge in each.parents])

    def _outlook(self, seen: Load, pool: PoolLoad, given: list[list[float] | None]) -> _Outlook:
        own = self.settings
        costs = self._costs_to_go(seen, pool.name)
        steps = self._steps(seen)
        arriving, queue, excused = [0.0] * steps, 0.0, 0.0
        for place, cost in costs.items():
            each = seen.operators[place]
            queue += each.pending * cost
            path = given[place]
            if path is not None:
                arriving = [work + tuples * cost for work, tuples in zip(arriving, path, strict=True)]
            excused = max(excused, self._resumed.get(each.name, seen.at) - seen.at)
        startup, pause = _known(pool.startup, own.startup), _known(pool.pause, own.pause)
        if self._slow(pool):
            excused = max(excused, startup + pause + self._catch_up)
        usable = own.usable * self._got.get(pool.name, 1.0)
        return _Outlook(queue, arriving, seen.fixed, usable, startup, pause, excused)

    def _plan(self, pool: PoolLoad, outlook: _Outlook, units: int, step: float) -> Course:
        return course(outlook.queue, outlook.arriving, step, self._ramp(pool, outlook, units))

    def _ramp(self, pool: PoolLoad, outlook: _Outlook, units: int) -> Ramp:
        """When so many units would be ready, and how long the pool then stands still."""
        ready = outlook.startup if units > pool.units else 0.0
        return Ramp(pool.units, units, ready, outlook.pause if units != pool.units else 0.0, outlook.usable)

    def _waits(self, pool: PoolLoad, outlook: _Outlook, units: int, step: float) -> list[tuple[float, float]]:
        """How long work waits at some of the next instants."""
        ramp = self._ramp(pool, outlook, units)
        if outlook.fixed:
            return epochs(outlook.queue, outlook.arriving, step, ramp, outlook.fixed)
        plan = course(outlook.queue, outlook.arriving, step, ramp)
        return [
            (number * step, wait)
            for number, wait in enumerate((ramp.drained(0.0, outlook.queue), *plan.waits))
        ]

    def _keeps(self, pool: PoolLoad, outlook: _Outlook, units: int, step: float) -> bool:
        """Whether work waits no longer than it may: the tight part before units are ready, the goal then."""
        own, waits = self.settings, self._waits(pool, outlook, units, step)
        last = waits[-1][0]
        early = outlook.startup + outlook.pause + self._catch_up
        return all(
            wait <= own.bound * (own.tight if at < min(early, last) else own.goal)
            for at, wait in waits
            if at >= min(outlook.excused, last)
        )

    def _needed(self, pool: PoolLoad, outlook: _Outlook) -> tuple[int, Course]:
        step = self._step
        low, high = self.limits.least, self.limits.least
        while not self._keeps(pool, outlook, high, step) and high < self.limits.most:
            low, high = high + 1, min(2 * high, self.limits.most)
        while low < high:
            middle = (low + high) // 2
            if self._keeps(pool, outlook, middle, step):
                high = middle
            else:
                low = middle + 1
        chosen = max(high, pool.present) if high > pool.present else pool.present
        return high, self._plan(pool, outlook, chosen, step)

    def _pass_on(
        self, seen: Load, pool: PoolLoad, given: list[list[float] | None], plan: Course, outlook: _Outlook
    ) -> None:
        """Tuples that operators behind will get: what is served of what comes in here, by selectivity."""
        for place in seen.within(pool.name):
            if given[place] is None:
                given[place] = self._merged(seen, place, given)
        costs = self._costs_to_go(seen, pool.name)
        for place, each in enumerate(seen.operators):
            if each.pool == pool.name or not each.parents:
                continue
            for edge, passed in zip(each.parents, self._of(seen, place), strict=True):
                if seen.operators[edge.parent].pool != pool.name:
                    continue
                cost = costs[edge.parent]
                path = given[edge.parent] or [0.0] * len(plan.served)
                parts = [
                    (path[step] * served / work if work else served / cost if cost else path[step])
                    for step, (served, work) in enumerate(zip(plan.served, outlook.arriving, strict=True))
                ]
                before = given[place] or [0.0] * len(parts)
                given[place] = [one + passed * two for one, two in zip(before, parts, strict=True)]

    def _merged(self, seen: Load, place: int, given: list[list[float] | None]) -> list[float]:
        found = [0.0] * self._steps(seen)
        for edge, passed in zip(seen.operators[place].parents, self._of(seen, place), strict=True):
            path = given[edge.parent]
            if path is not None:
                found = [one + passed * two for one, two in zip(found, path, strict=True)]
        return found

    def _wish(self, seen: Load, pool: PoolLoad, outlook: _Outlook, units: int) -> Wish | None:
        needs = self._needs.setdefault(pool.name, deque())
        needs.append((seen.at, units))
        rate = outlook.arriving[0] / self._step
        numbers = {"queue": outlook.queue, "rate": rate, "needed": float(units)}
        held = self._diagnosis(seen, pool, outlook)
        words = (
            f"{rate:.2f} units of work a second are expected, then up to "
            f"{max(outlook.arriving) / self._step:.2f}; "
            f"{outlook.queue:,.1f} wait"
        )
        if units > pool.present:
            goal = self.settings.goal * self.settings.bound
            reason = f"{words}; {units} units keep the wait below {shown_seconds(goal)}"
            if outlook.excused:
                reason += f" after {shown_seconds(outlook.excused)}"
            reason += gates_words(seen, self._forecast_horizon(pool))
            return Wish(pool.name, units, reason, numbers, held)
        if held and pool.present == units:
            return Wish(pool.name, units, words, numbers, held)
        return self._in(seen, pool, outlook, words, numbers)

    def _in(
        self, seen: Load, pool: PoolLoad, outlook: _Outlook, words: str, numbers: Mapping[str, float]
    ) -> Wish | None:
        """Fewer units once what they cost for nothing exceeds the price of the change."""
        needs = self._needs[pool.name]
        excess = pool.present - needs[-1][1]
        if excess <= 0:
            needs.clear()
            return None
        price = outlook.startup * excess + outlook.pause * (pool.present + excess)
        patience = max(self.settings.patience * price / excess, seen.seconds)
        while len(needs) > 1 and needs[1][0] <= seen.at - patience:
            needs.popleft()
        wanted = max(need for _, need in needs)
        idle = sum(
            (pool.present - need) * (after - at)
            for (at, need), (after, _) in pairwise([(needs[0][0] - seen.seconds, needs[0][1]), *needs])
        )
        if wanted >= pool.present or seen.at - needs[0][0] + seen.seconds < patience:
            return None
        if wanted - needs[-1][1] > max(1.0, wanted / 4) and idle < 2 * self.settings.patience * price:
            return None  # the need still falls: one larger change is cheaper than two
        reason = (
            f"{words}; {wanted} units are enough for {shown_seconds(patience)}, and {idle:,.0f} unit seconds "
            f"without need exceed {price:,.0f} of a change"
        )
        return Wish(pool.name, wanted, reason, numbers)

    def _diagnosis(self, seen: Load, pool: PoolLoad, outlook: _Outlook) -> str:
        """Why more units would not help; empty if they would."""
        if not pool.use or not self._whole.get(pool.name, False):
            return ""
        busiest, mean = max(pool.busy), pool.mean_busy
        if len(pool.use) > 1 and busiest >= _BUSY and busiest >= _SKEWED * mean:
            return (
                f"skew: the busiest unit is busy for {busiest:.0%} of the time and all for {mean:.0%} "
                f"in the mean; "
                "rebalance, more units would be as idle"
            )
        # Work that came late in the tick says nothing of how busy units are: only a queue of old does.
        behind = outlook.queue > self.settings.bound * pool.units
        processed = any(seen.operators[place].processed for place in seen.within(pool.name))
        if behind and mean < _BLOCKED and processed:
            return (
                f"{outlook.queue:,.1f} processor seconds wait and units are busy for {mean:.0%} of "
                f"the time: they "
                "wait for something else, such as a slow sink"
            )
        late = math.isfinite(seen.latency) and seen.latency > self.settings.bound
        if late and outlook.queue < 0.1 * pool.units and mean < _BLOCKED:
            return (
                f"the latency is {shown_seconds(seen.latency)}, but nothing waits here and units are "
                f"busy for "
                f"{mean:.0%} of the time: the source or the sink is slow"
            )
        return ""

    @property
    def _step(self) -> float:
        assert self._seen is not None
        return self._seen.seconds


def _known(measured: float, otherwise: float) -> float:
    return measured if math.isfinite(measured) else otherwise
