"""The routers of plans: the first router of a stage, its successors at a rescale, and the steps to them.

A request takes effect with the next plan, which is durable before its epoch runs. If more state has to move
than an epoch may move, the plan gets an intermediate router, and later plans continue from it.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.compile import is_single
from penstock.control.rescale import Rescale, Resplit
from penstock.errors import BadRescale
from penstock.operators.exchange import Form
from penstock.routing import (
    Frequencies,
    Goal,
    Resources,
    Spread,
    counter_threshold,
    first_router,
    next_router,
    step_toward,
)
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.rescale.frequent_keys import FrequentKeys
from penstock.runtime.routers import Routers
from penstock.runtime.stage import StageRunner

__all__ = ["Rescaling"]


@dataclass
class Rescaling:
    """The open requests, and how they become plans; an epoch moves at most `most_bytes` of a stage.

    `resources` of a stage depend on the form in which rows reach its channels.
    """

    runners: Sequence[StageRunner]
    routers: Routers
    partitioning: str
    resources: Sequence[Mapping[Form, Resources]]
    frequent: Mapping[int, FrequentKeys]
    most_bytes: int
    sigma: float = 0.1
    _asked: dict[int, Rescale] = field(default_factory=dict)
    _split: dict[int, Resplit] = field(default_factory=dict)
    _under_way: dict[int, list[threading.Event]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, wish: Rescale) -> threading.Event:
        """Take a request for the next plan, in place of an earlier one; returns an event for its end."""
        self.check(wish)
        done = threading.Event()
        with self._lock:
            self._asked[wish.stage] = wish
            self._under_way.setdefault(wish.stage, []).append(done)
        return done

    def offer(self, wish: Rescale | Resplit) -> bool:
        """Take a request of a policy for the next plan, unless a user's is there already."""
        with self._lock:
            if isinstance(wish, Resplit):
                self._split[wish.stage] = wish
            elif wish.stage in self._asked:
                return False
            else:
                self._asked[wish.stage] = wish
        return True

    def settle(self, stages: Sequence[StagePlan]) -> None:
        """After an epoch with these plans: wake those who wait for a stage whose state has all moved."""
        with self._lock:
            for number, plan in enumerate(stages):
                if number not in self._asked and plan.router == plan.target:
                    for done in self._under_way.pop(number, []):
                        done.set()

    def asked(self) -> dict[int, Rescale]:
        """The requests that the next plan has to follow."""
        with self._lock:
            return dict(self._asked)

    def asked_splits(self) -> dict[int, Resplit]:
        """The same for keys that are split into sub-keys."""
        with self._lock:
            return dict(self._split)

    def planned(self, wishes: Mapping[int, Rescale], splits: Mapping[int, Resplit]) -> None:
        """Drop these requests: they are now part of a durable plan."""
        with self._lock:
            _drop(self._asked, wishes)
            _drop(self._split, splits)

    def first(self, number: int, channels: int) -> StagePlan:
        """The first plan of a stage, which has no state yet."""
        plan = StagePlan(channels, partitioning=self.partitioning)
        if not self._keyed(number):
            return plan
        name = self.routers.store(first_router(self.partitioning, channels))
        return replace(plan, router=name, target=name)

    def following(
        self, number: int, before: StagePlan, record: StageRecord, wish: Rescale | None, size: float
    ) -> StagePlan:
        """The plan after another one; the stage and those in its channels have `size` bytes of state.

        Keys that lie on grids or are split into sub-keys have no place of their own, so none is planned.
        """
        plan = replace(before, spread=None)
        if not before.router:
            return plan if wish is None else replace(plan, channels=wish.channels)
        current, spread = self.routers.find(before.router), record.spread
        channels = before.channels if wish is None else wish.channels
        self.frequent[number].aim(counter_threshold(self._goal(number, before.form), channels))
        if wish is not None:
            partitioning = wish.partitioning or before.partitioning
            if spread is not None and spread.keys:
                current = spread.settled(current)
                spread = spread.fitting(wish.channels)
            known = self._whole(number, before, spread)
            after = next_router(partitioning, current, known, wish.channels, self._goal(number, before.form))
            plan = replace(plan, partitioning=partitioning, target=self.routers.store(after))
        if plan.target == before.router and spread == record.spread:
            return plan
        stepped = step_toward(
            current,
            self.routers.find(plan.target),
            self._whole(number, before, spread),
            growth=self.resources[number][before.form].state,
            share=min(1.0, self.most_bytes / size) if size else 1.0,
            domain=self._goal(number, before.form).domain,
        )
        changed = spread if spread != record.spread else None
        return replace(plan, router=self.routers.store(stepped), channels=stepped.channels, spread=changed)

    def left(self, plan: StagePlan) -> float:
        """The share of cells and table keys that are not yet where the target router has them."""
        if plan.router == plan.target:
            return 0.0
        now, then = (self.routers.find(name) for name in (plan.router, plan.target))
        size = max(len(now.ring.cells), len(then.ring.cells))
        cells = [np.repeat(each.ring.cells, size // len(each.ring.cells)) for each in (now, then)]
        keys = np.union1d(now.keys, then.keys)
        differ = np.concatenate([cells[0] != cells[1], now.route(keys) != then.route(keys)])
        return float(differ.mean())

    def _keyed(self, number: int) -> bool:
        runner = self.runners[number]
        return runner.in_place is None and bool(runner.kernel.exchanges[0].keys)

    def _known(self, number: int) -> Frequencies:
        return self.frequent[number].known()

    def _whole(self, number: int, plan: StagePlan, spread: Spread | None) -> Frequencies:
        """What is known of the keys that are in one channel each."""
        spread = spread or Spread()
        grids = tuple(key for key, size in zip(spread.keys, spread.sizes, strict=True) if size > 1)
        split = () if plan.sub_keys is None else tuple(each.hash for each in plan.sub_keys.keys)
        return self._known(number).without(np.array(grids + split, np.int64).view(np.uint64))

    def _goal(self, number: int, form: Form) -> Goal:
        domain = self.frequent[number].domain
        return Goal(resources=self.resources[number][form], sigma=self.sigma, domain=domain)

    def check(self, wish: Rescale | Resplit) -> None:
        """Check that a stage can have what is requested; raise `BadRescale` if it cannot."""
        if isinstance(wish, Resplit):
            if wish.stage not in [each.number for each in self.runners if each.may_split]:
                raise BadRescale(
                    f"stage {wish.stage} has no keys that could be split into sub-keys; see "
                    "StageChannels.splits"
                )
            return
        if not isinstance(wish, Rescale):
            raise BadRescale(f"a request is {type(wish).__name__}; give a Rescale(stage, channels)")
        hosts = [each.stage.number for each in self.runners if each.stage.host is None]
        if wish.stage not in hosts:
            exists = 0 <= wish.stage < len(self.runners)
            why = (
                f"runs in the channels of stage {self.runners[wish.stage].stage.host}"
                if exists
                else "does not exist"
            )
            raise BadRescale(f"stage {wish.stage} {why}; rescale one of {', '.join(map(str, hosts))}")
        if is_single(self.runners[wish.stage].stage) and wish.channels > 1:
            raise BadRescale(
                f"stage {wish.stage} has no key to partition its state by, so it has one channel, "
                f"not {wish.channels}; group or join by a key to have more"
            )


def _drop(asked: dict[int, Any], planned: Mapping[int, Any]) -> None:
    for stage, wish in planned.items():
        if asked.get(stage) is wish:
            del asked[stage]
