import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.routing.feeding import feed


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=30), st.integers(2, 6), st.integers(0, 99))
def test_nobody_gives_below_the_level_or_takes_above_it(costs, channels, seed):
    costs = np.array(costs)
    places = np.random.default_rng(seed).integers(0, channels, len(costs))
    level = costs.sum() / channels
    before, after = (
        np.bincount(p, costs, channels) for p in (places, feed(costs, places, channels, level=level))
    )
    gave, took = after < before - 1e-12, after > before + 1e-12
    assert (after[gave] >= level - 1e-6).all()
    assert (after[took] <= level + 1e-6).all()


def test_units_of_channels_that_go_find_a_place():
    assert feed(np.array([1.0, 2.0]), np.array([3, 0]), 2, level=np.inf).tolist() == [1, 0]


def test_what_a_taker_carries_beside_fills_it():
    base = np.array([0.0, 5.0, 0.0])
    costs, places = np.array([2.0, 2.0, 2.0]), np.array([0, 0, 0])
    assert feed(costs, places, 3, base=base, level=2.0).tolist() == [2, 0, 0]
