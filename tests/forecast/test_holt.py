"""Holt's linear trend against its equations, worked by hand and step by step."""

import numpy as np
import pytest

from forecast.series import fed, mean_errors
from penstock.errors import BadForecast
from penstock.forecast import Holt

FIXED = Holt(alphas=(0.5,), gammas=(0.25,))


def test_a_series_worked_by_hand():
    #   X    L + T     L = X/2 + (L + T)/2    T = ΔL/4 + 3T/4
    #   8              8                      0
    #   12   8         10                     0.5
    #   9    10.5      9.75                   0.3125
    #   15   10.0625   12.53125               0.9296875
    rates = fed(FIXED, np.array([[8.0], [12.0], [9.0], [15.0]]))
    assert rates.level[0, 0] == 12.53125
    assert rates.trend[0, 0] == 0.9296875
    assert rates.predict(3)[0] == pytest.approx([13.4609375, 14.390625, 15.3203125])


@pytest.mark.parametrize("alpha", [0.1, 0.7, 1.0])
@pytest.mark.parametrize("gamma", [0.0, 0.4, 1.0])
def test_the_equations_of_the_paper(alpha, gamma):
    values = np.random.default_rng(2).uniform(10, 90, 30)
    level, trend = values[0], 0.0
    for value in values[1:]:
        before, level = level, alpha * value + (1 - alpha) * (level + trend)
        trend = gamma * (level - before) + (1 - gamma) * trend
    rates = fed(Holt(alphas=(alpha,), gammas=(gamma,)), values[:, None])
    assert rates.predict(4)[0] == pytest.approx(np.maximum(level + np.arange(1, 5) * trend, 0), rel=1e-9)


def test_each_stream_gets_the_point_with_the_least_error():
    """Noise around a level wants a small alpha, a random walk a large one, a line a trend."""
    rng = np.random.default_rng(4)
    noise = rng.normal(100, 10, 200)
    walk = 1000 + rng.normal(0, 10, 200).cumsum()
    bends = 1000 + np.repeat([8.0, -4.0, 12.0, 2.0], 50).cumsum() + rng.normal(0, 0.5, 200)
    rates = fed(Holt(), np.stack([noise, walk, bends], axis=1))
    alphas, gammas = rates.parameters()
    assert alphas[0] <= 0.1
    assert alphas[1] >= 0.7
    assert gammas[1] <= 0.05
    assert gammas[2] >= 0.15


def test_the_fitted_point_is_about_as_good_as_the_best_fixed_one():
    rng = np.random.default_rng(6)
    walk = 1000 + rng.normal(0, 10, (120, 20)).cumsum(axis=0)
    (fitted,) = mean_errors(Holt(), walk, [1], 60)
    fixed = [mean_errors(Holt((a,), (c,)), walk, [1], 60)[0] for a, c in Holt().grid[::3]]
    assert fitted <= 1.1 * min(fixed)
    assert fitted < 0.8 * max(fixed)


def test_a_long_gap_ends_the_trend_and_the_next_value_is_a_first_one():
    rates = fed(FIXED, np.array([[10.0], [20.0], [30.0]]))
    for at in range(3, 3 + FIXED.gap):
        rates.observe([np.nan], at)
    kept = rates.level[0, 0]
    rates.observe([np.nan], 20)
    assert rates.level[0, 0] == kept
    rates.observe([7.0], 21)
    assert rates.predict(2)[0].tolist() == [7.0, 7.0]


@pytest.mark.parametrize(
    "given", [{"alphas": ()}, {"gammas": (1.5,)}, {"history": 0}, {"refit": 0}, {"gap": 0}]
)
def test_settings_that_cannot_work_are_refused(given):
    with pytest.raises(BadForecast, match=next(iter(given))):
        Holt(**given)
