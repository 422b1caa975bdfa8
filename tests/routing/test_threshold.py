import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing.resources import LLL, LQL, Resources
from penstock.routing.threshold import Goal, allowance, counter_threshold, table_threshold


@pytest.mark.parametrize("channels", [2, 3, 10, 100])
def test_allowance_is_the_farthest_that_one_channel_can_be(channels):
    # One channel has 1.2 times the load of all others.
    loads = np.array([1.2] + [1.0] * (channels - 1))
    assert allowance(1.2, channels) == pytest.approx(loads.max() / loads.mean() - 1)


def test_linear_threshold():
    assert counter_threshold(Goal(LLL), 10) == pytest.approx(0.1 * allowance(1.2, 10) / 10)


def test_quadratic_threshold():
    expected = (0.1 * allowance(1.2, 10) / (10**6 * 10)) ** 0.5
    assert counter_threshold(Goal(LQL), 10) == pytest.approx(expected)


def test_counted_frequencies_raise_the_quadratic_threshold_to_the_linear_one():
    shares = 1 / np.arange(1, 10**6 + 1)
    shares /= shares.sum()
    goal = Goal(LQL)
    counted = shares[shares >= counter_threshold(goal, 10)]
    assert len(counted) > 1500
    assert table_threshold(goal, 10, counted) == pytest.approx(counter_threshold(Goal(LLL), 10))


def test_nothing_is_tracked_on_one_channel_or_without_skewed_resources():
    assert counter_threshold(Goal(), 1) == 1.0
    assert counter_threshold(Goal(Resources.of("CCC")), 8) == 1.0


@pytest.mark.parametrize("sigma", [0, 1.5])
def test_bad_sigma(sigma):
    with pytest.raises(BadRouting, match="sigma is"):
        Goal(sigma=sigma)


def test_bad_resources():
    with pytest.raises(BadRouting, match="give three letters of C, L and Q"):
        Resources.of("LXL")
    with pytest.raises(BadRouting, match="give more than 1"):
        Resources.of("LCL", tolerance=1.0)
