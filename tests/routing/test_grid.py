import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing.grid import Grid, grid_for


def meetings(grid, left, right):
    """How often each left tuple meets each right one."""
    lefts, rights = grid.left(left), grid.right(right)
    together = np.zeros((len(left), len(right)), int)
    for channel in range(grid.channels):
        mine = lefts.rows[lefts.channels == channel], rights.rows[rights.channels == channel]
        together[np.ix_(*mine)] += 1
    return together


hashes = st.lists(st.integers(0, 2**64 - 1), max_size=20).map(lambda drawn: np.array(drawn, np.uint64))


@given(st.integers(1, 70), st.data(), hashes, hashes)
def test_every_pair_meets_exactly_once(channels, data, left, right):
    grid = Grid(channels, data.draw(st.integers(1, channels)))
    assert (meetings(grid, left, right) == 1).all()


@pytest.mark.parametrize("channels", range(1, 50))
def test_every_pair_meets_exactly_once_in_the_chosen_grid(channels):
    rng = np.random.default_rng(channels)
    left, right = rng.integers(0, 2**64, (2, 60), dtype=np.uint64)
    assert (meetings(grid_for(channels), left, right) == 1).all()


def test_four_channels_are_the_published_example():
    # 0-3 and A-D: (0, 3) to instances 0 and 1, (1, 2) to 2 and 3, (A, C) to 0 and 2, (B, D) to 1 and 3.
    low, high = 0, 2**63
    grid = grid_for(4)
    assert grid.left(np.array([low, high, high, low], np.uint64)).channels.tolist() == [
        0,
        1,
        2,
        3,
        2,
        3,
        0,
        1,
    ]
    assert grid.right(np.array([low, high, low, high], np.uint64)).channels.tolist() == [
        0,
        2,
        1,
        3,
        0,
        2,
        1,
        3,
    ]


@pytest.mark.parametrize("channels", [1, 2, 7, 13, 16, 31, 40, 97])
def test_all_channels_form_the_same_number_of_pairs(channels):
    grid, ticks = grid_for(channels), np.arange(20_000, dtype=np.uint64) * np.uint64(2**64 // 20_000)
    pairs = np.bincount(grid.left(ticks).channels, minlength=channels) * np.bincount(
        grid.right(ticks).channels
    )
    np.testing.assert_allclose(pairs, len(ticks) ** 2 / channels, rtol=0.01)


@pytest.mark.parametrize("channels", range(1, 200))
def test_tuples_go_to_about_the_square_root_of_the_channels(channels):
    grid = grid_for(channels)
    assert grid.left_copies + grid.right_copies <= 2 * np.sqrt(channels) * 1.07
    assert max(*grid.heights, grid.columns) <= np.sqrt(channels) + 1


def test_copies_are_counted_as_they_are_made():
    grid, uniform = grid_for(23), np.random.default_rng(1).integers(0, 2**64, 100_000, dtype=np.uint64)
    assert len(grid.left(uniform).rows) / len(uniform) == pytest.approx(grid.left_copies, rel=0.01)
    assert len(grid.right(uniform).rows) == grid.right_copies * len(uniform)


@given(st.integers(1, 60), st.floats(0, 100), st.floats(0, 100))
def test_the_chosen_grid_has_the_fewest_copies(channels, left, right):
    left += not left + right
    chosen, *others = grid_for(channels, left, right), *(Grid(channels, c + 1) for c in range(channels))
    costs = [left * grid.left_copies + right * grid.right_copies for grid in (chosen, *others)]
    assert costs[0] == pytest.approx(min(costs))


@pytest.mark.parametrize(("channels", "columns"), [(0, 1), (4, 0), (4, 5), (1 << 20, 4)])
def test_grids_that_cannot_be_are_refused(channels, columns):
    with pytest.raises(BadRouting, match=f"a grid has {columns} columns and {channels} channels"):
        Grid(channels, columns)


def test_rates_that_cannot_be_are_refused():
    with pytest.raises(BadRouting, match=r"rates are 0.0 and 0.0"):
        grid_for(4, 0.0, 0.0)
    with pytest.raises(BadRouting, match="channels is 0"):
        grid_for(0)
