import math

import numpy as np
import pytest

from penstock.routing.balance import Penalty, balance
from penstock.routing.resources import LCL, LQL, Growth
from penstock.routing.threshold import Goal
from routing.partitions import penalty


def test_balance_is_the_geometric_mean_over_tolerances():
    found = balance(LQL, {Growth.LINEAR: np.array([2.4, 1.2]), Growth.QUADRATIC: np.array([6.0, 1.0])})
    assert (found.state, found.computation) == (pytest.approx(2 / 1.2), pytest.approx(5.0))
    assert found.overall == pytest.approx((2 / 1.2 * 5 * 2 / 1.2) ** (1 / 3))


def test_an_empty_channel_is_infinitely_uneven():
    found = balance(LCL, {Growth.LINEAR: np.array([1.0, 0.0]), Growth.CONSTANT: np.array([1.0, 1.0])})
    assert math.isinf(found.overall)


@pytest.mark.parametrize("resources", [LCL, LQL])
def test_penalty_is_that_of_the_definition(resources):
    shares, places = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0, 1, 1, 2])
    rule = Penalty.of(resources, 3)
    spreads = []
    for growth in rule.growths:
        load = np.bincount(places, growth.costs(shares), 3)
        spreads.append(np.array((load.max() - load.min()) / load.mean()))
    expected, _ = penalty(Goal(resources), shares, places, 3)
    assert float(rule.of_spreads(spreads)) == pytest.approx(expected)
