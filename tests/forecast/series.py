"""Rates to forecast, drawn from seeds: time by streams."""

import numpy as np

from penstock.forecast import FORECASTERS


def mixed(periods=60, streams=24, seed=3):
    """Noise, trends, seasons and jumps, a quarter of the streams each."""
    rng = np.random.default_rng(seed)
    t, base = np.arange(periods)[:, None], rng.uniform(50, 500, streams)
    shapes = [
        np.zeros((periods, 1)),
        0.01 * t,
        0.4 * np.sin(2 * np.pi * t / 12),
        np.where(t // 10 % 2, 0.5, -0.5),
    ]
    shape = np.concatenate([shapes[each % 4] for each in range(streams)], axis=1)
    return np.maximum(base * (1 + shape + rng.normal(0, 0.05, (periods, streams))), 0)


def with_gaps(values, share=0.1, seed=5):
    gaps = np.random.default_rng(seed).random(values.shape) < share
    return np.where(gaps, np.nan, values)


def fed(method, values, first=0):
    """A forecaster that has seen the values, one period after the other; a name is one of the registry."""
    method = FORECASTERS[method] if isinstance(method, str) else method
    forecaster = method.start(values.shape[1])
    for at, row in enumerate(values, first):
        forecaster.observe(row, at)
    return forecaster


def mean_errors(method, values, leads, after):
    """The mean absolute error at each lead of the forecasts made from period `after` on."""
    forecaster, errors = fed(method, values[:after]), []
    for at in range(after, len(values) - max(leads)):
        forecaster.observe(values[at], at)
        found = forecaster.predict(max(leads))
        errors.append([np.abs(values[at + lead] - found[:, lead - 1]).mean() for lead in leads])
    return np.mean(errors, axis=0)
