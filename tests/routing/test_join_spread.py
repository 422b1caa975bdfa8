import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import (
    Grid,
    JoinSpread,
    Ring,
    cell_parts,
    joint_rates,
    left_delivers,
    row_copies,
    shaped_grid,
    spread_hot_keys,
)
from penstock.sketches import LossyCounting
from penstock_lab.workloads import skewed_join_work

RNG = np.random.default_rng(8)
KEYS = RNG.integers(0, 2**64, 40, dtype=np.uint64)
RATES = 1 / np.arange(1, 41) ** 1.2
words = st.integers(0, 2**64 - 1)


def meetings(router, left, right):
    """How often each left tuple meets each right one."""
    together = np.zeros((len(left[0]), len(right[0])), int)
    lefts, rights = router.left(*left), router.right(*right)
    for channel in range(router.channels):
        mine = lefts.rows[lefts.channels == channel], rights.rows[rights.channels == channel]
        together[np.ix_(*mine)] += 1
    return together


def tuples(drawn):
    return np.array([key for key, _ in drawn], np.uint64), np.array([salt for _, salt in drawn], np.uint64)


sides = st.lists(st.tuples(st.sampled_from([*KEYS[:6].tolist(), *range(4)]), words), max_size=20).map(tuples)


@given(st.integers(1, 30), st.sampled_from(["both", "left", "right", "neither"]), sides, sides)
def test_tuples_of_one_key_meet_in_exactly_one_channel(channels, copied, left, right):
    router = spread_hot_keys(KEYS, RATES, RATES, Ring(channels), copied)
    same = left[0][:, None] == right[0][None, :]
    assert (meetings(router, left, right)[same] == 1).all()


JUDGED = ["judged", "judged by pairs"]


@given(st.integers(3, 30), st.sampled_from(JUDGED), sides, sides)
def test_on_judged_grids_one_cell_of_its_own_side_has_all_partners_of_a_tuple(channels, copied, left, right):
    router = spread_hot_keys(KEYS, RATES, RATES, Ring(channels), copied)
    routes = router.arrays.route(left[0])
    same = left[0][:, None] == right[0][None, :]
    # A pair meets in one left and in one right cell.
    wanted = np.where(routes < 0, 2, 1)[:, None] * np.ones(len(right[0]), int)
    np.testing.assert_array_equal(meetings(router, left, right)[same], wanted[same])
    assert (router.columns[router.sizes > 1] < router.sizes[router.sizes > 1]).all()


@pytest.mark.parametrize("copied", ["both", "left", "right", *JUDGED])
@pytest.mark.parametrize("rates", [(1.0, 1.0), (1.0, 3.0)])
def test_cells_have_the_parts_and_tuples_the_copies_that_are_told(copied, rates):
    router = spread_hot_keys(KEYS[:1], *(np.array([each]) for each in rates), Ring(8), copied)
    size, columns = int(router.sizes[0]), int(router.columns[0])
    salts = RNG.integers(0, 2**64, 40_000, dtype=np.uint64)
    hashes = np.repeat(KEYS[:1], len(salts))
    parts = np.array(cell_parts(copied, size, columns))
    for side, deal in enumerate((router.left, router.right)):
        found = deal(hashes, salts)
        of_cells = np.bincount(found.channels, minlength=8)[router.targets] / len(salts)
        np.testing.assert_allclose(of_cells, parts[:, side], atol=0.02)
        assert len(found.rows) / len(salts) == pytest.approx(
            row_copies(copied, size, columns)[side], rel=0.06
        )
    assert parts[:, 2].sum() == pytest.approx(1.25 if copied == "judged by pairs" else 1.0)


@pytest.mark.parametrize("copied", JUDGED)
def test_the_side_with_more_tuples_has_fewer_copies(copied):
    more_left, more_right = (shaped_grid(copied, 8, *rates) for rates in ((3.0, 1.0), (1.0, 3.0)))
    assert more_left.columns == 8 - more_right.columns > 4
    assert left_delivers(8, more_left.columns)
    assert not left_delivers(8, more_right.columns)
    assert shaped_grid(copied, 2).channels == 1


def test_a_judged_grid_needs_cells_of_both_kinds():
    with pytest.raises(BadRouting, match="only left cells"):
        JoinSpread(KEYS[:1], np.array([2]), np.array([2]), np.array([0, 3], np.int32), Ring(4), judged=True)


@pytest.mark.parametrize(("copied", "whole"), [("left", "right"), ("right", "left")])
def test_a_side_that_may_not_be_copied_goes_to_one_channel(copied, whole):
    router = spread_hot_keys(KEYS, RATES, RATES, Ring(8), copied)
    salts = RNG.integers(0, 2**64, 4_000, dtype=np.uint64)
    routed = getattr(router, whole)(np.repeat(KEYS, 100), salts)
    assert routed.rows.tolist() == list(range(4_000))
    assert router.sizes[0] == 8


def test_keys_without_a_rate_go_by_the_ring():
    router, hashes = (
        spread_hot_keys(KEYS, RATES, RATES, Ring(8)),
        RNG.integers(0, 2**64, 999, dtype=np.uint64),
    )
    for routed in (router.left(hashes, hashes), router.right(hashes, hashes)):
        np.testing.assert_array_equal(routed.channels, Ring(8).route(hashes))


def test_a_spread_key_is_a_grid_over_its_channels():
    targets = np.array([5, 3, 0, 6, 1, 2, 4], np.int32)
    router = JoinSpread(KEYS[:1], np.array([7]), np.array([3]), targets, Ring(8))
    salts = RNG.integers(0, 2**64, 500, dtype=np.uint64)
    hashes = np.repeat(KEYS[:1], 500)
    for side in ("left", "right"):
        ours, theirs = getattr(router, side)(hashes, salts), getattr(Grid(7, 3), side)(salts)
        np.testing.assert_array_equal(ours.channels, targets[theirs.channels])
        np.testing.assert_array_equal(ours.rows, theirs.rows)


@pytest.mark.parametrize("copied", ["both", "left", "right"])
@pytest.mark.parametrize("seed", range(3))
def test_the_busiest_of_eight_channels_is_close_to_the_mean(copied, seed):
    plain, spread = skewed_join_work(8, 1.2, seed, tuples=100_000, copied=copied)
    assert plain > 5
    assert spread <= 1.3


def test_rates_of_both_sides_come_together():
    left, right = LossyCounting(0.1), LossyCounting(0.1)
    left.update(np.array([1, 1, 1, 2], np.uint64))
    right.update(np.array([3, 1], np.uint64))
    keys, ours, theirs = joint_rates(left.items(), right.items())
    assert keys.tolist() == [1, 2, 3]
    assert ours.tolist() == [0.75, 0.25, 0.0]
    assert theirs.tolist() == [0.5, 0.0, 0.5]


def test_grids_that_would_form_a_pair_twice_are_refused():
    with pytest.raises(BadRouting, match="a channel twice"):
        JoinSpread(KEYS[:1], np.array([2]), np.array([1]), np.array([3, 3], np.int32), Ring(4))


def test_rates_that_cannot_be_are_refused():
    with pytest.raises(BadRouting, match="0 or more"):
        spread_hot_keys(KEYS[:1], np.array([-1.0]), np.array([1.0]), Ring(2))
    with pytest.raises(BadRouting, match="1 keys have 2 left"):
        spread_hot_keys(KEYS[:1], np.ones(2), np.ones(1), Ring(2))
