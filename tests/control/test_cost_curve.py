"""What a key costs is learnt from the load of channels: rows, pairs, or both together."""

import json

import numpy as np
import pytest

from penstock.control.layout.cost_curve import CurveFit
from penstock.routing import Growth

ROWS = np.array([0.30, 0.20, 0.15, 0.15, 0.10, 0.10])
PAIRS = np.array([0.05, 0.70, 0.05, 0.10, 0.05, 0.05])
SHARES = {Growth.LINEAR: ROWS, Growth.QUADRATIC: PAIRS}


def fitted(load, said, epochs=20, shares=None):
    fit = CurveFit()
    for _ in range(epochs):
        fit.observe(load, shares or SHARES)
    return fit.curve(said)


def test_rows_and_pairs_explain_a_join_together():
    found = fitted(0.2 + 6 * (0.5 * ROWS + 0.3 * PAIRS), Growth.QUADRATIC)
    assert found.parts[Growth.LINEAR] == pytest.approx(0.5, abs=0.01)
    assert found.parts[Growth.QUADRATIC] == pytest.approx(0.3, abs=0.01)
    assert found.flat == pytest.approx(0.2, abs=0.01)


def test_no_part_costs_less_than_nothing():
    """Channels with more pairs have less load: the pairs are not the cause."""
    found = fitted(0.4 + 6 * (0.8 * ROWS - 0.2 * PAIRS), Growth.LINEAR)
    assert list(found.parts) == [Growth.LINEAR]


def test_even_channels_leave_what_the_operator_says():
    even = {Growth.LINEAR: np.full(6, 1 / 6), Growth.QUADRATIC: np.full(6, 1 / 6)}
    found = fitted(np.ones(6), Growth.QUADRATIC, shares=even)
    assert found.parts[Growth.QUADRATIC] > found.parts.get(Growth.LINEAR, 0.0)


def test_what_was_learnt_survives_even_channels_and_a_restart():
    fit = CurveFit()
    fit.observe(0.2 + 6 * (0.5 * ROWS + 0.3 * PAIRS), SHARES)
    even = {growth: np.full(6, 1 / 6) for growth in SHARES}
    for _ in range(30):
        fit.observe(np.ones(6), even)
    again = CurveFit()
    again.resume(json.loads(json.dumps(fit.to_json())))
    assert again.curve(Growth.QUADRATIC) == fit.curve(Growth.QUADRATIC)
    assert fit.curve(Growth.QUADRATIC).parts[Growth.LINEAR] == pytest.approx(0.5, abs=0.1)
