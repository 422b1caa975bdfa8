import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing import PARTITIONINGS, Frequencies, Goal, HashPair, first_router, next_router

HASHES = np.random.default_rng(4).integers(0, 2**64, 5000, dtype=np.uint64)
KNOWN = Frequencies(HASHES[:4], np.array([0.2, 0.1, 0.1, 0.05]))


@pytest.mark.parametrize("name", PARTITIONINGS)
def test_every_partitioning_starts_and_follows_in_range(name):
    router = first_router(name, 3)
    for channels in (5, 2, 1, 4, 4):
        router = next_router(name, router, KNOWN, channels, Goal(domain=5000))
        assert router.channels == channels
        assert set(router.route(HASHES).tolist()) == set(range(channels))


@pytest.mark.parametrize("name", PARTITIONINGS)
def test_a_router_is_the_same_after_its_bytes(name):
    router = next_router(name, first_router(name, 3), KNOWN, 5, Goal(domain=5000))
    again = HashPair.from_bytes(router.to_bytes())
    np.testing.assert_array_equal(again.route(HASHES), router.route(HASHES))
    assert again.to_bytes() == router.to_bytes()
    after = next_router(name, again, KNOWN, 4, Goal(domain=5000)).route(HASHES)
    np.testing.assert_array_equal(after, next_router(name, router, KNOWN, 4, Goal(domain=5000)).route(HASHES))


def test_an_unknown_partitioning_is_refused():
    with pytest.raises(BadRouting, match="balanced, uniform"):
        first_router("best", 2)
