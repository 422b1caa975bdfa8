import numpy as np
import pytest

from penstock.routing import RouteArrays, moves
from routing.routers import CONSISTENT, HOT, KEYED, ROUTERS

EDGES = np.array([0, 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
HASHES = np.concatenate([EDGES, HOT, np.random.default_rng(1).integers(0, 2**64, 50_000, dtype=np.uint64)])
COSTS = np.ones(len(HASHES))
over_all = pytest.mark.parametrize("name", ROUTERS)
over_keyed = pytest.mark.parametrize("name", KEYED)


@over_all
def test_the_same_hashes_have_the_same_routes(name):
    np.testing.assert_array_equal(ROUTERS[name](7).route(HASHES), ROUTERS[name](7).route(HASHES))


@over_all
@pytest.mark.parametrize("channels", [1, 2, 7, 64])
def test_routes_are_channels_and_every_channel_has_some(name, channels):
    routes = ROUTERS[name](channels).route(HASHES)
    assert routes.dtype == np.int32
    assert ROUTERS[name](channels).channels == channels
    assert np.unique(routes).tolist() == list(range(channels))


@over_all
def test_no_hashes_have_no_routes(name):
    assert len(ROUTERS[name](3).route(HASHES[:0])) == 0


@over_keyed
def test_a_route_does_not_depend_on_the_other_hashes(name):
    router, order = KEYED[name](7), np.random.default_rng(2).permutation(len(HASHES))
    np.testing.assert_array_equal(router.route(HASHES)[order], router.route(HASHES[order]))
    assert router.route(HASHES[3:4]) == router.route(HASHES)[3]


@over_keyed
def test_exported_arrays_agree_also_after_a_round_trip_through_bytes(name):
    router = KEYED[name](7)
    read = RouteArrays.from_bytes(router.arrays.to_bytes())
    assert read.channels == 7
    assert read.to_bytes() == router.arrays.to_bytes()
    np.testing.assert_array_equal(read.route(HASHES), router.route(HASHES))


@over_keyed
def test_nothing_moves_when_nothing_changed(name):
    moved = moves(KEYED[name](7), KEYED[name](7), HASHES, COSTS)
    assert (len(moved.hashes), moved.cost) == (0, 0)


@pytest.mark.parametrize("name", CONSISTENT)
def test_a_new_channel_takes_its_share_and_nothing_else_moves(name):
    moved = moves(KEYED[name](7), KEYED[name](8), HASHES, COSTS)
    assert set(moved.targets) == {7}
    assert 0.8 < moved.cost / (len(HASHES) / 8) < 1.2


@pytest.mark.parametrize("name", CONSISTENT)
def test_a_channel_that_goes_gives_up_its_keys_and_nothing_else_moves(name):
    assert set(moves(KEYED[name](8), KEYED[name](7), HASHES, COSTS).sources) == {7}
