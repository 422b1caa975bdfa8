import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.routing.greedy import greedy
from penstock.routing.longest_first import longest_first, longest_first_unlike
from schedules import least_makespan

small = st.lists(st.integers(0, 20), min_size=1, max_size=8).map(lambda each: np.array(each, float))


@given(small, st.integers(1, 3))
def test_makespan_is_at_most_four_thirds_of_the_least(costs, channels):
    least = least_makespan(costs, channels)
    bound = (4 / 3 - 1 / (3 * channels)) * least
    assert longest_first(costs, np.zeros(channels)).makespan <= bound * (1 + 1e-12)


@pytest.mark.parametrize("channels", [2, 3, 5])
def test_the_bound_is_reached(channels):
    pairs = np.repeat(np.arange(2 * channels - 1, channels, -1.0), 2)
    costs = np.concatenate([pairs, [channels] * 3])
    assert longest_first(costs, np.zeros(channels)).makespan == 4 * channels - 1


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(100, 900)), min_size=1, max_size=5),
    st.lists(st.integers(0, 500), min_size=1, max_size=9),
)
def test_groups_are_filled_as_if_one_by_one(groups, start):
    costs = np.repeat([float(cost) for cost, _ in groups], [size for _, size in groups])
    loads = np.array(start, float)
    one_by_one = greedy(-np.sort(-costs), loads)
    assert (longest_first(costs, loads).loads == one_by_one.loads).all()


def test_every_item_is_counted_on_its_channel():
    costs = np.random.default_rng(7).integers(1, 64, 10_000) / 1000
    schedule = longest_first(costs, np.zeros(5))
    assert np.bincount(schedule.channels, costs, 5) == pytest.approx(schedule.loads)
    assert schedule.makespan - costs.sum() / 5 <= 0.001


def test_unlike_channels_share_by_their_speed():
    table = np.array([[1.0, 8.0], [2.0, 16.0]])
    items = np.array([0, 1] * 300)
    schedule = longest_first_unlike(table, items, np.zeros(2))
    assert schedule.makespan == pytest.approx(300 * 9 * 2 / 3, rel=0.01)


def test_no_items_leave_the_loads():
    assert longest_first(np.empty(0), np.array([2.0, 1.0])).makespan == 2.0
