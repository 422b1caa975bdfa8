"""Combination: near the best member on every kind of series, and bounds from the errors that there were."""

import numpy as np
import pytest

from forecast.series import fed, mean_errors
from penstock.errors import BadForecast
from penstock.forecast import Combined, Holt, MetadataModel, Naive, Regression, Seasonal

T = np.arange(130)[:, None]
SEED = 7


def kinds():
    rng = np.random.default_rng(SEED)
    size = (len(T), 10)
    return {
        "noise": rng.normal(100, 10, size),
        "walk": np.abs(1000 + rng.normal(0, 10, size).cumsum(axis=0)),
        "line": 100 + 5.0 * T + rng.normal(0, 2, size),
        "season": 100 + 50 * np.sin(2 * np.pi * T / 12) + rng.normal(0, 3, size),
        "jumps": np.where(T // 25 % 2, 150, 50) + rng.normal(0, 3, size),
        "bursts": np.where(rng.random(size) < 0.1, 500, 20) + rng.normal(0, 3, size),
    }


@pytest.mark.parametrize("kind", kinds())
def test_it_is_never_worse_than_twice_the_best_member(kind):
    values, leads = kinds()[kind], (1, 5, 10)
    members = [mean_errors(each, values, leads, 60) for each in Combined().methods]
    assert (mean_errors(Combined(), values, leads, 60) <= 2 * np.min(members, axis=0)).all()


def test_it_follows_the_member_that_fits_each_stream():
    values = np.stack([kinds()["line"][:, 0], kinds()["noise"][:, 0]], axis=1)
    rates = fed(Combined((Naive(window=8), Regression())), values)
    mean, regression = rates.shares.reshape(2, 4, 2)[:, -1]
    assert mean[0] < 0.01 * regression[0]
    assert mean[1] > regression[1]


def test_bounds_follow_errors_that_lean_to_one_side():
    """One value in ten is far above: the upper bound is far, the lower one near."""
    rates = fed(Combined((Naive(window=8),)), kinds()["bursts"])
    lower, upper = rates.intervals(1, 0.9)
    means = rates.predict(1)
    assert np.median(upper - means) > 3 * np.median(means - lower)


def test_a_member_that_knows_more_speaks_for_streams_without_values():
    rates = Combined((Holt(), MetadataModel())).start(2)
    rates.members[1].declare([0], {"expected_rate": 500})
    assert rates.predict(2)[0].tolist() == [500, 500]
    assert np.isnan(rates.predict(2)[1]).all()


def test_a_member_alone_is_itself():
    values = kinds()["season"]
    np.testing.assert_allclose(
        fed(Combined((Seasonal(),)), values).predict(9), fed(Seasonal(), values).predict(9), rtol=1e-12
    )


@pytest.mark.parametrize("given", [{"methods": ()}, {"sharpness": -1.0}, {"recent": 3}])
def test_settings_that_cannot_work_are_refused(given):
    with pytest.raises(BadForecast, match=next(iter(given))):
        Combined(**given)
