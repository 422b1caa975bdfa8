"""Holt's linear trend with parameters that fit each stream ([000] §2.3): L + k·T, k periods ahead.

L = a X + (1 - a)(L + T) and T = c ΔL + (1 - c) T, from L = X and T = 0 at the first value, with a and c for
alpha and gamma. Each stream follows every point of a grid of both and keeps the fading sum of its squared
one-step errors, so that the best point is known without a look back. Time and memory are linear in grid
points: 72 numbers a stream for 24 points.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from penstock.errors import BadForecast
from penstock.forecast.forecaster import Column, Floats, Forecaster, Integers, Method, fading

__all__ = ["Holt", "HoltForecaster"]


@dataclass(frozen=True)
class Holt(Method):
    """Two grids of one number each make alpha and gamma fixed.

    >>> rates = Holt(alphas=(0.5,), gammas=(0.5,)).start(1)
    >>> rates.observe([10.0], 0)
    >>> rates.observe([14.0], 1)  # L = 12, T = 1
    >>> rates.predict(3).tolist()
    [[13.0, 14.0, 15.0]]
    """

    alphas: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
    gammas: tuple[float, ...] = (0.0, 0.05, 0.15, 0.4)
    history: int = 60
    """Observations after which an error counts 1/e in the choice of alpha and gamma."""
    refit: int = 5
    """Observations between two choices."""
    gap: int = 8
    """Periods without data after which a stream's trend is forgotten and its next value is a first one."""

    def __post_init__(self) -> None:
        for name, given in (("alphas", self.alphas), ("gammas", self.gammas)):
            if not given or not all(0 <= each <= 1 for each in given):
                raise BadForecast(f"{name}={given}; give numbers from 0 to 1")
        if self.refit < 1 or self.gap < 1:
            raise BadForecast(f"refit={self.refit}, gap={self.gap}; give numbers of periods from 1")
        fading("history", self.history)

    @property
    def grid(self) -> list[tuple[float, float]]:
        """Every alpha with every gamma."""
        return list(product(self.alphas, self.gammas))

    def start(self, streams: int) -> "HoltForecaster":
        """Without values yet, and with the middle of the grid."""
        return HoltForecaster(self, streams)


class HoltForecaster(Forecaster):
    """Level, trend and error of each grid point; the point in use."""

    level: Floats
    trend: Floats
    error: Floats
    chosen: Integers
    seen: Integers
    missed: Integers

    def __init__(self, holt: Holt, streams: int) -> None:
        self.holt = holt
        size = len(holt.grid)
        middle = len(holt.alphas) // 2 * len(holt.gammas) + len(holt.gammas) // 2
        columns = (
            Column("level", np.nan, size),
            Column("trend", 0.0, size),
            Column("error", 0.0, size),
            Column("chosen", middle, dtype=np.int64),
            Column("seen", 0, dtype=np.int64),
            Column("missed", 0, dtype=np.int64),
        )
        super().__init__(holt, streams, columns, memory=holt.gap)

    def parameters(self) -> tuple[Floats, Floats]:
        """Alpha and gamma of each stream."""
        alphas, gammas = np.array(self.holt.grid).T
        return alphas[self.chosen], gammas[self.chosen]

    def learn(self, values: Floats, _at: float) -> None:
        """One step of every grid point; in a gap the level goes on with the trend."""
        known = ~np.isnan(values)
        first = known & ((self.seen == 0) | (self.missed >= self.holt.gap))
        correcting = known & ~first
        fade = np.where(correcting, fading("history", self.holt.history), 1.0)
        for point, (alpha, gamma) in enumerate(self.holt.grid):
            level, trend = self.level[point], self.trend[point]
            level += trend
            errors = np.where(correcting, values - level, 0.0)
            # With e = X - (L + T) the equations read L + T + a e and T + c a e: without e nothing bends.
            level += alpha * errors
            trend += gamma * alpha * errors
            self.error[point] *= fade
            self.error[point] += errors * errors
        self.level[:, first] = values[first]
        self.trend[:, first] = 0.0
        self.missed = np.where(known, 0, self.missed + 1)
        self.trend[:, self.missed == self.holt.gap] = 0.0
        self.seen += known
        self._choose(np.flatnonzero(known & (self.seen % self.holt.refit == 0)))

    def means(self, leads: Integers) -> Floats:
        """A line."""
        each = np.arange(self.streams)
        level, trend = self.level[self.chosen, each], self.trend[self.chosen, each]
        return level + leads[:, None] * trend

    def _choose(self, due: Integers) -> None:
        if due.size:
            self.chosen[due] = self.error[:, due].argmin(axis=0)
