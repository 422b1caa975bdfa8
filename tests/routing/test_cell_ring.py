import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing.cell_ring import CellRing
from penstock.routing.ring import Ring


def test_it_is_the_ring_whose_owners_it_has():
    ring, hashes = Ring(5), np.random.default_rng(3).integers(0, 2**64, 1000, dtype=np.uint64)
    copy = CellRing.over(ring, ring.cells, 5)
    assert np.array_equal(copy.route(hashes), ring.route(hashes))


def test_owners_must_be_channels_and_fill_the_cells():
    with pytest.raises(BadRouting, match="with 2 channels give 0 to 1"):
        CellRing.over(Ring(2), np.array([0, 2], np.int32), 2)
    with pytest.raises(BadRouting, match="give one for each cell"):
        CellRing(2, buckets=4, owners=np.array([0, 1], np.int32))
