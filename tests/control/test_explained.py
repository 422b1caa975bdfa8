"""Which growth explains the load of channels: one of them, or rows and pairs together."""

import numpy as np

from penstock.control.skew.explained import explain_load
from penstock.routing import Growth

ROWS = np.array([0.30, 0.20, 0.15, 0.15, 0.10, 0.10])
PAIRS = np.array([0.05, 0.70, 0.05, 0.10, 0.05, 0.05])
SHARES = {Growth.CONSTANT: np.full(6, 1 / 6), Growth.LINEAR: ROWS, Growth.QUADRATIC: PAIRS}


def test_rows_and_pairs_explain_a_join_together():
    found = explain_load(0.2 + 6 * (0.5 * ROWS + 0.3 * PAIRS), SHARES, Growth.QUADRATIC)
    assert {growth: round(slope, 6) for growth, slope in found.slopes.items()} == {
        Growth.QUADRATIC: 0.3,
        Growth.LINEAR: 0.5,
    }
    # Pairs differ more between channels than rows.
    assert found.growth is Growth.QUADRATIC


def test_one_growth_is_enough_if_a_second_one_explains_little_more():
    noise = np.array([0.01, -0.01, 0.02, -0.02, 0.01, -0.01])
    assert list(explain_load(6 * ROWS + noise, SHARES, Growth.QUADRATIC).slopes) == [Growth.LINEAR]


def test_no_growth_costs_less_than_nothing():
    """Channels with more pairs have less load: the pairs are not the cause."""
    found = explain_load(1.3 + 6 * (0.8 * ROWS - 0.2 * PAIRS) - 0.9, SHARES, Growth.LINEAR)
    assert list(found.slopes) == [Growth.LINEAR]
