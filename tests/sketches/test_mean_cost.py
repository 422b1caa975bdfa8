import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sketches.mean_cost import MeanCost


def items(*numbers):
    return np.array(numbers, np.uint64)


def filled(seed):
    rng = np.random.default_rng(seed)
    sketch = MeanCost(0.05, 0.05)
    sketch.update(rng.integers(0, 2**64, 500, np.uint64), rng.random(500))
    return sketch


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 64)), min_size=1))
def test_few_items_have_their_exact_mean(pairs):
    # With 6 items in 55 columns and 3 rows each has a cell of its own under this seed.
    hashes = items(*(number * 0x9E3779B97F4A7C15 % 2**64 for number, _ in pairs))
    costs = np.array([float(cost) for _, cost in pairs])
    sketch = MeanCost(0.05, 0.05)
    sketch.update(hashes, costs)
    truth = [costs[hashes == each].mean() for each in hashes]
    assert sketch.means(hashes) == pytest.approx(truth)


def test_means_lie_between_the_least_and_the_greatest_cost():
    rng = np.random.default_rng(7)
    hashes = rng.integers(0, 4_096, 20_000).astype(np.uint64)
    costs = 1.0 + hashes % 64
    sketch = MeanCost(0.05, 0.05)
    sketch.update(hashes, costs)
    means = sketch.means(hashes)
    assert means.min() >= 1.0
    assert means.max() <= 64.0


def test_an_item_that_never_came_costs_the_mean_of_all():
    sketch = MeanCost(0.05, 0.05)
    assert sketch.means(items(1)).tolist() == [0.0]
    sketch.update(items(1, 2), np.array([2.0, 4.0]))
    assert sketch.means(items(99)).tolist() == [3.0]


def test_merging_is_seeing_both():
    one, two = filled(1), filled(2)
    one.merge(two)
    assert one.counts.total == 1_000
    assert one.costs.matrix == pytest.approx(filled(1).costs.matrix + two.costs.matrix)


def test_bytes_give_the_same_sketch():
    sketch = filled(3)
    again = MeanCost.from_bytes(sketch.to_bytes())
    assert (again.ratios() == sketch.ratios()).all()
    assert again.to_bytes() == sketch.to_bytes()
