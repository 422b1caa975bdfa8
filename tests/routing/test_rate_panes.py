import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing.pane_shares import PaneHistory, split_panes
from penstock.routing.rate_panes import PlainPanes, plan_panes


def planned(sizes, channels=4, first=100):
    shares, _ = split_panes(PaneHistory.start(channels), sizes)
    return plan_panes(first, shares), shares


def test_without_bursts_it_is_a_round_robin_of_panes():
    router, _ = planned([10] * 12)
    panes = np.arange(100, 112)
    assert (router.route(panes, np.zeros(12, np.int64)) == PlainPanes(4).route(panes)).all()
    assert not len(router.slots)


@given(st.lists(st.integers(1, 100_000), min_size=5, max_size=40), st.integers(0, 2**40))
def test_a_pane_reaches_each_channel_in_its_share(sizes, start):
    router, shares = planned(sizes)
    last = 100 + len(sizes) - 1
    got = np.bincount(router.route(np.full(2560, last), np.arange(start, start + 2560)), minlength=4)
    assert got / 2560 == pytest.approx(shares[-1] / shares[-1].sum(), abs=1 / router.width)


def test_panes_outside_of_the_plan_are_whole():
    router, _ = planned([10] * 8 + [1000])
    panes = np.array([-(2**62), -1, 99, 109, 2**62])
    assert (router.route(panes, np.arange(5)) == PlainPanes(4).route(panes)).all()


def test_an_empty_plan_is_plain():
    router = plan_panes(0, np.empty((0, 3)))
    panes = np.arange(-5, 5)
    assert (router.route(panes, np.arange(10)) == PlainPanes(3).route(panes)).all()


def test_a_pane_planned_without_tuples_keeps_its_turn():
    router = plan_panes(5, np.zeros((3, 2)))
    assert router.homes.tolist() == [1, 0, 1]


def test_a_short_run_of_tuples_of_a_burst_is_spread_already():
    router = plan_panes(0, np.full((1, 4), 25.0))
    channels = router.route(np.zeros(64, np.int64), np.arange(64))
    assert np.bincount(channels).tolist() == [16] * 4


@pytest.mark.parametrize(
    ("shares", "width"),
    [(np.ones(3), 256), (np.ones((2, 0)), 256), (np.array([[1.0, -1.0]]), 256), (np.array([[np.nan]]), 256)]
    + [(np.ones((1, 2)), width) for width in (0, 3, -4)],
)
def test_impossible_plans_are_refused(shares, width):
    with pytest.raises(BadRouting, match="give a"):
        plan_panes(0, shares, width=width)


def test_panes_need_a_channel():
    with pytest.raises(BadRouting, match="0 channels"):
        PlainPanes(0)
