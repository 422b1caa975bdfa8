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
from penstock.control.rescale import Rebatch, Regroup, Rescale, Resplit
from penstock.control.ruling import Decided
from penstock.control.scale import Scale
from penstock.errors import BadRescale, BadRouting
from penstock.operators.exchange import Form
from penstock.routing import (
    Copied,
    Frequencies,
    Goal,
    HashPair,
    Resources,
    Spread,
    counter_threshold,
    first_router,
    next_router,
    step_toward,
)
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.rescale.frequent_keys import FrequentKeys
from penstock.runtime.rescale.learnt_costs import LearntCosts
from penstock.runtime.routers import Routers
from penstock.runtime.stage import StageRunner, hosted_by

__all__ = ["Rescaling"]

# A step moves at least one key or cell, however little may move.
_LEAST_SHARE = 1e-12
_COPIES: Mapping[Copied, str] = {
    "both": "both sides",
    "left": "the left side only",
    "right": "the right side only",
    "neither": "no side",
}
_SHAPES: Mapping[Copied, str] = {
    "both": "give 1 column or more",
    "left": "give 1 column",
    "right": "give a column for each channel",
    "neither": "give a spread without grids",
}


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
    costs: Mapping[int, LearntCosts] = field(default_factory=dict)
    _asked: dict[int, Rescale] = field(default_factory=dict)
    _split: dict[int, Resplit] = field(default_factory=dict)
    _grouped: dict[int, Regroup] = field(default_factory=dict)
    _batched: dict[int, Rebatch] = field(default_factory=dict)
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

    def offer(self, wish: Rescale | Resplit | Regroup | Rebatch) -> bool:
        """Take a request of a policy for the next plan, unless a user's is there already."""
        with self._lock:
            if isinstance(wish, Resplit):
                self._split[wish.stage] = wish
            elif isinstance(wish, Regroup):
                self._grouped[wish.stage] = wish
            elif isinstance(wish, Rebatch):
                self._batched[wish.stage] = wish
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

    def asked_groupings(self) -> dict[int, Regroup]:
        """The same for rows that may go to any channel."""
        with self._lock:
            return dict(self._grouped)

    def asked_batches(self) -> dict[int, Rebatch]:
        """The same for windows that are computed together."""
        with self._lock:
            return dict(self._batched)

    def planned(
        self,
        wishes: Mapping[int, Rescale],
        splits: Mapping[int, Resplit],
        groupings: Mapping[int, Regroup],
        batches: Mapping[int, Rebatch],
    ) -> None:
        """Drop these requests: they are now part of a durable plan."""
        with self._lock:
            _drop(self._asked, wishes)
            _drop(self._split, splits)
            _drop(self._grouped, groupings)
            _drop(self._batched, batches)

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

        A request may bring its own router and any hot keys on grids. These lie on their new grids in one
        step; all other keys take as many steps as `most_bytes` asks for. Without a router and a
        partitioning, new grids on the same channels leave all other keys where they are. Keys that lie on
        grids or are split into sub-keys have no place of their own, so none is planned.
        """
        plan = replace(before, spread=None)
        if not before.router:
            return plan if wish is None else replace(plan, channels=wish.channels)
        held = record.spread or Spread()
        current, spread = self.routers.find(before.router), held
        channels = before.channels if wish is None else wish.channels
        self.frequent[number].aim(counter_threshold(self._goal(number, before.form), channels))
        if wish is not None:
            current = held.settled(current)
            spread = (held if wish.spread is None else wish.spread).fitting(wish.channels)
            after = self._asked_for(number, before, held, wish, spread, current)
            partitioning = wish.partitioning or before.partitioning
            plan = replace(plan, partitioning=partitioning, target=self.routers.store(after))
        if plan.target == before.router and spread == held:
            return plan
        stepped = step_toward(
            current,
            self.routers.find(plan.target),
            self._whole(number, before, spread),
            growth=self.resources[number][before.form].state,
            share=self._movable(number, held, spread, size),
            domain=self._goal(number, before.form).domain,
        )
        changed = spread if spread != held else None
        return replace(plan, router=self.routers.store(stepped), channels=stepped.channels, spread=changed)

    def _asked_for(  # noqa: PLR0913, PLR0917 -- what there is, and what is asked for
        self, number: int, before: StagePlan, held: Spread, wish: Rescale, spread: Spread, current: HashPair
    ) -> HashPair:
        """The router that a request leads to: its own, the one in force for new grids alone, or a new one."""
        now = self.routers.find(before.target)
        if wish.router is not None:
            after = wish.router
        elif wish.spread is not None and wish.partitioning is None and wish.channels == now.channels:
            after = held.settled(now)
        else:
            known = self._whole(number, before, spread)
            goal = self._goal(number, before.form)
            after = next_router(wish.partitioning or before.partitioning, current, known, wish.channels, goal)
        return after if wish.spread is None else wish.spread.settled(after)

    def _movable(self, number: int, held: Spread, spread: Spread, size: float) -> float:
        """The share of the state that an epoch may move beside the keys whose grids change."""
        share = min(1.0, self.most_bytes / size) if size else 1.0
        changed = [key for key, _ in held.grids.items() ^ spread.grids.items()]
        weight = self._known(number).of(np.array(sorted(set(changed)), np.int64).view(np.uint64)).sum()
        return max(share - float(weight), _LEAST_SHARE)

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
        return not runner.hosted and bool(runner.kernel.exchanges[0].keys)

    def _known(self, number: int) -> Frequencies:
        return self.frequent[number].known()

    def _whole(self, number: int, plan: StagePlan, spread: Spread) -> Frequencies:
        """What is known of the keys that are in one channel each."""
        split = () if plan.sub_keys is None else tuple(each.hash for each in plan.sub_keys.keys)
        return self._known(number).without(np.array((*spread.grids, *split), np.int64).view(np.uint64))

    def _goal(self, number: int, form: Form) -> Goal:
        domain = self.frequent[number].domain
        return Goal(resources=self.resources[number][form], sigma=self.sigma, domain=domain)

    def check_decision(self, wanted: Decided) -> None:
        """Check what a policy decided; the number of executors concerns no stage."""
        if not isinstance(wanted, Scale):
            self.check(wanted)

    def check(self, wish: Rescale | Resplit | Regroup | Rebatch) -> None:
        """Check that a stage can have what is requested; raise `BadRescale` if it cannot."""
        if isinstance(wish, Regroup):
            allowed = {each.number: each.kernel.exchanges[0].groupings for each in self.runners}
            given = allowed.get(wish.stage, ())
            if wish.grouping not in given:
                others = f"give one of {', '.join(given)}" if given else "its rows have no choice of channels"
                raise BadRescale(f"stage {wish.stage} cannot have its rows {wish.grouping}; {others}")
            return
        if isinstance(wish, Rebatch):
            chosen = [each.number for each in self.runners if each.may_rebatch]
            if wish.stage not in chosen or wish.batch < 1:
                raise BadRescale(
                    f"stage {wish.stage} cannot have batches of {wish.batch} windows; give 1 or more to a "
                    "stage that shares out windows and leaves their number to the run"
                )
            return
        if isinstance(wish, Resplit):
            if wish.stage not in [each.number for each in self.runners if each.may_split]:
                raise BadRescale(
                    f"stage {wish.stage} has no keys that could be split into sub-keys; see "
                    "StageChannels.splits"
                )
            return
        if not isinstance(wish, Rescale):
            raise BadRescale(f"a request is {type(wish).__name__}; give a Rescale(stage, channels)")
        self._check_rescale(wish)

    def _check_rescale(self, wish: Rescale) -> None:
        """The same for another number of channels, another router or other grids."""
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
        if wish.router is not None and not self._keyed(wish.stage):
            raise BadRescale(f"stage {wish.stage} has no key to route by; ask for channels without a router")
        if wish.spread is not None and wish.spread.keys:
            self._check_spread(wish, wish.spread)

    def _check_spread(self, wish: Rescale, spread: Spread) -> None:
        """Refuse grids that do not fit into the channels, or on which a join would not be exact."""
        if not self._keyed(wish.stage):
            raise BadRescale(f"stage {wish.stage} has no key to spread; ask for channels without a spread")
        try:
            spread.router(first_router("uniform", wish.channels))
        except BadRouting as error:
            raise BadRescale(f"the spread of stage {wish.stage} is not one: {error}") from error
        if not spread.grids:
            return
        copied = self.runners[wish.stage].kernel.exchanges[0].copied
        if hosted := hosted_by(self.runners, wish.stage):
            raise BadRescale(
                f"stage {hosted[0].number} runs in the channels of stage {wish.stage} and needs every key "
                "whole in one of them; give a spread without grids"
            )
        for key, (across, cells) in spread.grids.items():
            exact = {"both": across, "left": 1, "right": len(cells)}.get(copied)
            if across != exact:
                raise BadRescale(
                    f"key {key} has a grid of {across} columns over {len(cells)} channels, but stage "
                    f"{wish.stage} may copy rows of {_COPIES[copied]}; {_SHAPES[copied]}"
                )


def _drop(asked: dict[int, Any], planned: Mapping[int, Any]) -> None:
    for stage, wish in planned.items():
        if asked.get(stage) is wish:
            del asked[stage]
