import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.routing import Ring
from penstock_lab.algorithms import UniformHash
from penstock_lab.simulate import Dealt, Gridded, Keyed, key_hashes

KEYS = key_hashes(5_000)
splits = st.integers(1, 64).flatmap(
    lambda count: st.sampled_from(
        [Dealt(count), Keyed(UniformHash(count), KEYS), Keyed(Ring(count), KEYS), Gridded(count)]
    )
)


@given(splits, st.floats(0.01, 1e6), st.integers(0, 5))
def test_what_goes_in_comes_out(split, tuples, seed):
    parts = split.parts(tuples, np.random.default_rng(seed))
    assert len(parts) == split.channels
    assert (parts >= 0).all()
    if not isinstance(split, Gridded):
        assert parts.sum() == pytest.approx(tuples)


@pytest.mark.parametrize("channels", [4, 7, 16, 60])
def test_a_grid_makes_its_copies(channels):
    split = Gridded(channels)
    total = sum(split.parts(4_000.0, np.random.default_rng(seed)).sum() for seed in range(20))
    assert total / 20 == pytest.approx(4_000 * split.copies, rel=0.01)


def test_round_robin_is_even_to_a_tuple():
    parts = Dealt(7).parts(1_000_003.0, np.random.default_rng(1))
    assert parts.max() - parts.min() <= 1


def test_keys_follow_their_router():
    router = UniformHash(8)
    parts = Keyed(router, KEYS).parts(10_000_000.0, np.random.default_rng(1))
    shares = np.bincount(router.route(KEYS), minlength=8) / len(KEYS)
    assert parts / 10_000_000 == pytest.approx(shares, abs=0.001)


def test_every_channel_of_a_grid_holds_its_part_of_both_windows():
    left, right = Gridded(16).held(40_000, np.random.default_rng(1))
    assert left == pytest.approx(np.full(16, 10_000), rel=0.05)
    assert right == pytest.approx(np.full(16, 10_000), rel=0.05)
