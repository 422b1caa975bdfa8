"""The routers of plans: the first of a stage, its successors at a rescale, and the steps towards them.

A request takes effect with the next plan, which is durable before its epoch runs. Where the state that has to
move is more than what an epoch may move, the plan has a router on the way, and the plans after it go on.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.compile import is_single
from penstock.errors import BadRescale
from penstock.routing import (
    PARTITIONINGS,
    Frequencies,
    Goal,
    Resources,
    first_router,
    next_router,
    step_toward,
)
from penstock.runtime.frequent_keys import FrequentKeys
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.routers import Routers
from penstock.runtime.stage import StageRunner

__all__ = ["MOST_CHANNELS", "Rescale", "Rescaling"]

MOST_CHANNELS = 1024
"""How many channels a stage can have."""


@dataclass(frozen=True)
class Rescale:
    """A wish: so many channels for a stage, by a partitioning (by default as before), for a reason.

    >>> Rescale(0, 8)
    Rescale(stage=0, channels=8, partitioning=None, reason='asked for')
    """

    stage: int
    channels: int
    partitioning: str | None = None
    reason: str = "asked for"


@dataclass
class Rescaling:
    """What is asked for, and how it becomes plans; `most_bytes` is what an epoch may move of a stage."""

    runners: Sequence[StageRunner]
    routers: Routers
    partitioning: str
    resources: Sequence[Resources]
    frequent: Mapping[int, FrequentKeys]
    most_bytes: int
    _asked: dict[int, Rescale] = field(default_factory=dict)
    _under_way: dict[int, list[threading.Event]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, wish: Rescale) -> threading.Event:
        """Take a request for the next plan, in the place of an earlier one; set when all state is there."""
        self._check(wish)
        done = threading.Event()
        with self._lock:
            self._asked[wish.stage] = wish
            self._under_way.setdefault(wish.stage, []).append(done)
        return done

    def settle(self, stages: Sequence[StagePlan]) -> None:
        """After an epoch with these plans: who waits for a stage whose state is all there may go on."""
        with self._lock:
            for number, plan in enumerate(stages):
                if number not in self._asked and plan.router == plan.target:
                    for done in self._under_way.pop(number, []):
                        done.set()

    def asked(self) -> dict[int, Rescale]:
        """What the next plan has to follow."""
        with self._lock:
            return dict(self._asked)

    def planned(self, wishes: Mapping[int, Rescale]) -> None:
        """These requests are part of a durable plan."""
        with self._lock:
            for stage, wish in wishes.items():
                if self._asked.get(stage) is wish:
                    del self._asked[stage]

    def first(self, number: int, channels: int) -> StagePlan:
        """The plan of a stage that has no state yet."""
        plan = StagePlan(channels, partitioning=self.partitioning)
        if not self._keyed(number):
            return plan
        name = self.routers.store(first_router(self.partitioning, channels))
        return replace(plan, router=name, target=name)

    def following(
        self, number: int, before: StagePlan, record: StageRecord, wish: Rescale | None, size: float
    ) -> StagePlan:
        """The plan after another one, where the stage and those beside it have `size` bytes of state."""
        plan = replace(before, spread=None)
        if not before.router:
            return plan if wish is None else replace(plan, channels=wish.channels)
        current, spread = self.routers.find(before.router), record.spread
        if wish is not None:
            partitioning = wish.partitioning or before.partitioning
            if spread is not None and spread.keys:
                current = spread.settled(current)
                spread = spread.fitting(wish.channels)
            goal = self._goal(number)
            after = next_router(partitioning, current, self._known(number), wish.channels, goal)
            plan = replace(plan, partitioning=partitioning, target=self.routers.store(after))
        if plan.target == before.router and spread == record.spread:
            return plan
        stepped = step_toward(
            current,
            self.routers.find(plan.target),
            self._known(number),
            growth=self.resources[number].state,
            share=min(1.0, self.most_bytes / size) if size else 1.0,
            domain=self._goal(number).domain,
        )
        changed = spread if spread != record.spread else None
        return replace(plan, router=self.routers.store(stepped), channels=stepped.channels, spread=changed)

    def left(self, plan: StagePlan) -> float:
        """The share of cells and of keys in tables that are not yet where the target has them."""
        if plan.router == plan.target:
            return 0.0
        now, then = (self.routers.find(name) for name in (plan.router, plan.target))
        size = max(len(now.ring.cells), len(then.ring.cells))
        cells = [np.repeat(each.ring.cells, size // len(each.ring.cells)) for each in (now, then)]
        keys = np.union1d(now.keys, then.keys)
        differ = np.concatenate([cells[0] != cells[1], now.route(keys) != then.route(keys)])
        return float(differ.mean())

    def _keyed(self, number: int) -> bool:
        stage = self.runners[number].stage
        return stage.beside is None and bool(stage.operator.keys)

    def _known(self, number: int) -> Frequencies:
        return self.frequent[number].known()

    def _goal(self, number: int) -> Goal:
        keys = self.frequent[number].keys
        return Goal(resources=self.resources[number], domain=max(keys, len(self._known(number)) + 1, 1000))

    def _check(self, wish: Rescale) -> None:
        hosts = [each.stage.number for each in self.runners if each.stage.beside is None]
        if wish.stage not in hosts:
            beside = 0 <= wish.stage < len(self.runners)
            why = (
                f"runs in the channels of stage {self.runners[wish.stage].stage.beside}"
                if beside
                else "is not there"
            )
            raise BadRescale(f"stage {wish.stage} {why}; rescale one of {', '.join(map(str, hosts))}")
        if not 1 <= wish.channels <= MOST_CHANNELS:
            raise BadRescale(f"stage {wish.stage} on {wish.channels} channels; give 1 to {MOST_CHANNELS}")
        if is_single(self.runners[wish.stage].stage) and wish.channels > 1:
            raise BadRescale(
                f"stage {wish.stage} has no key to part its state by, so it has one channel, "
                f"not {wish.channels}; group or join by a key to have more"
            )
        if wish.partitioning is not None and wish.partitioning not in PARTITIONINGS:
            raise BadRescale(f"partitioning={wish.partitioning!r}; give one of {', '.join(PARTITIONINGS)}")
