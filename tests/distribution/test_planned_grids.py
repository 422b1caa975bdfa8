"""Grids of joins that plans change while the run goes on: any grids, any router, in any number of steps."""

import tempfile
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.cases import CASES
from operators.contract import KernelRun
from operators.test_contract import accepted, as_text, epochs_of, thinned
from penstock.control.rescale import Rescale
from penstock.operators.exchange import Form
from penstock.routing import PARTITIONINGS, HashPair, Resources, Ring, Spread, first_router
from penstock.runtime.records import StagePlan, StageRecord
from penstock.distribution.frequent_keys import FrequentKeys, KeyCounts
from penstock.runtime.rescale.moving import relocated
from penstock.runtime.rescale.requests import Rescaling
from penstock.runtime.routers import Routers
from penstock.sketches.splitmix import splitmix64
from penstock.state import Location, StateLayout

JOINS = [name for name in CASES if "join" in name]
RESOURCES = dict.fromkeys(get_args(Form), Resources.of("LQL"))


def rescaling_in(folder, runners=(), most_bytes=100):
    location = Location(f"{folder}/routers")
    location.make()
    return Rescaling(runners, Routers(location), "balanced", (RESOURCES,), {0: FrequentKeys()}, most_bytes)


@dataclass
class PlannedRun(KernelRun):
    """A kernel's run whose layouts are those of plans, one for every request or step of one."""

    grids: int = 0
    rescaling: Rescaling = field(init=False)
    plan: StagePlan = field(init=False)
    spread: Spread | None = None

    def __post_init__(self):
        super().__post_init__()
        self.rescaling = rescaling_in(self.folder)
        name = self.rescaling.routers.store(self.layout.router)
        self.plan = StagePlan(self.layout.channels, router=name, target=name)

    def _any_layout(self, _channels=None):
        rng = self.rng
        if len(self.hashes):
            counts = tuple(rng.integers(1, 50, len(self.hashes)).tolist())
            signed = tuple(self.hashes.view(np.int64).tolist())
            self.rescaling.frequent[0].update([KeyCounts(signed, counts, sum(counts), len(signed))])
        # A step moves between a tenth of the state and all of it.
        size = float(rng.uniform(50, 1000))
        record = StageRecord(spread=self.spread)
        plan = self.rescaling.following(0, self.plan, record, self._any_wish(), size)
        if relocated(self.plan, plan) and plan.spread is not None:
            assert plan.spread != self.spread
            self.spread = plan.spread
            self.grids += bool(plan.spread.grids)
        self.plan = plan
        return StateLayout(self.rescaling.routers.find(plan.router), plan.channels, self.spread)

    def _any_wish(self):
        rng, channels = self.rng, int(self.rng.integers(1, 6))
        if rng.random() < 0.3:
            return None
        if rng.random() < 0.3:
            channels = self.rescaling.routers.find(self.plan.target).channels
        known = np.unique(rng.choice(self.hashes, 3)) if len(self.hashes) else self.hashes
        router = None
        if rng.random() < 0.5:
            targets = rng.integers(0, channels, len(known)).astype(np.int32)
            router = HashPair(known, targets, Ring(channels))
        partitioning = None if rng.random() < 0.5 else str(rng.choice(list(PARTITIONINGS)))
        return Rescale(0, channels, partitioning, router=router, spread=self._any_spread(channels, known))


