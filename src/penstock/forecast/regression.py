"""The best of a line, a logarithm and an exponential through the last values of each stream ([001] Eq. 3).

Least squares over any times, regular or not; the winner has the least squared residuals in the units of the
values. Fewer than four values give their mean, and an exponential needs values above 0. Extrapolation is
bounded, since a curve through a few values soon leaves all reason; `Regression.paper()` leaves it free.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadForecast
from penstock.forecast.forecaster import Column, Flags, Floats, Forecaster, Integers, Method

__all__ = ["LEAST_POINTS", "Curves", "Regression", "RegressionForecaster", "fit_curves"]

LEAST_POINTS = 4
"""Fewer values say nothing of a curve."""

_LINE, _LOGARITHM, _EXPONENTIAL = range(3)
_BLOCK = 1024  # streams that are fitted together, so that their values stay in the cache


@dataclass(frozen=True)
class Curves:
    """A curve for each stream: a + b t, a + b ln t or exp(a + b t), with t = 1 at its first value."""

    kind: NDArray[np.int8]
    """0 for a line, 1 for a logarithm, 2 for an exponential."""
    a: Floats
    b: Floats
    first: Floats
    """Times of the first and of the last value."""
    last: Floats
    top: Floats
    """The greatest value."""

    def at(self, times: Floats, reach: float = np.inf, most: float = np.inf) -> Floats:
        """Values at times by streams (or times by 1), never below 0.

        A time further from the last value than `reach` times all that was seen counts as this far, and
        no value is above `most` times the greatest.
        """
        if np.isfinite(reach):
            times = np.minimum(times, self.last + reach * (self.last - self.first))
        t = np.maximum(times - self.first + 1, 1.0)
        logarithms, exponentials = (np.flatnonzero(self.kind == kind) for kind in (_LOGARITHM, _EXPONENTIAL))
        t[:, logarithms] = np.log(t[:, logarithms])
        found: Floats = self.a + self.b * t
        # e^700 is near the end of doubles.
        found[:, exponentials] = np.exp(np.minimum(found[:, exponentials], 700.0))
        return np.clip(found, 0.0, most * self.top if np.isfinite(most) else np.inf)


def fit_curves(times: Floats, values: Floats) -> Curves:
    """The best curve through each column of values; NaN is a gap.

    >>> times = np.arange(5.0)[:, None]
    >>> fit_curves(times, 3 + 2 * times).at(np.array([[10.0]])).round(6).tolist()
    [[23.0]]
    >>> fit_curves(times, 3 * 2**times).at(np.array([[6.0]])).round(6).tolist()
    [[192.0]]
    """
    known = ~np.isnan(values)
    y = values
    if known.all():
        # Without gaps one column stands for all, and with common times everything of time is one column.
        known = known[:, :1]
    else:
        y = np.where(known, values, 1.0)
    t, first, last = _counted(times, known)
    log_t = np.log(t)
    counts = known.astype(np.float64)
    positive = (y > 0).all(axis=0)
    log_y = np.log(np.where(positive, y, 1.0))
    kind = np.zeros(values.shape[1], np.int8)
    a, b = _line(t, y, counts)
    scale = (y * y).sum(axis=0)
    least = _squares(a + b * t - y, counts)
    for other, u, v in ((_LOGARITHM, log_t, y), (_EXPONENTIAL, t, log_y)):
        c, d = _line(u, v, counts)
        curve = c + d * u
        if other == _EXPONENTIAL:
            curve = np.exp(np.minimum(curve, 350.0, out=curve), out=curve)
        residual = _squares(curve - y, counts)
        # A curve wins by more than rounding, or a line would be called a curve on some processors.
        wins = (residual < least * (1 - 1e-6) - 1e-12 * scale) & (positive | (other != _EXPONENTIAL))
        kind[wins], least = other, np.where(wins, residual, least)
        a, b = np.where(wins, c, a), np.where(wins, d, b)
    size = values.shape[1]
    points, first, last = (np.broadcast_to(each, size) for each in (counts.sum(axis=0), first, last))
    few = points < LEAST_POINTS
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (counts * y).sum(axis=0) / points  # NaN without values
    kind[few] = _LINE
    top = (counts * y).max(axis=0)
    return Curves(kind, np.where(few, mean, a), np.where(few, 0.0, b), first, last, top)


def _counted(times: Floats, known: Flags) -> tuple[Floats, Floats, Floats]:
    """Times from 1 at each stream's first value, 1 in gaps; the first and the last time."""
    some = known.any(axis=0)
    first = np.where(some, np.where(known, times, np.inf).min(axis=0), 0.0)
    last = np.where(some, np.where(known, times, -np.inf).max(axis=0), 0.0)
    return np.where(known, times - first + 1, 1.0), first, last


