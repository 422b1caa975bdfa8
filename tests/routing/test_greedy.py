import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing.greedy import greedy, greedy_unlike
from schedules import least_makespan

small = st.lists(st.integers(0, 20), min_size=1, max_size=8).map(lambda each: np.array(each, float))
many = st.lists(st.integers(0, 50), max_size=80).map(lambda each: np.array(each, float))


@given(many, st.lists(st.integers(0, 90), min_size=1, max_size=7))
def test_every_item_goes_to_the_least_loaded_channel(costs, start):
    loads = np.array(start, float)
    schedule = greedy(costs, loads)
    for cost, channel in zip(costs, schedule.channels, strict=True):
        assert channel == loads.argmin()
        loads[channel] += cost
    assert (schedule.loads == loads).all()


@given(st.integers(1, 5), st.lists(st.integers(0, 3), max_size=40), st.integers(0, 9))
def test_unlike_channels_add_their_own_cost(channels, items, seed):
    table = np.random.default_rng(seed).integers(0, 30, (channels, 4)).astype(float)
    loads = np.zeros(channels)
    schedule = greedy_unlike(table, np.array(items, np.intp), loads)
    for item, channel in zip(items, schedule.channels, strict=True):
        assert channel == loads.argmin()
        loads[channel] += table[channel, item]
    assert (schedule.loads == loads).all()


def test_an_item_that_does_not_come_may_cost_any_amount():
    schedule = greedy_unlike(np.array([[0.0, 29.0], [0.0, 1e300]]), np.array([0, 0]), np.zeros(2))
    assert schedule.loads.tolist() == [0.0, 0.0]


@given(small, st.integers(1, 3))
def test_makespan_is_at_most_two_less_one_over_k_of_the_least(costs, channels):
    least = least_makespan(costs, channels)
    assert greedy(costs, np.zeros(channels)).makespan <= (2 - 1 / channels) * least


@pytest.mark.parametrize("channels", [2, 3, 7])
def test_the_bound_is_reached(channels):
    costs = np.array([1.0] * channels * (channels - 1) + [channels])
    assert greedy(costs, np.zeros(channels)).makespan == 2 * channels - 1


def test_tiny_and_huge_costs_keep_their_order():
    costs = np.array([1e-300, 3e-300, 1e-300, 1e-300])
    assert greedy(costs, np.zeros(2)).channels.tolist() == [0, 1, 0, 0]
    assert greedy(costs * 1e305, np.zeros(2)).channels.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("costs", [[-1.0], [np.nan], [np.inf]])
def test_impossible_costs_are_refused(costs):
    with pytest.raises(BadRouting, match="at least 0"):
        greedy(np.array(costs), np.zeros(2))


def test_no_channel_is_refused():
    with pytest.raises(BadRouting, match="at least 1 channel"):
        greedy(np.ones(3), np.zeros(0))
