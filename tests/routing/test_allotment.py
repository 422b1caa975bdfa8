from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import allot

weights = st.lists(st.integers(0, 50), min_size=1, max_size=4)


def every(channels, parts):
    """All ways to give each part one channel or more."""
    for cuts in combinations(range(1, channels), parts - 1):
        edges = [0, *cuts, channels]
        yield [high - low for low, high in pairwise(edges)]


@given(weights, st.integers(0, 8))
def test_no_other_allotment_has_a_less_full_channel(weights, spare):
    channels = len(weights) + spare
    given = allot(channels, weights)
    fullest = [
        max(weight / held for weight, held in zip(weights, each, strict=True))
        for each in every(channels, len(weights))
    ]
    assert sum(given) == channels
    assert min(given) >= 1
    assert max(weight / held for weight, held in zip(weights, given, strict=True)) == min(fullest)


def test_loads_that_divide_evenly_get_their_exact_share():
    assert allot(60, [16, 12, 8, 8, 8, 4, 2, 2]) == (16, 12, 8, 8, 8, 4, 2, 2)


def test_equal_loads_differ_by_at_most_one_the_first_ones_being_served_first():
    assert allot(8, [1.0, 1.0, 1.0]) == (3, 3, 2)
    assert allot(8, [0.0, 0.0, 0.0]) == (3, 3, 2)


@pytest.mark.parametrize("weights", [[], [1.0, -1.0], [float("nan")], [float("inf")]])
def test_loads_are_finite_and_not_negative(weights):
    with pytest.raises(BadRouting, match="give one or more"):
        allot(4, weights)


def test_fewer_channels_than_subqueries_are_refused():
    with pytest.raises(BadRouting, match="2 channels for 3 subqueries"):
        allot(2, [1.0, 1.0, 1.0])
