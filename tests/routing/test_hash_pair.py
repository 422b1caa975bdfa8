import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing import HashPair, Ring

RING = Ring(4)


def pair(keys, targets):
    return HashPair(np.array(keys, np.uint64), np.array(targets, np.int32), RING)


def test_the_table_comes_first_and_the_ring_decides_the_rest():
    hashes = np.arange(0, 2**64, 2**58, dtype=np.uint64)
    expected = RING.route(hashes)
    expected[[3, 9]] = [2, 1]
    np.testing.assert_array_equal(pair(hashes[[3, 9]], [2, 1]).route(hashes), expected)


@pytest.mark.parametrize(
    ("keys", "targets", "message"),
    [
        ([1, 2], [0], "2 keys have 1 targets"),
        ([1, 1], [0, 1], "a key occurs twice"),
        ([1, 2], [0, 4], "targets go from 0 to 4; with 4 channels give 0 to 3"),
        ([1, 2], [-1, 3], "targets go from -1"),
    ],
)
def test_tables_that_cannot_be_are_refused(keys, targets, message):
    with pytest.raises(BadRouting, match=message):
        pair(keys, targets)


def test_keys_that_are_no_hashes_are_refused():
    with pytest.raises(BadRouting, match="keys are int64"):
        HashPair(np.array([1, 2]), np.zeros(2, np.int32), Ring(2))
