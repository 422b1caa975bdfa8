import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing import moves
from penstock_lab.algorithms import UniformHash

HASHES = np.random.default_rng(3).integers(0, 2**64, 100_000, dtype=np.uint64)


def test_shares_are_equal_but_for_one_cell():
    cells = np.arange(65_536, dtype=np.uint64) << np.uint64(48)
    shares = np.bincount(UniformHash(10).route(cells))
    assert shares.max() - shares.min() <= 1


def test_almost_every_key_moves_when_a_channel_is_added():
    moved = moves(UniformHash(9), UniformHash(10), HASHES, np.ones(len(HASHES)))
    assert moved.cost / len(HASHES) == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("channels", [0, 65_537])
def test_what_cannot_be_is_refused(channels):
    with pytest.raises(BadRouting, match=f"channels is {channels}; give 1 to 65536"):
        UniformHash(channels)
