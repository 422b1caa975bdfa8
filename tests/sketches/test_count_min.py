import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.sketches.count_min import CountMin


def zipf(items, domain, seed):
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, domain + 1)
    return rng.choice(domain, items, p=share / share.sum()).astype(np.uint64)


@pytest.mark.parametrize(
    ("epsilon", "delta", "shape"), [(0.70, 0.25, (2, 4)), (0.05, 0.05, (3, 55)), (0.01, 0.01, (5, 272))]
)
def test_sizes_follow_from_precision(epsilon, delta, shape):
    assert CountMin(epsilon, delta).matrix.shape == shape


@pytest.mark.parametrize("seed", range(5))
def test_estimates_are_never_low_and_rarely_above_the_bound(seed):
    sketch, items = CountMin(0.01, 0.05, seed), zipf(50_000, 5000, seed)
    sketch.update(items)
    truth = np.bincount(items, minlength=5000)
    excess = sketch.estimate(np.arange(5000, dtype=np.uint64)) - truth
    assert excess.min() >= 0
    assert np.mean(excess >= 0.01 * (len(items) - truth)) <= 0.05


def test_weights_are_summed_by_item_as_counts_are():
    items, weights = zipf(40_000, 300, 1), np.random.default_rng(1).random(40_000)
    counts, sums = CountMin(0.001, 0.01), CountMin(0.001, 0.01)
    counts.update(items)
    sums.update(items, weights)
    asked = np.unique(items)
    truth = np.bincount(items.astype(int), weights)[asked]
    np.testing.assert_allclose(
        sums.estimate(asked) / counts.estimate(asked), truth / np.bincount(items)[asked]
    )
    assert sums.total == pytest.approx(weights.sum())


@pytest.mark.parametrize("other", [1, 2, 2**31, 2**32, 2**63, 2**64 - 1])
def test_two_items_share_a_column_no_more_often_than_by_chance(other):
    pair = np.array([0, other], np.uint64)
    shared = [a == b for seed in range(3000) for a, b in CountMin(0.05, 0.05, seed)._columns(pair)]
    assert np.mean(shared) < 1.25 / 55  # three standard deviations above 1 / columns


@pytest.mark.parametrize("other", [CountMin(0.1, 0.1), CountMin(0.05, 0.1, 1), CountMin(0.05, 0.2)])
def test_sketches_of_other_precision_or_seed_do_not_merge(other):
    with pytest.raises(BadRouting, match="give both the same"):
        CountMin(0.05, 0.1).merge(other)


@pytest.mark.parametrize("given", [(0, 0.1, 0), (0.1, 1, 0), (0.1, 0.1, -1)])
def test_precision_that_cannot_be_is_refused(given):
    with pytest.raises(BadRouting, match="; give"):
        CountMin(*given)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [np.nan, 1.0]])
def test_weights_that_cannot_be_are_refused(weights):
    with pytest.raises(BadRouting, match="give"):
        CountMin(0.1, 0.1).update(np.array([1, 2], np.uint64), np.array(weights))
