import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing.frequencies import Frequencies

KNOWN = Frequencies(np.array([5, 6, 7], np.uint64), np.array([0.1, 0.4, 0.2]))


def test_most_frequent_first():
    assert KNOWN.hashes.tolist() == [6, 7, 5]
    assert KNOWN.at_least(0.2).hashes.tolist() == [6, 7]


def test_unknown_keys_have_no_share():
    assert KNOWN.of(np.array([7, 9, 5], np.uint64)).tolist() == [0.2, 0.0, 0.1]
    assert KNOWN.at_least(1.0).of(np.array([7], np.uint64)).tolist() == [0.0]


def test_one_share_for_each_key():
    with pytest.raises(BadRouting, match="give one share for each key"):
        Frequencies(KNOWN.hashes, KNOWN.shares[:2])