@pytest.mark.parametrize("name", JOINS)
@settings(max_examples=8)
@given(data=st.data(), delay=st.integers(0, 50), channels=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_a_join_gives_the_same_however_plans_change_its_grids(name, data, delay, channels, seed):
    case = CASES[name]
    epochs = data.draw(epochs_of(case))
    if case.distinct:
        epochs = thinned(epochs)
    with tempfile.TemporaryDirectory() as folder:
        run = PlannedRun(case.relation, folder, channels, seed, restless=True)
        found = run.run(epochs, delay)
    assert as_text(found) == as_text(case.oracle(*accepted(case, epochs, delay)))


def test_grids_are_found_changed_and_given_up_over_many_epochs(tmp_path):
    """Forty epochs of one seed: the test above may draw no grid at all."""
    case = CASES["join"]
    run = PlannedRun(case.relation, tmp_path, 3, seed=11, restless=True)
    rng = np.random.default_rng(5)
    for epoch in range(40):
        rows = [
            [
                {"time": 10 * epoch + int(rng.integers(10)), "k": int(rng.integers(4)), column: each}
                for each in range(6)
            ]
            for column in ("v", "w")
        ]
        run.step(rows, (10 * epoch, 10 * epoch))
    run.drain(400)
    assert as_text(run.results) == as_text(case.oracle(run.accepted, 400))
    assert run.grids > 5
    assert run.moved > 100


# What plans hold.

ONE, TWO = 1234567, -7654321


def grid(key, *cells, columns=1):
    return Spread((key,), (len(cells),), (columns,), cells)


@pytest.fixture
def rescaling(tmp_path):
    return rescaling_in(tmp_path, most_bytes=2**40)


def planned(rescaling, channels=4, spread=None, wish=None):
    name = rescaling.routers.store(first_router("balanced", channels))
    before = StagePlan(channels, router=name, target=name)
    return before, rescaling.following(0, before, StageRecord(spread=spread), wish, 1.0)


@pytest.mark.parametrize("held", [None, Spread(), grid(TWO, 1, 3)])
def test_new_grids_alone_leave_all_other_keys_where_they_are(rescaling, held):
    before, plan = planned(rescaling, spread=held, wish=Rescale(0, 4, spread=grid(ONE, 0, 2)))
    assert plan.spread == grid(ONE, 0, 2)
    assert (plan.router, plan.target) == (before.router, before.target)
    assert relocated(before, plan)


def test_grids_stay_if_a_request_does_not_speak_of_them(rescaling):
    _, plan = planned(rescaling, spread=grid(ONE, 0, 2), wish=Rescale(0, 3))
    assert (plan.channels, plan.spread) == (3, None)


def test_all_grids_are_given_up_by_an_empty_spread(rescaling):
    before, plan = planned(rescaling, spread=grid(ONE, 0, 2), wish=Rescale(0, 4, spread=Spread()))
    assert plan.spread == Spread()
    assert relocated(before, plan)


@pytest.mark.parametrize("held", [None, Spread()])
def test_no_grids_instead_of_none_move_nothing(rescaling, held):
    before, plan = planned(rescaling, spread=held, wish=Rescale(0, 4, spread=Spread()))
    assert not relocated(before, plan)


def test_whole_keys_of_a_spread_go_into_the_table(rescaling):
    wish = Rescale(0, 4, spread=Spread((ONE, TWO), (1, 2), (1, 1), (3, 0, 1)))
    _, plan = planned(rescaling, wish=wish)
    assert plan.spread == grid(TWO, 0, 1)
    assert rescaling.routers.find(plan.router).route(np.array([ONE], np.uint64)).tolist() == [3]


def test_a_router_that_is_given_is_taken(rescaling):
    router = HashPair(np.array([ONE], np.uint64), np.array([2], np.int32), Ring(5))
    _, plan = planned(rescaling, wish=Rescale(0, 5, router=router, spread=grid(TWO, 0, 4)))
    assert rescaling.routers.find(plan.target).to_bytes() == router.to_bytes()
    assert plan.spread == grid(TWO, 0, 4)


def test_a_changed_grid_counts_toward_what_an_epoch_may_move(tmp_path):
    rescaling = rescaling_in(tmp_path, most_bytes=150)
    hashes = (ONE, *splitmix64(np.arange(99, dtype=np.uint64), 3).view(np.int64).tolist())
    rescaling.frequent[0].update([KeyCounts(hashes, (1000, *[10] * 99), 1990, 100)])
    name = rescaling.routers.store(first_router("balanced", 4))
    before = StagePlan(4, router=name, target=name)
    alone = rescaling.following(0, before, StageRecord(), Rescale(0, 2, "uniform"), 1000.0)
    wish = Rescale(0, 2, "uniform", spread=grid(ONE, 0, 1))
    beside = rescaling.following(0, before, StageRecord(), wish, 1000.0)
    assert beside.spread == grid(ONE, 0, 1)
    assert rescaling.left(beside) > rescaling.left(alone) > 0
