"""What every partitioning in the registry promises; a new one is tested by its line there."""

from functools import cache

import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing import (
    REGISTRY,
    Frequencies,
    Goal,
    HashPair,
    Resources,
    RouteArrays,
    first_router,
    next_router,
)
from routing.partitions import zipf

KNOWN = zipf(300, 1.0, seed=4)
EDGES = np.array([0, 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
HASHES = np.concatenate(
    [EDGES, KNOWN.hashes, np.random.default_rng(4).integers(0, 2**64, 20_000, dtype=np.uint64)]
)
GOALS = {letters: Goal(Resources.of(letters), domain=300) for letters in ("LCL", "LLL", "CCL", "LQL", "CCC")}
NOTHING = Frequencies(np.zeros(0, np.uint64), np.zeros(0))
# These leave no work for a second call; the others may need a few to settle.
AT_ONCE = ("uniform", "consistent", "scan", "readj")
over_all = pytest.mark.parametrize("name", REGISTRY)
over_goals = pytest.mark.parametrize("letters", GOALS)


def built(name, channels, letters="LCL"):
    router = first_router(name, 1)
    for count in range(2, channels + 1):
        router = next_router(name, router, KNOWN, count, GOALS[letters])
    return router


grown = cache(built)


def same(one, other):
    return np.array_equal(one.route(HASHES), other.route(HASHES)) and one.channels == other.channels


@over_all
@over_goals
def test_every_key_has_a_channel_and_every_channel_has_keys(name, letters):
    router = first_router(name, 3)
    for channels in (5, 2, 1, 4, 4, 9):
        router = next_router(name, router, KNOWN, channels, GOALS[letters])
        routes = router.route(HASHES)
        assert routes.dtype == np.int32
        assert router.channels == channels
        assert np.unique(routes).tolist() == list(range(channels))


@over_all
@over_goals
def test_equal_inputs_give_equal_routers(name, letters):
    assert built(name, 5, letters).to_bytes() == grown(name, 5, letters).to_bytes()


@over_all
def test_the_order_in_which_keys_are_known_does_not_matter(name):
    shuffled = np.random.default_rng(1).permutation(len(KNOWN))
    again = Frequencies(KNOWN.hashes[shuffled], KNOWN.shares[shuffled])
    before = grown(name, 4)
    one, other = (next_router(name, before, each, 5, GOALS["LCL"]) for each in (KNOWN, again))
    assert one.to_bytes() == other.to_bytes()


@over_all
def test_it_starts_from_any_other_partitioning(name):
    for other in REGISTRY:
        assert next_router(name, grown(other, 4), KNOWN, 5, GOALS["LCL"]).channels == 5


@pytest.mark.parametrize("name", AT_ONCE)
@over_goals
@pytest.mark.parametrize("channels", [1, 2, 5, 8])
def test_nothing_moves_while_nothing_changes(name, letters, channels):
    router = grown(name, channels, letters)
    assert same(router, next_router(name, router, KNOWN, channels, GOALS[letters]))


@over_all
@over_goals
@pytest.mark.parametrize("channels", [2, 5, 8])
def test_it_settles_while_nothing_changes(name, letters, channels):
    router = grown(name, channels, letters)
    for _ in range(8):
        before, router = router, next_router(name, router, KNOWN, channels, GOALS[letters])
        if same(before, router):
            return
    raise AssertionError(f"{name} still moves keys after 8 calls with the same frequencies")


@over_all
def test_bytes_give_back_the_same_router(name):
    router = grown(name, 5)
    again = HashPair.from_bytes(router.to_bytes())
    assert same(router, again)
    assert again.to_bytes() == router.to_bytes()
    assert same(*(next_router(name, each, KNOWN, 4, GOALS["LCL"]) for each in (router, again)))


@over_all
def test_the_arrays_route_alike(name):
    router = grown(name, 5)
    read = RouteArrays.from_bytes(router.arrays.to_bytes())
    assert np.array_equal(read.route(HASHES), router.route(HASHES))
    order = np.random.default_rng(2).permutation(len(HASHES))
    assert np.array_equal(router.route(HASHES)[order], router.route(HASHES[order]))


@over_all
def test_without_known_keys_there_is_no_table(name):
    router = next_router(name, first_router(name, 3), NOTHING, 4, GOALS["LCL"])
    assert len(router.keys) == 0
    assert np.unique(router.route(HASHES)).tolist() == [0, 1, 2, 3]


@over_all
def test_a_single_key_where_no_resource_grows(name):
    only = Frequencies(np.array([7], np.uint64), np.array([1.0]))
    for channels in (1, 3):
        router = next_router(name, first_router(name, 2), only, channels, GOALS["CCC"])
        assert 0 <= router.route(only.hashes)[0] < channels


@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "uniform"])
def test_without_known_keys_nothing_moves_between_channels_that_stay(name):
    before = first_router(name, 4)
    for channels in (5, 3):
        after = next_router(name, before, NOTHING, channels, GOALS["LCL"])
        old, new = before.route(HASHES), after.route(HASHES)
        moved = old != new
        assert ((old[moved] >= channels) | (new[moved] >= 4)).all()


@over_all
def test_no_channels_are_refused(name):
    with pytest.raises(BadRouting, match="channels is 0; give 1"):
        next_router(name, first_router(name, 2), KNOWN, 0, GOALS["LCL"])


def test_an_unknown_partitioning_is_refused():
    with pytest.raises(BadRouting, match="'best'; give one of balanced, uniform"):
        first_router("best", 2)
