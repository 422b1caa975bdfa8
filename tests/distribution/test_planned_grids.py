"""Grids of joins that plans change while the run goes on: any grids, any router, in any number of steps."""

import tempfile
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distribution.drawing import any_spread, no_sample
from operators.cases import CASES
from operators.contract import KernelRun
from operators.test_contract import accepted, as_text, epochs_of, thinned
from penstock.control.rescale import Rescale
from penstock.distribution import OnGrids
from penstock.distribution.distribution import Form, Held, Settings
from penstock.distribution.frequent_keys import KeyCounts
from penstock.distribution.key_layout import KeyLayout
from penstock.routing import PARTITIONINGS, HashPair, Resources, Ring, Spread, first_router
from penstock.runtime.layout_files import LayoutFiles
from penstock.sketches.splitmix import splitmix64
from penstock.state import Location

JOINS = [name for name in CASES if "join" in name]
RESOURCES = dict.fromkeys(get_args(Form), Resources.of("LQL"))


@dataclass
class PlannedRun(KernelRun):
    """A kernel's run whose layouts are those of plans, one for every request or step of one."""

    grids: int = 0

    def begin(self, channels):
        super().begin(channels)
        given = Settings(RESOURCES, most_bytes=100)
        self.steering = self.kernel.distribution.steering(given, self.files)

    def _any_layout(self, _channels=None):
        rng, before = self.rng, self.layout
        if len(self.hashes):
            counts = tuple(rng.integers(1, 50, len(self.hashes)).tolist())
            signed = tuple(self.hashes.view(np.int64).tolist())
            self.steering.frequent.update([KeyCounts(signed, counts, sum(counts), len(signed))])
        # A step moves between a tenth of the state and all of it.
        held = Held(bytes=float(rng.uniform(50, 1000)), tuples=1)
        wish = self._any_wish()
        asked = {} if wish is None else {wish.setting: wish}
        after = self.steering.follow(before, asked, held, no_sample)
        if after.spread != before.spread:
            assert self.kernel.distribution.moves(before, after)
            self.grids += bool(after.spread.grids)
        return after

    def _any_wish(self):
        rng, channels = self.rng, int(self.rng.integers(1, 6))
        if rng.random() < 0.3:
            return None
        if rng.random() < 0.3:
            channels = self.steering.target(self.layout)
        known = np.unique(rng.choice(self.hashes, 3)) if len(self.hashes) else self.hashes
        router, spread = None, None
        if rng.random() < 0.5:
            targets = rng.integers(0, channels, len(known)).astype(np.int32)
            router = HashPair(known, targets, Ring(channels))
        partitioning = None if rng.random() < 0.5 else str(rng.choice(list(PARTITIONINGS)))
        copied = self.kernel.distribution.copied
        if copied != "neither" and rng.random() < 0.7:
            spread = any_spread(rng, copied, channels, known)
        wish = Rescale(0, channels, partitioning, router=router, spread=spread)
        self.steering.check(wish)
        return wish


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


# What layouts hold.

ONE, TWO = 1234567, -7654321
JOIN = OnGrids(("k",), "both")


def grid(key, *cells, columns=1):
    return Spread((key,), (len(cells),), (columns,), cells)


@pytest.fixture
def files(tmp_path):
    return LayoutFiles(Location(str(tmp_path)))


@pytest.fixture
def steering(files):
    return JOIN.steering(Settings(RESOURCES, most_bytes=2**40), files)


def followed(steering, channels=4, grids=None, wish=None, size=1.0):
    """A layout, and the next one; no tuples are ahead in which hot keys could be looked for."""
    name = steering.files.store(first_router("balanced", channels))
    before = KeyLayout(channels=channels, router=name, target=name, grids=grids)
    asked = {} if wish is None else {wish.setting: wish}
    return before, steering.follow(before, asked, Held(bytes=size), no_sample)


@pytest.mark.parametrize("held", [None, Spread(), grid(TWO, 1, 3)])
def test_new_grids_alone_leave_all_other_keys_where_they_are(steering, held):
    before, after = followed(steering, grids=held, wish=Rescale(0, 4, spread=grid(ONE, 0, 2)))
    assert after.grids == grid(ONE, 0, 2)
    assert (after.router, after.target) == (before.router, before.target)
    assert JOIN.moves(before, after)


def test_grids_stay_if_a_request_does_not_speak_of_them(steering):
    _, after = followed(steering, grids=grid(ONE, 0, 2), wish=Rescale(0, 3))
    assert (after.channels, after.grids) == (3, grid(ONE, 0, 2))


def test_all_grids_are_given_up_by_an_empty_spread(steering):
    before, after = followed(steering, grids=grid(ONE, 0, 2), wish=Rescale(0, 4, spread=Spread()))
    assert after.grids == Spread()
    assert JOIN.moves(before, after)


@pytest.mark.parametrize("held", [None, Spread()])
def test_no_grids_instead_of_none_move_nothing(steering, held):
    before, after = followed(steering, grids=held, wish=Rescale(0, 4, spread=Spread()))
    assert not JOIN.moves(before, after)


def test_whole_keys_of_a_spread_go_into_the_table(steering, files):
    wish = Rescale(0, 4, spread=Spread((ONE, TWO), (1, 2), (1, 1), (3, 0, 1)))
    _, after = followed(steering, wish=wish)
    assert after.grids == grid(TWO, 0, 1)
    assert files.router(after.router).route(np.array([ONE], np.uint64)).tolist() == [3]


def test_a_router_that_is_given_is_taken(steering, files):
    router = HashPair(np.array([ONE], np.uint64), np.array([2], np.int32), Ring(5))
    _, after = followed(steering, wish=Rescale(0, 5, router=router, spread=grid(TWO, 0, 4)))
    assert files.router(after.target).to_bytes() == router.to_bytes()
    assert after.grids == grid(TWO, 0, 4)


def test_a_changed_grid_counts_toward_what_an_epoch_may_move(files):
    steering = JOIN.steering(Settings(RESOURCES, most_bytes=150), files)
    hashes = (ONE, *splitmix64(np.arange(99, dtype=np.uint64), 3).view(np.int64).tolist())
    steering.frequent.update([KeyCounts(hashes, (1000, *[10] * 99), 1990, 100)])
    _, alone = followed(steering, wish=Rescale(0, 2, "uniform"), size=1000.0)
    _, beside = followed(steering, wish=Rescale(0, 2, "uniform", spread=grid(ONE, 0, 1)), size=1000.0)
    assert beside.grids == grid(ONE, 0, 1)
    assert steering.left(beside) > steering.left(alone) > 0


@dataclass(frozen=True)
class Told:
    """What a channel tells of its keys."""

    keys: KeyCounts


def test_a_row_on_a_judged_grid_counts_once(files):
    """On two left cells and a right one, a left row arrives twice and a right row three times."""
    steering = OnGrids(("k",), "judged").steering(Settings(RESOURCES), files)
    before, _ = followed(steering, grids=grid(ONE, 0, 1, 3, columns=2))
    steering.learn(before, [Told(KeyCounts((ONE,), (70,), 70, 1, sides=((40,), (30,)), totals=(40, 30)))])
    assert steering.frequent.observed().rates == (20, 10)
