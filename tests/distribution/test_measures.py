"""What channels report of their keys, and what the driver makes of it."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.distribution.frequent_keys import MOST_KEYS, MOST_ROWS, FrequentKeys, KeyCounts, count_keys
from penstock.routing.spark_hash import spark_hash
from penstock_lab.workloads import draw, zipf_shares


def counted(keys, **options):
    return count_keys([pa.chunked_array([each]) for each in keys], len(keys[0]), **options)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_top_keys_of_many_rows_are_counted_exactly(columns):
    rng = np.random.default_rng(columns)
    drawn = draw(rng, zipf_shares(50_000, 1.0), 4 * MOST_ROWS)
    parts = [pa.array(drawn % 7), pa.array([None if each == 3 else str(each) for each in drawn // 7])]
    keys = {1: [pa.array(drawn)], 2: parts, 3: [parts[0], pa.array(drawn % 11), parts[1]]}[columns]
    found = counted(keys)
    true = np.sort(np.bincount(drawn))[::-1][:MOST_KEYS]
    # Which keys of almost equal counts come last is left to the sample.
    assert found.counts[:50] == tuple(true[:50].tolist())
    assert found.total == len(drawn)


def test_keys_of_pairs_are_counted_for_each_side():
    left, right = np.repeat([1, 2], [30, 5]), np.repeat([2, 3], [4, 9])
    found = counted([pa.array(np.concatenate([left, right]))], ports=(35, 13))
    by_text = dict(zip(found.texts, zip(found.counts, *found.sides, strict=True), strict=True))
    assert by_text == {"1": (30, 30, 0), "2": (9, 5, 4), "3": (9, 0, 9)}
    assert (found.total, found.totals) == (48, (35, 13))


def test_a_key_that_only_the_smaller_side_has_often_is_reported():
    rng = np.random.default_rng(4)
    big, small = rng.integers(0, 1000, 4 * MOST_ROWS), np.where(np.arange(2000) % 2, 77_777, 5)
    found = counted([pa.array(np.concatenate([big, small]))], ports=(len(big), len(small)))
    assert found.sides[1][found.texts.index("77777")] == 1000
    frequent = FrequentKeys()
    for _ in range(3):
        frequent.update([found])
    known = frequent.observed()
    hash_ = int(spark_hash([pa.array([77_777])], 1).view(np.int64)[0])
    at = known.hashes.index(hash_)
    assert known.sides[1][at] == pytest.approx(0.5, abs=0.01)
    assert known.shares[at] == pytest.approx(1000 / (len(big) + 2000), rel=0.1)
    assert known.rates == (len(big), 2000)
    assert list(known.shares) == sorted(known.shares, reverse=True)


def test_copies_on_grids_do_not_count():
    found = KeyCounts((7, 8), (60, 10), 70, 2, sides=((20, 10), (40, 0)), totals=(30, 40))
    true = found.without_copies({7: (2.0, 4.0)})
    assert (true.counts, true.total, true.sides, true.totals) == ((20, 10), 30, ((10, 10), (10, 0)), (20, 10))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("texts", [False, True])
def test_the_number_of_keys_is_known_within_five_percent(seed, texts):
    """Defect 6: it was the most keys of a sampled epoch."""
    rng, frequent = np.random.default_rng(seed), FrequentKeys()
    asked, seen = 0, set()
    for _ in range(24):
        keys = rng.integers(0, 30_000, 3 * MOST_ROWS // 2)
        seen.update(keys.tolist())
        asked += frequent.curious
        column = pa.array(keys).cast(pa.string()) if texts else pa.array(keys)
        frequent.update([counted([column], thorough=frequent.curious)])
    assert frequent.domain == pytest.approx(len(seen), rel=0.05), f"seed {seed}"
    # Once no new keys come, channels are asked less and less often.
    assert asked <= 8
    again = FrequentKeys()
    again.resume(KeyCounts.from_json(vars(frequent.counts())))
    assert again.domain == frequent.domain


def test_keys_that_are_always_new_are_always_sketched():
    frequent = FrequentKeys()
    for epoch in range(12):
        assert frequent.curious
        keys = pa.array(np.arange(epoch * 20_000, (epoch + 1) * 20_000))
        frequent.update([counted([keys], thorough=True)])
    assert frequent.domain == pytest.approx(240_000, rel=0.05)


def test_the_sides_survive_a_restart():
    found = counted([pa.array(np.repeat([1, 2, 2, 3], 500))], ports=(1000, 1000))
    frequent, again = FrequentKeys(), FrequentKeys()
    for _ in range(3):
        frequent.update([found])
    again.resume(KeyCounts.from_json(vars(frequent.counts())))
    one, other = frequent.observed(), again.observed()
    assert (other.hashes, other.sides, other.rates) == (one.hashes, one.sides, one.rates)
    assert other.shares == pytest.approx(one.shares, abs=1e-4)
