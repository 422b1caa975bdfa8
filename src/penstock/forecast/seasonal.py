"""Holt-Winters with additive seasons and a damped trend: rates that repeat themselves after some periods.

The season's length is given, or each stream finds its own: a fading sum of products for each lag makes the
autocorrelation known without a look back, and the shortest lag with a clear peak is the season. A stream
without one is forecast by level and damped trend alone. Time and memory are linear in the longest season:
about 20 bytes a stream and period of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadForecast
from penstock.forecast.forecaster import Column, Floats, Forecaster, Integers, Method, fading

__all__ = ["Seasonal", "SeasonalForecaster"]

_CLEAR = 0.4  # the least autocorrelation of a season,
_SIGMAS = 4.0  # and how many deviations it has to be above that of noise
_DIP = 0.2  # and how far it has to fall at a shorter lag: a slow drift correlates at every lag


@dataclass(frozen=True)
class Seasonal(Method):
    """`period` in periods of observation, or None to find each stream's own up to `longest`.

    >>> rates = Seasonal(period=2).start(1)
    >>> for at in range(8):
    ...     rates.observe([10.0 if at % 2 else 30.0], at)
    >>> rates.predict(3).round(3).tolist()
    [[30.0, 10.0, 30.0]]
    """

    period: int | None = None
    longest: int = 48
    alpha: float = 0.3
    gamma: float = 0.1
    delta: float = 0.3
    """Weights of the newest value in level, trend and season."""
    damping: float = 0.9
    """What a trend keeps of itself each period; 1 for a trend without end."""
    refit: int = 4
    """Observations between two looks for a season."""

    def __post_init__(self) -> None:
        if min(self.length, self.refit) < 1 or (self.period is None and self.longest < 3):
            raise BadForecast(
                f"period={self.period}, longest={self.longest}, refit={self.refit}; "
                "give a period and a refit from 1 and a longest from 3"
            )
        if not all(0 <= each <= 1 for each in (self.alpha, self.gamma, self.delta, self.damping)):
            raise BadForecast("alpha, gamma, delta and damping are numbers from 0 to 1")

    @property
    def length(self) -> int:
        """The longest season that there can be."""
        return self.longest if self.period is None else self.period

    def start(self, streams: int) -> "SeasonalForecaster":
        """Without values and seasons yet."""
        return SeasonalForecaster(self, streams)


class SeasonalForecaster(Forecaster):
    """Level, trend and season of each stream; two longest seasons of history; products for each lag."""

    level: Floats
    trend: Floats
    season: Floats
    period: Integers
    history: NDArray[np.float32]
    products: NDArray[np.float32]
    mean: Floats
    slope: Floats
    seen: Integers

    def __init__(self, seasonal: Seasonal, streams: int) -> None:
        self.seasonal = seasonal
        self.kept = 2 * seasonal.length
        lags = seasonal.length + 1 if seasonal.period is None else 0
        columns = (
            Column("level", np.nan),
            Column("trend"),
            Column("season", 0.0, seasonal.length),
            Column("period", 0, dtype=np.int64),
            Column("history", np.nan, self.kept, np.float32),
            Column("products", 0.0, lags, np.float32),
            Column("mean"),
            Column("slope"),
            Column("seen", 0, dtype=np.int64),
        )
        super().__init__(seasonal, streams, columns, memory=self.kept)

    def learn(self, values: Floats, at: float) -> None:
        """Correct level, trend and season by the error of the last forecast; in a gap there is none."""
        period = int(at)
        known = ~np.isnan(values)
        first = known & (self.seen == 0)
        self._correct(np.where(known & ~first, values, np.nan), period)
        self.level[first] = values[first]
        if self.seasonal.period is None:
            self._correlate(values, period)
        self.history[period % self.kept] = values
        self.seen += known
        if self.seasonal.period is None:
            self._find(np.flatnonzero(known & (self.seen % self.seasonal.refit == 0)), period)
        else:
            length = self.seasonal.period
            # One season gives a first shape, two tell it from a trend.
            due = known & ((self.seen == length) | (self.seen == 2 * length))
            self._seed(np.flatnonzero(due), length, period)

    def means(self, leads: Integers) -> Floats:
        """Level, damped trend and season."""
        trends = np.cumsum(self.seasonal.damping ** np.arange(1, leads.max() + 1))
        found: Floats = self.level + trends[leads - 1][:, None] * self.trend
        each, last = np.arange(self.streams), int(self.at or 0)
        for row, lead in enumerate(leads):
            found[row] += self.season[(last + int(lead)) % np.maximum(self.period, 1), each]
        return found

    def _correct(self, values: Floats, at: int) -> None:
        own = self.seasonal
        each, slots = np.arange(self.streams), at % np.maximum(self.period, 1)
        self.trend *= own.damping
        self.level += self.trend
        errors = values - self.level - self.season[slots, each]
        errors[np.isnan(errors)] = 0.0
        self.level += own.alpha * errors
        self.trend += own.gamma * own.alpha * errors
        self.season[slots, each] += np.where(self.period > 0, own.delta * (1 - own.alpha) * errors, 0.0)

    def _correlate(self, values: Floats, at: int) -> None:
        """Add each stream's product with its own past, lag by lag, both as distances from a slow line."""
        known = ~np.isnan(values)
        pace = np.maximum(2 / (self.seen + 2.0), 4 / self.kept)
        self.mean = np.where(self.seen > 0, self.mean + self.slope, np.where(known, values, 0.0))
        apart = np.where(known, values - self.mean, 0.0)
        self.mean += pace * apart
        self.slope += pace * pace / 4 * apart
        apart = np.where(known, values - self.mean, 0.0).astype(np.float32)
        line, slope = self.mean.astype(np.float32), self.slope.astype(np.float32)
        fade = np.where(known, fading("history", self.kept), 1.0).astype(np.float32)
        self.products *= fade
        self.products[0] += apart * apart
        for lag in range(1, len(self.products)):
            line -= slope
            product = (self.history[(at - lag) % self.kept] - line) * apart
            np.add(self.products[lag], product, out=self.products[lag], where=~np.isnan(product))

    def _find(self, due: Integers, at: int) -> None:
        """Give streams the season that their autocorrelation shows, or none."""
        if not due.size:
            return
        power = self.products[0, due]
        shares = self.products[:, due] / np.where(power > 0, power, 1)
        inner, lags = shares[2:-1], np.arange(2, len(shares) - 1)[:, None]
        dips = np.minimum.accumulate(shares[1:-2], axis=0)
        peaks = (inner >= shares[1:-2]) & (inner > shares[3:]) & (inner > dips + _DIP)
        seen = np.minimum(self.seen[due], self.kept)
        needed = np.maximum(_CLEAR, _SIGMAS / np.sqrt(seen))
        clear = np.where(peaks & (inner >= needed) & (2 * lags <= seen), inner, 0)
        best = clear.max(axis=0)
        found = np.where(best > 0, (clear >= 0.9 * best).argmax(axis=0) + 2, 0)
        present = self.period[due]
        held = np.where(present > 0, shares[present, np.arange(due.size)], 0)
        # A season is kept until another one is clearly better, it fades, or it is several of a shorter one.
        several = (found > 0) & (present % np.maximum(found, 1) == 0)
        change = (found != present) & (several | (best > held + 0.1) | (held < _CLEAR / 2))
        lost = due[change & (found == 0)]
        self.period[lost], self.season[:, lost] = 0, 0.0
        for length in np.unique(found[change & (found > 0)]):
            self._seed(due[change & (found == length)], int(length), at)

    def _seed(self, streams: Integers, length: int, at: int) -> None:
        """Start a season of this length from the means of the kept history."""
        if not streams.size:
            return
        rounds = self.kept // length
        back = np.arange(rounds * length)
        past = self.history[(at - back) % self.kept][:, streams].astype(np.float64)
        rounded = past.reshape(rounds, length, streams.size)
        levels = _mean(rounded, axis=1)  # of each round, the newest first
        there = ~np.isnan(levels).any(axis=0)
        slope = np.where(there, (levels[0] - levels[-1]) / max((rounds - 1) * length, 1), 0.0)
        rounded = rounded + slope * back.reshape(rounds, length, 1)
        shape = _mean(rounded, axis=0)
        middle = _mean(shape, axis=0)
        self.season[:, streams] = 0.0
        phases = (at - np.arange(length)) % length
        self.season[phases[:, None], streams] = np.where(np.isnan(shape), 0.0, shape - middle)
        # Without the slope every round has the level of the last period.
        self.level[streams], self.trend[streams] = middle, slope
        self.period[streams] = length
        self.doubt(streams)


def _mean(values: Floats, axis: int) -> Floats:
    """The mean of those that are known."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
