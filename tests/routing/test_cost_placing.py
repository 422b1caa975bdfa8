import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.routing import RoundRobin, place_by_cost
from penstock.sketches import MeanCost, splitmix64
from schedules import least_makespan

HASHES = splitmix64(np.arange(4096, dtype=np.uint64))


def learnt(costs):
    """A sketch that has seen each value once."""
    sketch = MeanCost(0.0005, 0.05)
    sketch.update(HASHES[: len(costs)], costs)
    return sketch


def salts(rows, seed=1):
    return np.random.default_rng(seed).integers(0, 2**63, rows).astype(np.uint64)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=8), st.integers(1, 3), st.integers(0, 5))
def test_makespan_is_at_most_four_thirds_of_the_least(costs, channels, task):
    costs = np.array(costs, float)
    hashes = HASHES[: len(costs)]
    placed = place_by_cost(hashes, salts(len(costs)), learnt(costs), channels, task)
    makespan = np.bincount(placed, costs, channels).max()
    # Costs are rounded by up to half a step of 5 %, to either side.
    assert makespan <= 1.05 * (4 / 3 - 1 / (3 * channels)) * least_makespan(costs, channels)


def test_the_order_in_which_rows_come_changes_nothing():
    rng = np.random.default_rng(7)
    values = rng.integers(0, 50, 5000)
    rows, sketch = salts(5000), learnt(1.0 + rng.integers(0, 100, 50))
    placed = place_by_cost(HASHES[values], rows, sketch, 7, task=3)
    order = rng.permutation(5000)
    again = place_by_cost(HASHES[values[order]], rows[order], sketch, 7, task=3)
    assert (again == placed[order]).all()


def test_tasks_give_their_dearest_row_to_different_channels():
    sketch = learnt(np.array([50.0, 1.0]))
    rows = HASHES[np.array([0, 1, 1])]
    dearest = [place_by_cost(rows, salts(3), sketch, 4, task)[0] for task in range(4)]
    assert sorted(dearest) == [0, 1, 2, 3]


@pytest.mark.parametrize("channels", [3, 8, 13])
def test_one_sketch_serves_any_number_of_channels(channels):
    rng = np.random.default_rng(5)
    costs = rng.integers(1, 101, 4096).astype(float)
    shares = np.arange(1, 4097) ** -1.5
    values = rng.choice(4096, 2000, p=shares / shares.sum())
    each, sketch = costs[values], learnt(costs)
    placed = np.concatenate(
        [
            place_by_cost(HASHES[part], salts(len(part)), sketch, channels, task)
            for task, part in tasks(values)
        ]
    )
    dealt = RoundRobin(channels).route(HASHES[values])
    mean = each.sum() / channels
    most = np.bincount(placed, each, channels).max()
    assert most <= 1.025 * mean
    assert most < np.bincount(dealt, each, channels).max()


def tasks(values):
    return enumerate(np.array_split(values, 4))


def test_values_that_cost_nothing_are_spread_too():
    placed = place_by_cost(HASHES[:100], salts(100), learnt(np.zeros(100)), 4, task=0)
    assert np.bincount(placed).tolist() == [25] * 4
    assert not len(place_by_cost(HASHES[:0], salts(0), learnt(np.ones(1)), 4, task=0))
