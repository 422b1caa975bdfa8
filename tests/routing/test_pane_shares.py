import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing.pane_shares import PaneHistory, split_panes, water_fill

SIZES = st.lists(st.integers(0, 100_000), min_size=1, max_size=60)


def spread(loads):
    return loads.std() / loads.mean()


def test_panes_of_one_size_go_round_robin():
    shares, _ = split_panes(PaneHistory.start(3), [7] * 7)
    assert shares.argmax(axis=1).tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert (shares.max(axis=1) == 7).all()


def test_a_pane_stays_whole_up_to_the_mean_plus_one_deviation():
    # Sizes 8 and 12 in turn: mean 10, deviation 2.
    _, history = split_panes(PaneHistory.start(2), [8, 12] * 4)
    assert np.count_nonzero(history.split(12)) == 1
    assert np.count_nonzero(history.split(13)) == 2


def test_the_mean_of_a_burst_stays_home_and_the_excess_levels_the_round():
    #   channel   0    1    2    3
    #   the last round gave 10 to 1, 2 and 3; the burst of 50 comes home to 0
    _, history = split_panes(PaneHistory.start(4), [10] * 8)
    assert history.split(50).tolist() == [20, 10, 10, 10]


def test_the_channel_of_a_small_pane_is_compensated_first():
    #   channel     0    1    2    3
    #   last round  10   2    10   (home of the next)
    _, history = split_panes(PaneHistory.start(4), [10, 10, 10, 10, 10, 2, 10])
    shares = history.split(12)
    assert shares[3] == history.sizes.mean()
    assert shares[1] == 12 - history.sizes.mean()


def test_without_a_round_of_history_panes_stay_whole():
    shares, _ = split_panes(PaneHistory.start(4), [10, 10, 10, 1000])
    assert (np.count_nonzero(shares, axis=1) == 1).all()


def test_large_and_small_panes_in_turn_do_not_favour_every_second_channel():
    shares, _ = split_panes(PaneHistory.start(4), [1000, 10] * 40)
    assert spread(shares.sum(axis=0)) < 0.1


@given(SIZES, st.integers(1, 9))
def test_no_tuple_is_lost(sizes, channels):
    shares, _ = split_panes(PaneHistory.start(channels), sizes)
    assert (shares >= 0).all()
    assert shares.sum(axis=1) == pytest.approx(np.array(sizes, float))


@given(SIZES, st.integers(1, 9), st.data())
def test_what_comes_later_decides_nothing(sizes, channels, data):
    cut = data.draw(st.integers(0, len(sizes)))
    whole, _ = split_panes(PaneHistory.start(channels), sizes)
    early, history = split_panes(PaneHistory.start(channels), sizes[:cut])
    late, _ = split_panes(history, sizes[cut:])
    assert (np.vstack([early, late]) == whole).all()


@given(SIZES, st.integers(1, 9))
def test_the_history_is_bounded(sizes, channels):
    _, history = split_panes(PaneHistory.start(channels, recent=channels), sizes)
    assert len(history.sizes) <= channels
    assert len(history.given) <= channels - 1


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.floats(0, 1e7))
def test_filling_raises_the_lowest_to_one_height(levels, amount):
    before = np.array(levels)
    shares = water_fill(before, amount)
    after = before + shares
    assert shares.sum() == pytest.approx(amount, abs=1e-6)
    assert (shares >= -1e-6).all()
    raised = after[shares > 1e-6]
    assert raised.size == 0 or raised == pytest.approx(np.full(len(raised), raised.max()))
    assert raised.size == 0 or after.min() >= raised.max() - 1e-5


@pytest.mark.parametrize(("channels", "recent"), [(0, None), (4, 3)])
def test_impossible_histories_are_refused(channels, recent):
    with pytest.raises(BadRouting, match="give at least"):
        PaneHistory.start(channels, recent=recent)
