"""A plan under a steady load: tuples are neither lost nor made, and no processor does more than it can.

In every slice the source sends a random number of tuples, each split hands its slice to channels, and each
channel works off its queue as far as its processor's time goes. Channels that share a processor finish what
is further along first. What leaves a stage reaches the next one a slice later. A slice costs a few numpy
calls a stage, whatever the number of channels.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock_lab.errors import BadSimulation
from penstock_lab.simulate.plan import Plan
from penstock_lab.simulate.splits import Amounts
from penstock_lab.simulate.stage import SOURCE, Stage

__all__ = ["Clock", "Observed", "Tally", "simulate"]


@dataclass(frozen=True)
class Clock:
    """How long a run lasts, in seconds; the first `warm_up` are not observed."""

    seconds: float = 10.0
    slice: float = 0.05
    warm_up: float = 4.0

    def __post_init__(self) -> None:
        if not 0 < self.slice <= self.seconds - self.warm_up <= self.seconds:
            raise BadSimulation(
                f"a run of {self.seconds} s with {self.warm_up} s of warm-up in slices of {self.slice} s; "
                "give a warm-up of 0 or more and at least a slice after it"
            )


@dataclass(frozen=True)
class Tally:
    """Copies of tuples that a stage received and worked off over the whole run, and those left in queues."""

    received: float
    done: float
    queued: float


@dataclass(frozen=True)
class Observed:
    """The steady state under one load.

    `rate` is the load asked for and `offered` what chance made of it; `throughput` is in source tuples/s
    that came through to the end, `comparisons` in pairs/s; `cpu`, and the three parts that make up a whole,
    are shares of all processors; `busiest` is the share of one; `queue` is the mean over channels.
    """

    rate: float
    offered: float
    throughput: float
    comparisons: float
    operators: float
    communication: float
    busiest: float
    queue: float
    connections: float
    stages: tuple[Tally, ...]

    @property
    def cpu(self) -> float:
        """How busy the processors are."""
        return self.operators + self.communication

    @property
    def idle(self) -> float:
        """How idle they are."""
        return 1.0 - self.cpu


def simulate(plan: Plan, rate: float, rng: np.random.Generator, clock: Clock | None = None) -> Observed:
    """Run the plan under a load of `rate` source tuples/s.

    >>> from penstock_lab.simulate import Dealt, Stage
    >>> stage = Stage("map", work=0.001, split=Dealt(2), hosts=(0, 1))
    >>> seen = simulate(Plan((stage,), np.ones(2)), 10_000, np.random.default_rng(7))
    >>> round(seen.throughput), round(seen.cpu, 3)
    (2000, 1.0)
    """
    clock = clock or Clock()
    channels = [_Channels(plan, stage, rate, rng) for stage in plan.stages]
    slices = round(clock.seconds / clock.slice)
    first = round(clock.warm_up / clock.slice)
    budget = plan.speeds * clock.slice
    chatter = np.minimum(plan.chatter * clock.slice, budget)
    leaving: dict[str, float] = dict.fromkeys((stage.name for stage in plan.stages), 0.0)
    offered = queue = 0.0
    for number in range(slices):
        if number == first:
            for each in channels:
                each.observe()
        leaving[SOURCE] = float(rng.poisson(rate * clock.slice))
        for each in channels:
            each.receive(sum(leaving[name] for name in each.stage.inputs), rng)
        free = budget - chatter
        for each in reversed(channels):
            leaving[each.stage.name] = each.work(free)
        if number >= first:
            offered += leaving[SOURCE]
            queue += sum(float(each.queue.sum()) for each in channels)
    observed = slices - first
    return _seen(plan, rate, channels, observed * clock.slice, offered, queue / observed)


class _Channels:
    """All channels of one stage."""

    def __init__(self, plan: Plan, stage: Stage, rate: float, rng: np.random.Generator) -> None:
        self.stage = stage
        self.hosts = np.array(stage.hosts)
        self.queue = np.zeros(len(self.hosts))
        self.received = 0.0
        self.done = np.zeros(len(self.hosts))
        self.before = self.done
        self.comparisons = np.zeros(len(self.hosts))
        if stage.window is not None:
            # Either side brings half of the tuples, and a tuple meets the window of the other side.
            left, right = stage.split.held(stage.window.tuples(rate * plan.flow[stage.name] / 2), rng)
            self.comparisons = 2 * left * right / np.maximum(left + right, 1e-12)
        self.operator = stage.work + stage.compare * self.comparisons
        self.handling = plan.handling(stage)
        self.leaving = plan.leaving(stage)

    @cached_property
    def cost(self) -> Amounts:
        """Seconds for one tuple in each channel; a free tuple costs a nanosecond of a nanosecond."""
        return np.maximum(self.operator + self.handling, 1e-18)

    def observe(self) -> None:
        """Start counting."""
        self.before = self.done.copy()

    def receive(self, tuples: float, rng: np.random.Generator) -> None:
        """Queue what comes in."""
        if tuples > 0:
            parts = self.stage.split.parts(tuples, rng)
            self.queue += parts
            self.received += float(parts.sum())

    def work(self, free: Amounts) -> float:
        """Work off what the processors' free time allows, take that time, and say how much leaves."""
        done = np.minimum(self.queue, free[self.hosts] / self.cost)
        free[self.hosts] = np.maximum(free[self.hosts] - done * self.cost, 0.0)
        self.queue -= done
        self.done += done
        return float(done.sum()) * self.leaving

    @property
    def observed(self) -> Amounts:
        """Tuples done by each channel since `observe`."""
        return self.done - self.before


def _seen(  # noqa: PLR0913, PLR0917 -- what a run leaves behind
    plan: Plan, rate: float, channels: list[_Channels], seconds: float, offered: float, queue: float
) -> Observed:
    capacity = float(plan.speeds.sum()) * seconds
    chatter = np.minimum(plan.chatter, plan.speeds) * seconds
    busy = chatter.copy()
    for each in channels:
        busy[each.hosts] += each.observed * each.cost
    ends = [each for each in channels if not plan.readers(each.stage.name)]
    handled = sum(float(each.observed.sum()) * each.handling for each in channels)
    return Observed(
        rate=rate,
        offered=offered / seconds,
        throughput=min(
            float(each.observed.sum()) / seconds / (plan.flow[each.stage.name] * each.stage.split.copies)
            for each in ends
        ),
        comparisons=sum(float(each.observed @ each.comparisons) for each in channels) / seconds,
        operators=sum(float(each.observed @ each.operator) for each in channels) / capacity,
        communication=(float(chatter.sum()) + handled) / capacity,
        busiest=float((busy / plan.speeds).max()) / seconds,
        queue=queue / sum(len(each.hosts) for each in channels),
        connections=float(plan.connections.max()),
        stages=tuple(
            Tally(each.received, float(each.done.sum()), float(each.queue.sum())) for each in channels
        ),
    )
