"""Which keys a rescale places: whole ones, and none that lie on grids or are split into sub-keys."""

from typing import get_args

import numpy as np
import pytest

from distribution.drawing import no_sample
from penstock.control.rescale import Rescale
from penstock.distribution import ByKey, OnGrids
from penstock.distribution.distribution import Form, Held, Settings
from penstock.distribution.frequent_keys import KeyCounts
from penstock.distribution.key_layout import KeyLayout
from penstock.distribution.sub_keys import SplitKey, SubKeyPlan
from penstock.routing import Goal, Resources, Spread, counter_threshold, first_router
from penstock.runtime.layout_files import LayoutFiles
from penstock.sketches.splitmix import splitmix64
from penstock.state.storage import Location

HASHES = splitmix64(np.arange(400, dtype=np.uint64), 4)
# One key of 30 %, 199 of 0.2 % in the table's range, and the same again of rarer ones.
COUNTS = np.concatenate([[30_000], np.full(199, 200), np.full(200, 151)])
HOT = int(HASHES[:1].view(np.int64)[0])


@pytest.fixture
def files(tmp_path):
    return LayoutFiles(Location(str(tmp_path)))


def steered(files, distribution):
    resources = dict.fromkeys(get_args(Form), Resources.of("LLL"))
    steering = distribution.steering(Settings(resources, most_bytes=2**40), files)
    for _ in range(4):
        signed = tuple(HASHES.view(np.int64).tolist())
        steering.frequent.update([KeyCounts(signed, tuple(COUNTS.tolist()), int(COUNTS.sum()), len(HASHES))])
    return steering


@pytest.fixture
def steering(files):
    return steered(files, ByKey(("k",), mergeable=True))


@pytest.fixture
def joining(files):
    return steered(files, OnGrids(("k",), "both"))


def laid_out(files, channels=8, **options):
    name = files.store(first_router("balanced", channels))
    return KeyLayout(channels=channels, router=name, target=name, **options)


def followed(steering, before, wish, form="rows"):
    """The next layout; no tuples are ahead in which hot keys could be looked for."""
    asked = {} if wish is None else {wish.setting: wish}
    return steering.follow(before, asked, Held(form, bytes=1.0), no_sample)


def rest_of(files, layout):
    """The tuples of all keys but the hot one in each channel."""
    routes = files.router(layout.target).route(HASHES[1:])
    return np.bincount(routes, COUNTS[1:], layout.channels)


def test_a_key_on_a_grid_is_not_placed_as_a_whole(joining, files):
    """Defect 4: with a spread key of 30 %, 8 to 9 channels left a channel with none of the rest."""
    spread = Spread(keys=(HOT,), sizes=(8,), columns=(4,), targets=tuple(range(8)))
    layout = followed(joining, laid_out(files, grids=spread), Rescale(0, 9))
    rest = rest_of(files, layout)
    assert rest.max() / rest.min() <= 1.3
    assert HASHES[0] not in files.router(layout.target).keys


@pytest.mark.parametrize("channels", [8, 24, 48])
def test_shares_are_counted_as_finely_as_the_channels_require(steering, files, channels):
    """Defect 8: the counter's error was 1e-4 for any number of channels."""
    known = steering.frequent.known()
    followed(steering, laid_out(files, channels), None)
    delta = counter_threshold(Goal(Resources.of("LLL"), domain=1000), channels)
    assert steering.frequent.epsilon <= delta / 10
    # What was known is not lost.
    found = steering.frequent.known()
    assert found.of(known.hashes[:200]) == pytest.approx(known.shares[:200], abs=1e-4)


def test_a_grid_that_is_given_up_makes_its_key_whole_again(joining, files):
    spread = Spread(keys=(HOT,), sizes=(8,), columns=(4,), targets=tuple(range(8)))
    layout = followed(joining, laid_out(files, grids=spread), Rescale(0, 4))
    assert layout.grids == Spread()
    assert HASHES[0] in files.router(layout.target).keys


def test_a_key_that_is_split_is_not_placed_as_a_whole(steering, files):
    """Defect 4: its tuples are formed in every channel, so its own channel has no more to do for it."""
    split = SubKeyPlan((SplitKey(HOT, 0.3, 64),))
    layout = followed(steering, laid_out(files, forming=split), Rescale(0, 9), "combined")
    assert layout.forming == split
    rest = rest_of(files, layout)
    assert rest.max() / rest.min() <= 1.3
