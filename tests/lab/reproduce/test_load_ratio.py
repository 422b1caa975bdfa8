import numpy as np

from penstock_lab.reproduce.load_ratio import load_ratio, rolling_ratio


def test_level_loads_have_no_ratio():
    assert load_ratio(np.array([5, 5, 5])) == 0


def test_one_busy_channel_of_four():
    assert load_ratio(np.array([4.0, 0, 0, 0])) == np.sqrt(3)


def test_a_round_robin_is_level_over_one_round_and_not_over_less():
    given = np.tile(np.eye(4), (3, 1))
    assert (rolling_ratio(given, 4) == 0).all()
    assert (rolling_ratio(given, 3) > 0).all()
