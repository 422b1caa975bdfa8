import numpy as np
import pyarrow as pa
import pytest

from penstock.distribution.frequent_keys import MOST_KEYS, FrequentKeys, count_keys
from penstock.routing.spark_hash import spark_hash
from penstock_lab.workloads import draw, zipf_shares

SHARES = zipf_shares(100_000, 1.0)


def counted(keys, weights=None):
    return count_keys([pa.chunked_array([keys])], len(keys), weights)


def channels(rng, rows, count=4):
    """What channels report of Zipf keys, each key in one channel."""
    keys = draw(rng, SHARES, rows)
    return [counted(keys[keys % count == each]) for each in range(count)]


def test_shares_of_frequent_keys_are_near_the_truth():
    rng, frequent = np.random.default_rng(2), FrequentKeys()
    for _ in range(8):
        frequent.update(channels(rng, 100_000))
    hashes = spark_hash([pa.array(np.arange(60))], 60)
    assert frequent.known().of(hashes) == pytest.approx(SHARES[:60], rel=0.25)
    assert len(frequent.known()) >= 4 * MOST_KEYS * 0.8


def test_counting_goes_on_from_a_manifest():
    rng, frequent, again = np.random.default_rng(3), FrequentKeys(), FrequentKeys()
    frequent.update(channels(rng, 50_000))
    again.resume(frequent.counts())
    known = frequent.known()
    assert again.known().of(known.hashes[:20]) == pytest.approx(known.shares[:20], abs=2e-4)
    assert again.keys == frequent.keys


def test_a_key_that_was_hot_is_forgotten():
    frequent = FrequentKeys()
    for value in (1, 2):
        for _ in range(40):
            frequent.update([counted(np.full(20_000, value))])
    assert frequent.known().of(spark_hash([pa.array([1, 2])], 2)).tolist() == [0.0, 1.0]


def test_weights_count_and_many_rows_are_sampled():
    found = counted(["a", "b", "a"], np.array([5, 1, 6]))
    assert (found.counts, found.total, found.keys) == ((11, 1), 12, 2)
    many = counted(np.arange(300_000) % 3)
    assert many.total == 300_000
    assert many.counts == pytest.approx((100_000,) * 3, rel=0.03)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("partials", [1, 4, 2000])
def test_a_hot_key_in_few_or_many_partials_is_seen_as_it_is(partials, seed):
    """Defect 3: a key of 16.7 % was seen as 0 % or 61.5 %, by whether a sampled row was one of its own."""
    rng = np.random.default_rng(seed)
    keys, weights = np.arange(1, 300_001), rng.integers(1, 4, 300_000)
    others = int(weights.sum())
    hot = np.full(partials, others // 5 // partials)
    order = rng.permutation(300_000 + partials)
    found = counted(
        np.concatenate([keys, np.zeros(partials, np.int64)])[order], np.concatenate([weights, hot])[order]
    )
    assert found.total == others + hot.sum()
    assert found.texts[0] == "0"
    assert found.counts[0] / found.total == pytest.approx(1 / 6, rel=0.02)


def test_no_period_in_the_rows_meets_the_sample():
    """Defect 3: with every fourth row taken, a key that was every fourth row had all or nothing."""
    found = counted(np.where(np.arange(262_144) % 4 == 1, 0, np.arange(262_144)))
    assert found.texts[0] == "0"
    assert found.counts[0] / found.total == pytest.approx(0.25, rel=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_top_keys_of_skewed_partials_are_near_the_truth(seed):
    rng = np.random.default_rng(seed)
    drawn = draw(rng, zipf_shares(400_000, 1.0), 3_000_000)
    keys, weights = np.unique(drawn, return_counts=True)
    assert len(keys) > 200_000
    order = rng.permutation(len(keys))
    found = counted(keys[order], weights[order])
    true = np.sort(weights)[::-1][:MOST_KEYS]
    assert found.counts == pytest.approx(true.tolist(), rel=0.01)
