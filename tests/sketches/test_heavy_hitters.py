import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.sketches.heavy_hitters import HeavyHitters

weighted = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 100)), max_size=60)


@given(st.lists(weighted, max_size=6), st.integers(2, 10))
def test_weights_are_low_by_no_more_than_the_bound(batches, places):
    heavy, truth = HeavyHitters(1 / places), np.zeros(31)
    for batch in batches:
        items, weights = (np.array(column) for column in zip(*batch, strict=True)) if batch else ([], [])
        heavy.update(np.array(items, np.uint64), np.array(weights, float))
        np.add.at(truth, np.array(items, int), weights)
    assert len(heavy.hashes) <= heavy.places
    assert heavy.error <= truth.sum() / (heavy.places + 1) + 1e-9
    held = np.zeros(31)
    held[heavy.hashes.astype(int)] = heavy.weights
    assert (held <= truth + 1e-9).all()
    assert (truth <= held + heavy.error + 1e-9).all()


def test_rare_but_heavy_items_are_found_among_many_light_ones():
    rng = np.random.default_rng(2)
    light = rng.integers(1000, 10**6, 200_000, dtype=np.uint64)
    hashes, weights = (
        np.append(light, [7, 8, 9]).astype(np.uint64),
        np.append(np.ones(200_000), [9e4, 7e4, 5e4]),
    )
    order = rng.permutation(len(hashes))
    heavy = HeavyHitters(0.001)
    heavy.update(hashes[order], weights[order])
    assert heavy.frequent(0.1).hashes.tolist() == [7, 8, 9]


def test_sketches_of_other_precision_do_not_merge():
    with pytest.raises(BadRouting, match="give both the same"):
        HeavyHitters(0.1).merge(HeavyHitters(0.2))


@pytest.mark.parametrize("epsilon", [0, 1, 1e-9])
def test_precision_that_cannot_be_is_refused(epsilon):
    with pytest.raises(BadRouting, match=f"epsilon is {epsilon}"):
        HeavyHitters(epsilon)