def _line(u: Floats, v: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Least squares for v = a + b u, column by column; `counts` is 1 for a value and 0 for a gap."""
    points = np.maximum(counts.sum(axis=0), 1)
    mean_u, mean_v = (counts * u).sum(axis=0) / points, (counts * v).sum(axis=0) / points
    du = counts * (u - mean_u)
    width = (du * du).sum(axis=0)
    b = (du * (v - mean_v)).sum(axis=0) / np.where(width > 0, width, 1.0)
    return mean_v - b * mean_u, b


def _squares(errors: Floats, counts: Floats) -> Floats:
    errors *= errors
    errors *= counts
    total: Floats = errors.sum(axis=0)
    return total


@dataclass(frozen=True)
class Regression(Method):
    """Curves through the last `window` values of a stream, over the times at which they were observed.

    >>> rates = Regression().start(1)
    >>> for time in (0.0, 1.5, 2.0, 4.0):
    ...     rates.observe([10 + 4 * time], time)
    >>> rates.predict(2).round(6).tolist()
    [[30.0, 34.0]]
    """

    window: int = 12
    reach: float = 1.0
    """How far a curve goes on, in lengths of what was seen; then it stays as it is."""
    most: float = 2.0
    """How far it goes up, in terms of the greatest value seen."""

    def __post_init__(self) -> None:
        if self.window < LEAST_POINTS:
            raise BadForecast(f"window={self.window}; give a number of values from {LEAST_POINTS}")
        if not (self.reach > 0 and self.most >= 1):
            raise BadForecast(f"reach={self.reach}, most={self.most}; give a reach above 0 and most from 1")

    @classmethod
    def paper(cls, window: int = 12) -> Self:
        """As in [001], without bounds."""
        return cls(window=window, reach=np.inf, most=np.inf)

    def start(self, streams: int) -> "RegressionForecaster":
        """Without values yet."""
        return RegressionForecaster(self, streams)


class RegressionForecaster(Forecaster):
    """The last values of each stream with their times, and the curve through them."""

    whole = False

    times: Floats
    values: Floats
    seen: Integers
    kind: NDArray[np.int8]
    a: Floats
    b: Floats
    first: Floats
    last: Floats
    top: Floats

    def __init__(self, regression: Regression, streams: int) -> None:
        self.regression = regression
        columns = (
            Column("times", np.nan, regression.window),
            Column("values", np.nan, regression.window),
            Column("seen", 0, dtype=np.int64),
            Column("kind", 0, dtype=np.int8),
            Column("a", np.nan),
            *(Column(name) for name in ("b", "first", "last", "top")),
        )
        super().__init__(regression, streams, columns)

    def learn(self, values: Floats, at: float) -> None:
        """Overwrite the oldest value of each stream that has a new one, and fit those again."""
        known = np.flatnonzero(~np.isnan(values))
        slots = self.seen[known] % self.regression.window
        self.times[slots, known], self.values[slots, known] = at, values[known]
        self.seen[known] += 1
        for start in range(0, known.size, _BLOCK):
            block = known[start : start + _BLOCK]
            times = self.times[:, block]
            if (times == times[:, :1]).all():
                times = times[:, :1]
            curves = fit_curves(times, self.values[:, block])
            for name in ("kind", "a", "b", "first", "last", "top"):
                getattr(self, name)[block] = getattr(curves, name)

    def means(self, leads: Integers) -> Floats:
        """On along the curve."""
        curves = Curves(self.kind, self.a, self.b, self.first, self.last, self.top)
        times = (self.at or 0.0) + leads[:, None].astype(np.float64)
        return curves.at(times, self.regression.reach, self.regression.most)
