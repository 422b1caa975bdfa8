import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import Ring, SubKeys, moves, split_hot_keys
from penstock.routing.sub_keys import sub_key

HOT = np.random.default_rng(3).integers(0, 2**64, 40, dtype=np.uint64)
COLD = np.random.default_rng(4).integers(0, 2**64, 5_000, dtype=np.uint64)
PARTS = np.arange(1, 41)
HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=50).map(lambda each: np.array(each, np.uint64))


def test_tuples_of_a_hot_key_take_its_sub_keys_in_turn():
    # [000] Fig. 8: tuples of key i become i#1, i#2, ... i#p, each i#j on the ring as a key of its own.
    ring, key = Ring(4), HOT[:1]
    tuples = SubKeys(key, np.array([3]), ring).route(np.repeat(key, 7), np.arange(7))
    first, second, third = ring.route(sub_key(np.repeat(key, 3), np.arange(3)))
    assert tuples.tolist() == [first, second, third, first, second, third, first]


@given(HASHES, st.integers(0, 2**60))
def test_a_route_is_the_place_of_the_sub_key_on_the_ring(hashes, start):
    router = SubKeys(HOT, PARTS, Ring(5))
    tuples = np.concatenate([hashes, HOT])
    sequence = start + np.arange(len(tuples))
    parts = np.concatenate([np.ones(len(hashes), np.int64), PARTS])
    expected = router.ring.route(sub_key(tuples, sequence % parts))
    np.testing.assert_array_equal(router.route(tuples, sequence), expected)


def test_sub_keys_get_equal_parts_of_their_key():
    router = SubKeys(HOT, PARTS, Ring(5))
    routes = router.route(np.repeat(HOT[6:7], 700), np.arange(700))
    expected = np.bincount(router.ring.route(sub_key(np.repeat(HOT[6:7], 7), np.arange(7))), minlength=5)
    assert (np.bincount(routes, minlength=5) == 100 * expected).all()


def test_parts_are_in_proportion_to_the_frequency():
    router = split_hot_keys(HOT[:3], np.array([0.4, 0.2, 0.001]), Ring(10), grain=10)
    assert router.parts.tolist() == [40, 20, 1]


def test_other_keys_stay_where_the_ring_has_them():
    router = SubKeys(HOT, PARTS, Ring(5))
    np.testing.assert_array_equal(router.route(COLD, np.arange(len(COLD))), router.ring.route(COLD))


def test_a_key_that_gets_more_parts_keeps_the_old_ones():
    few, many = SubKeys(HOT, PARTS, Ring(5)), SubKeys(HOT, PARTS + 3, Ring(5))
    for start, more, parts in zip(few.starts, many.starts[1:], few.counts, strict=True):
        assert (few.targets[start : start + parts] == many.targets[more : more + parts]).all()


def test_a_new_channel_takes_sub_keys_and_moves_none_between_others():
    before, after = SubKeys(HOT, PARTS, Ring(7)), SubKeys(HOT, PARTS, Ring(8))
    moved = before.targets != after.targets
    assert set(after.targets[moved]) == {7}
    assert set(moves(before.ring, after.ring, COLD, np.ones(len(COLD))).targets) == {7}


def test_a_hot_key_reaches_many_channels():
    router = split_hot_keys(HOT[:1], np.array([0.9]), Ring(16))
    routes = router.route(np.repeat(HOT[:1], 16_000), np.arange(16_000))
    assert np.bincount(routes, minlength=16).min() > 500


def test_without_hot_keys_it_is_the_ring():
    router = split_hot_keys(HOT[:0], np.zeros(0), Ring(5))
    np.testing.assert_array_equal(router.route(COLD, np.zeros(len(COLD), np.int64)), Ring(5).route(COLD))


def test_its_arrays_stay_small():
    router = split_hot_keys(HOT, np.full(40, 1 / 40), Ring(16))
    assert len(router.targets) <= 128 * 16 + 40
    assert len(router.arrays.ring) == 16_384


@pytest.mark.parametrize(
    ("keys", "parts", "said"),
    [
        (HOT[:2], [1], "give one for each"),
        (HOT[[0, 0]], [1, 2], "give each key once"),
        (HOT[:1], [0], "0 parts"),
    ],
)
def test_impossible_splits_are_refused(keys, parts, said):
    with pytest.raises(BadRouting, match=said):
        SubKeys(keys, np.array(parts), Ring(2))


@pytest.mark.parametrize("frequencies", [[0.9, 0.2], [-0.1, 0.2], [np.nan, 0.1]])
def test_frequencies_are_parts_of_all_tuples(frequencies):
    with pytest.raises(BadRouting, match="frequencies add up to"):
        split_hot_keys(HOT[:2], np.array(frequencies), Ring(2))


def test_a_grain_is_at_least_one():
    with pytest.raises(BadRouting, match="grain is 0"):
        split_hot_keys(HOT[:1], np.array([0.1]), Ring(2), grain=0)
