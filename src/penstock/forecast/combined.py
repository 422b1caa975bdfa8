"""Several forecasters as one: each counts by how small its recent errors were, stream by stream and lead by lead.

A member's weight falls with the square of its mean squared error, so the worse of two with errors as 2 to 1 counts 6 %.
Intervals are quantiles of the stream's own recent errors, which need not be normal, nor even around 0.
"""

from dataclasses import dataclass, field
from math import floor

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadForecast
from penstock.forecast.forecaster import Column, Floats, Forecaster, Integers, Method
from penstock.forecast.holt import Holt
from penstock.forecast.naive import Naive
from penstock.forecast.regression import Regression
from penstock.forecast.seasonal import Seasonal

__all__ = ["Combined", "CombinedForecaster"]

_FEW = 8  # errors below which quantiles say less than a normal distribution


def _usual() -> tuple[Method, ...]:
    return (Naive(), Naive(window=8), Holt(), Seasonal(), Regression())


@dataclass(frozen=True)
class Combined(Method):
    """A weighted mean of other methods.

    >>> rates = Combined((Naive(), Holt())).start(1)
    >>> for period in range(30):
    ...     rates.observe([10.0 * period], period)
    >>> rates.predict(3).round(0).tolist()
    [[300.0, 310.0, 320.0]]
    """

    methods: tuple[Method, ...] = field(default_factory=_usual)
    sharpness: float = 2.0
    """The power of the mean squared error by which weights fall."""
    recent: int = 32
    """Errors of which the quantiles are taken."""

    def __post_init__(self) -> None:
        if not self.methods or self.sharpness < 0 or self.recent < _FEW:
            raise BadForecast(
                f"{len(self.methods)} methods, sharpness={self.sharpness}, recent={self.recent}; "
                f"give at least one method, a sharpness from 0 and a number of errors from {_FEW}"
            )

    def start(self, streams: int) -> "CombinedForecaster":
        """With a forecaster of each method."""
        return CombinedForecaster(self, streams)


class CombinedForecaster(Forecaster):
    """The members, which hold their own errors, and the last errors of the whole, a ring."""

    errors: NDArray[np.float32]

    def __init__(self, combined: Combined, streams: int) -> None:
        self.combined = combined
        members = [method.start(streams) for method in combined.methods]
        self.whole = any(member.whole for member in members)
        columns = (Column("errors", np.nan, combined.recent, np.float32),)
        super().__init__(combined, streams, columns, memory=combined.recent, members=members)

    def learn(self, values: Floats, at: float) -> None:
        """Note the error of the last forecast; the members learn for themselves."""
        period = floor(at + 0.5)
        self.errors[period % self.combined.recent] = values - self.pending_for(1, period)
        for member in self.members:
            member.observe(values, at)

    def means(self, leads: Integers) -> Floats:
        """The members' means by their weights."""
        means = np.stack([member.predict_at(leads) for member in self.members])
        shares = self._shares(means, leads)
        total: Floats = np.where(shares > 0, shares * means, 0.0).sum(axis=0)
        return np.where(np.isnan(means).all(axis=0), np.nan, total)

    def shares(self, leads: Integers) -> Floats:
        """The weight of each member, members by leads by streams; they add up to 1 where anything is known."""
        return self._shares(np.stack([member.predict_at(leads) for member in self.members]), leads)

    def offsets(self, leads: Integers, level: float) -> tuple[Floats, Floats]:
        """Quantiles of the last errors one period ahead, as much wider as the spread grows with the lead."""
        spread = self.spread_at(leads)
        first = self.spread_at(np.array([1]))
        growth = np.divide(spread, first, out=np.ones_like(spread), where=first > 0)
        ranked = np.sort(self.errors, axis=0).astype(np.float64)  # NaN at the end
        count = (~np.isnan(ranked)).sum(axis=0)
        below, above = super().offsets(leads, level)
        few = count < _FEW
        lower = growth * _quantile(ranked, count, (1 - level) / 2, below[0] / growth[0])
        upper = growth * _quantile(ranked, count, (1 + level) / 2, above[0] / growth[0])
        return np.where(few, below, lower), np.where(few, above, upper)

    def _shares(self, means: Floats, leads: Integers) -> Floats:
        squares = np.stack([member.spread_at(leads) ** 2 for member in self.members])
        squares[np.isnan(means)] = np.nan
        scored = ~np.isnan(squares)
        least = np.where(scored, squares, np.inf).min(axis=0)
        # Errors of a millionth of the forecast are rounding: such members count alike.
        least_mean = np.where(np.isnan(means), np.inf, means).min(axis=0)
        rounding = 1e-12 * np.where(np.isfinite(least_mean), least_mean, 0.0) ** 2 + 1e-300
        ratio = np.divide(least + rounding, squares + rounding, out=np.zeros_like(squares), where=scored)
        # Before anything is scored, all that know anything count alike.
        weights = np.where(np.isinf(least), ~np.isnan(means), ratio**self.combined.sharpness)
        total = weights.sum(axis=0)
        return np.divide(weights, total, out=np.zeros_like(squares), where=total > 0)


def _quantile(ranked: Floats, count: Integers, share: float, otherwise: Floats) -> Floats:
    """The quantile of each column of sorted values, of which the first `count` are known.

    The r-th of c values is the quantile r / (c + 1), so that the next value falls below it with just this
    probability. Beyond the outermost value that is further out of it and `otherwise`.
    """
    place = share * (count + 1) - 1
    last = np.maximum(count - 1, 0)
    low = np.clip(np.floor(place), 0, last).astype(np.int64)
    each = np.arange(ranked.shape[1])
    lower, upper = ranked[low, each], ranked[np.minimum(low + 1, last), each]
    found: Floats = lower + (upper - lower) * np.clip(place - low, 0.0, 1.0)
    outside = (place < 0) | (place > last)
    further = np.minimum if share < 0.5 else np.maximum
    return np.where(outside, further(found, otherwise), found)
