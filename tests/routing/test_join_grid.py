import numpy as np
import pytest

from penstock.routing import grid_for, join_grid

HASHES = np.random.default_rng(2).integers(0, 2**64, 500, dtype=np.uint64)


def test_an_inner_product_takes_the_grid_with_the_fewest_copies():
    assert join_grid("inner", 12, left=4.0, last=False) == grid_for(12, left=4.0)


@pytest.mark.parametrize("channels", [1, 4, 7])
def test_the_outer_side_goes_to_one_channel_and_the_other_to_all(channels):
    sides = [("left", "left", "right"), ("right", "right", "left")]
    sides += [("semi", "left", "right"), ("anti", "left", "right")]
    for how, single, every in sides:
        grid = join_grid(how, channels, last=False)
        assert grid.channels == channels
        assert len(getattr(grid, single)(HASHES).rows) == len(HASHES)
        assert len(getattr(grid, every)(HASHES).rows) == len(HASHES) * channels


@pytest.mark.parametrize(("how", "last"), [("full", False), ("inner", True), ("left", True)])
def test_what_no_grid_can_do_has_one_channel(how, last):
    assert join_grid(how, 9, last=last).channels == 1
