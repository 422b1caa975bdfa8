import numpy as np
import pyarrow.parquet as pq

from penstock_lab.bench.hot_sets import HotSets, write_epochs

SMALL = HotSets(rows=2000, epochs=3, sets=2, zipf=1.0, keys=100)


def top(keys):
    names, counts = np.unique(keys, return_counts=True)
    return names[np.argsort(-counts)][:10].tolist()


def test_hot_sets_have_no_hot_key_in_common():
    epochs = list(SMALL.drawn(seed=7))
    assert len(epochs) == 6
    assert len(set(top(epochs[0])) & set(top(epochs[2]))) >= 5
    assert not set(top(epochs[2])) & set(top(epochs[3]))


def test_sides_of_a_join_have_the_same_keys_and_draws_of_their_own():
    left, right = (np.concatenate(list(SMALL.drawn(7, side))) for side in (0, 1))
    assert set(left.tolist()) == set(right.tolist())
    assert not np.array_equal(left, right)


def test_another_seed_gives_other_names():
    assert not set(next(SMALL.drawn(7)).tolist()) & set(next(SMALL.drawn(8)).tolist())


def test_an_exponent_of_zero_is_uniform():
    counts = np.unique(next(HotSets(rows=10_000, epochs=1, keys=10).drawn(7)), return_counts=True)[1]
    assert counts.min() > 900


def test_an_epoch_is_a_file_and_its_hottest_key_is_told(tmp_path):
    hottest = write_epochs(tmp_path / "rows", iter([np.array([1, 2, 1]), np.array([3])]), seed=7)
    assert hottest == (2, 1)
    assert [pq.read_table(each).num_rows for each in sorted((tmp_path / "rows").iterdir())] == [3, 1]
