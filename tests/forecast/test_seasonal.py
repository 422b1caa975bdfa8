"""Seasons: given or found, with trends and gaps, and none where there is none."""

import numpy as np
import pytest

from forecast.series import fed, mean_errors, with_gaps
from penstock.errors import BadForecast
from penstock.forecast import Naive, Seasonal

T = np.arange(160)[:, None]


def season(length, noise=0.02, seed=1, trend=0.0):
    rng = np.random.default_rng(seed)
    shape = rng.uniform(-40, 40, length)
    shape -= shape.mean()
    return 100 + trend * T + shape[T % length] + rng.normal(0, 100 * noise, T.shape)


@pytest.mark.parametrize("length", [3, 7, 12, 24, 40])
def test_a_season_is_found(length):
    rates = fed(Seasonal(), season(length))
    assert rates.period.tolist() == [length]


def test_noise_drift_and_lines_hardly_ever_have_a_season():
    rng, size = np.random.default_rng(4), (160, 200)
    noise = rng.normal(100, 10, size)
    walks = np.abs(1000 + rng.normal(0, 10, size).cumsum(axis=0))
    lines = 10.0 + T * rng.uniform(0, 5, 200) + rng.normal(0, 3, size)
    for values in (noise, walks, lines):
        assert np.count_nonzero(fed(Seasonal(), values).period) <= 0.03 * 200


@pytest.mark.parametrize("trend", [0.0, 1.0])
@pytest.mark.parametrize("gaps", [0.0, 0.15])
@pytest.mark.parametrize("method", [Seasonal(), Seasonal(period=12, damping=1.0)], ids=["found", "given"])
def test_seasons_beat_the_last_value_by_far(method, gaps, trend):
    values = season(12, trend=trend)
    holes = with_gaps(values, gaps)
    rates, errors, plain = fed(method, holes[:80]), [], []
    for at in range(80, 150):
        rates.observe(holes[at], at)
        errors.append(np.abs(values[at + 5] - rates.predict(5)[0, 4]))
        plain.append(np.abs(values[at + 5] - values[at]))
    assert np.mean(errors) < 0.3 * np.mean(plain)


def test_a_season_that_ends_leaves_the_forecasts():
    values = np.concatenate([season(10), np.random.default_rng(9).normal(100, 5, (300, 1))])
    assert fed(Seasonal(), values[:160]).predict(10).std() > 15
    assert fed(Seasonal(), values).predict(10).std() < 5


def test_a_season_that_changes_its_length_is_found_again():
    values = np.concatenate([season(10), season(16, seed=5), season(16, seed=5)])
    assert fed(Seasonal(), values).period.tolist() == [16]


def test_a_damped_trend_ends():
    line = 100 + 5.0 * np.arange(40)[:, None]
    damped, free = fed(Seasonal(damping=0.8), line), fed(Seasonal(damping=1.0), line)
    assert np.diff(damped.predict(60)[0])[-1] < 0.01
    assert np.diff(free.predict(60)[0])[-1] == pytest.approx(5, rel=0.2)


def test_without_a_season_it_still_beats_the_last_value_on_noise():
    noise = np.random.default_rng(3).normal(100, 10, (100, 20))
    assert mean_errors(Seasonal(), noise, [3], 40) < mean_errors(Naive(), noise, [3], 40)


@pytest.mark.parametrize("given", [{"period": 0}, {"longest": 2}, {"refit": 0}, {"alpha": 1.5}])
def test_settings_that_cannot_work_are_refused(given):
    with pytest.raises(BadForecast, match=next(iter(given))):
        Seasonal(**given)
