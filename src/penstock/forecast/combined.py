"""Several forecasters as one: each counts by how small its recent errors were, for each stream and lead.

A member's weight falls with the square of its mean squared error: the worse of two with errors as 2 to 1
counts 6 %. Intervals are quantiles of the stream's own recent errors, normal or not.
"""

from dataclasses import dataclass, field
from math import floor

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadForecast
from penstock.forecast.forecaster import LEADS, Column, Floats, Forecaster, Integers, Method
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
    >>> for period in range(60):
    ...     rates.observe([10.0 * period], period)
    >>> rates.predict(3).round(0).tolist()
    [[600.0, 610.0, 620.0]]
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
    """The members, which hold their own errors; their weights; the last errors of the whole, a ring."""

    errors: NDArray[np.float32]
    shares: Floats

    def __init__(self, combined: Combined, streams: int) -> None:
        self.combined = combined
        members = [method.start(streams) for method in combined.methods]
        self.whole = any(member.whole for member in members)
        columns = (
            Column("errors", np.nan, combined.recent, np.float32),
            Column("shares", 1 / len(members), len(members) * len(LEADS)),
        )
        super().__init__(combined, streams, columns, memory=combined.recent, members=members)

    def learn(self, values: Floats, at: float) -> None:
        """Note the error of the last forecast; the members learn for themselves."""
        period = floor(at + 0.5)
        if self.at is not None and period > floor(self.at + 0.5):
            self.errors[period % self.combined.recent] = values - self.pending_for(1, period)
        for member in self.members:
            member.observe(values, at)
        self._weigh(values)

    def means(self, leads: Integers) -> Floats:
        """The members' means by their weights at the next shorter scored lead.

        A lead counts from a stream's last value.
        """
        rows = _row(leads)
        quiet = np.flatnonzero(self.silent)
        quiet_rows = _row(leads[:, None] + self.silent[quiet])
        total, weight = np.zeros((2, len(leads), self.streams))
        plain, count = np.zeros((2, len(leads), self.streams))
        for number, member in enumerate(self.members):
            found = member.predict_at(leads)
            known = ~np.isnan(found)
            share = self.shares[number * len(LEADS) + rows]
            share[:, quiet] = self.shares[number * len(LEADS) + quiet_rows, quiet]
            np.add(total, share * found, out=total, where=known)
            np.add(weight, share, out=weight, where=known)
            np.add(plain, found, out=plain, where=known)
            count += known
        # If those that count know nothing, those that know something count alike.
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(weight > 0, total / weight, plain / count)

    def offsets(self, leads: Integers, level: float) -> tuple[Floats, Floats]:
        """Quantiles of the last errors one period ahead, as much wider as the spread grows with the lead."""
        spread = self.spread_at(leads)
        first = self.spread_at(np.array([1]))
        growth = np.divide(spread, first, out=np.ones_like(spread), where=first > 0)
        ranked = np.sort(self.errors, axis=0).astype(np.float64)  # NaN at the end
        count = (~np.isnan(ranked)).sum(axis=0)
        below, above = super().offsets(leads, level)
        few = count < _FEW
        lower = growth * _quantile(ranked, count, (1 - level) / 2, below[0])
        upper = growth * _quantile(ranked, count, (1 + level) / 2, above[0])
        return np.where(few, below, lower), np.where(few, above, upper)

    def _weigh(self, values: Floats) -> None:
        """Weights at each scored lead, by mean squared error; a stream in a gap keeps its weights."""
        size, leads = len(LEADS), np.array(LEADS)
        known = ~np.isnan(values)
        squares = [member.spread_at(leads) ** 2 for member in self.members]
        least = np.fmin.reduce(squares)
        # Errors of a millionth of the rate are rounding: such members count alike.
        rounding = 1e-12 * values * values + 1e-300
        for number, each in enumerate(squares):
            ratio = (least + rounding) / (each + rounding)
            # Nothing is scored: all count alike. Something is: a member without scores has to wait.
            unscored = np.where(np.isnan(least), 1.0, 0.0)
            share = np.where(np.isnan(ratio), unscored, ratio**self.combined.sharpness)
            np.copyto(self.shares[number * size : (number + 1) * size], share, where=known)


def _row(leads: Integers) -> Integers:
    return np.searchsorted(LEADS, leads, side="right") - 1


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
