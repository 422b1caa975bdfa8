"""Which keys a rescale places: whole ones, and none that lie on grids or are split into sub-keys."""

from typing import get_args

import numpy as np
import pytest

from penstock.control.rescale import Rescale
from penstock.control.sub_keys import SplitKey, SubKeyPlan
from penstock.operators.exchange import Form
from penstock.routing import Goal, Resources, Spread, counter_threshold, first_router
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.rescale.frequent_keys import FrequentKeys, KeyCounts
from penstock.runtime.rescale.requests import Rescaling
from penstock.runtime.routers import Routers
from penstock.sketches.splitmix import splitmix64
from penstock.state.storage import Location

HASHES = splitmix64(np.arange(400, dtype=np.uint64), 4)
# One key of 30 %, 199 of 0.2 % in the table's range, and the same again of rarer ones.
COUNTS = np.concatenate([[30_000], np.full(199, 200), np.full(200, 151)])
HOT = int(HASHES[:1].view(np.int64)[0])


@pytest.fixture
def rescaling(tmp_path):
    frequent = FrequentKeys()
    for _ in range(4):
        signed = tuple(HASHES.view(np.int64).tolist())
        frequent.update([KeyCounts(signed, tuple(COUNTS.tolist()), int(COUNTS.sum()), len(HASHES))])
    resources = dict.fromkeys(get_args(Form), Resources.of("LLL"))
    return Rescaling((), Routers(Location(str(tmp_path))), "balanced", (resources,), {0: frequent}, 2**40)


def rest_of(rescaling, plan):
    """The tuples of all keys but the hot one in each channel."""
    routes = rescaling.routers.find(plan.target).route(HASHES[1:])
    return np.bincount(routes, COUNTS[1:], plan.channels)


def test_a_key_on_a_grid_is_not_placed_as_a_whole(rescaling):
    """Defect 4: with a spread key of 30 %, 8 to 9 channels left a channel with none of the rest."""
    name = rescaling.routers.store(first_router("balanced", 8))
    before = StagePlan(8, router=name, target=name)
    spread = Spread(keys=(HOT,), sizes=(8,), columns=(4,), targets=tuple(range(8)))
    plan = rescaling.following(0, before, StageRecord(spread=spread), Rescale(0, 9), 1.0)
    rest = rest_of(rescaling, plan)
    assert rest.max() / rest.min() <= 1.3
    assert HASHES[0] not in rescaling.routers.find(plan.target).keys


@pytest.mark.parametrize("channels", [8, 24, 48])
def test_shares_are_counted_as_finely_as_the_channels_require(rescaling, channels):
    """Defect 8: the counter's error was 1e-4 for any number of channels."""
    name = rescaling.routers.store(first_router("balanced", channels))
    before = StagePlan(channels, router=name, target=name)
    known = rescaling.frequent[0].known()
    rescaling.following(0, before, StageRecord(), None, 1.0)
    delta = counter_threshold(Goal(Resources.of("LLL"), domain=1000), channels)
    assert rescaling.frequent[0].epsilon <= delta / 10
    # What was known is not lost.
    found = rescaling.frequent[0].known()
    assert found.of(known.hashes[:200]) == pytest.approx(known.shares[:200], abs=1e-4)


def test_a_grid_that_is_given_up_makes_its_key_whole_again(rescaling):
    name = rescaling.routers.store(first_router("balanced", 8))
    before = StagePlan(8, router=name, target=name)
    spread = Spread(keys=(HOT,), sizes=(8,), columns=(4,), targets=tuple(range(8)))
    plan = rescaling.following(0, before, StageRecord(spread=spread), Rescale(0, 4), 1.0)
    assert plan.spread == Spread()
    assert HASHES[0] in rescaling.routers.find(plan.target).keys


def test_a_key_that_is_split_is_not_placed_as_a_whole(rescaling):
    """Defect 4: its tuples are formed in every channel, so its own channel has no more to do for it."""
    name = rescaling.routers.store(first_router("balanced", 8))
    split = SubKeyPlan((SplitKey(HOT, 0.3, 64),))
    before = StagePlan(8, form="combined", router=name, target=name, sub_keys=split)
    plan = rescaling.following(0, before, StageRecord(), Rescale(0, 9), 1.0)
    rest = rest_of(rescaling, plan)
    assert rest.max() / rest.min() <= 1.3
