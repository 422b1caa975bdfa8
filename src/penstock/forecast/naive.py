"""The mean of the last values: what a rate was, it will be.

With a window of 1 it is the last value, the measure that forecasts have to beat, and the rate that the
simpler strategies of admission go by ([000] §6.2).
"""

from dataclasses import dataclass

import numpy as np

from penstock.errors import BadForecast
from penstock.forecast.forecaster import Column, Floats, Forecaster, Integers, Method

__all__ = ["Naive", "NaiveForecaster"]


@dataclass(frozen=True)
class Naive(Method):
    """The mean of the last `window` values of a stream, however long ago; gaps do not count.

    >>> rates = Naive(window=2).start(1)
    >>> for period, value in enumerate([4.0, 6.0, np.nan, 10.0]):
    ...     rates.observe([value], period)
    >>> rates.predict(3).tolist()
    [[8.0, 8.0, 8.0]]
    """

    window: int = 1

    def __post_init__(self) -> None:
        if self.window < 1:
            raise BadForecast(f"window={self.window}; give a number of values from 1")

    def start(self, streams: int) -> "NaiveForecaster":
        """Without values yet."""
        return NaiveForecaster(self, streams)


class NaiveForecaster(Forecaster):
    """The last values of each stream, a ring of `window`."""

    last: Floats
    seen: Integers

    def __init__(self, naive: Naive, streams: int) -> None:
        self.naive = naive
        columns = (Column("last", np.nan, naive.window), Column("seen", 0, dtype=np.int64))
        super().__init__(naive, streams, columns)

    def learn(self, values: Floats, _at: float) -> None:
        """Overwrite the oldest value."""
        known = np.flatnonzero(~np.isnan(values))
        self.last[self.seen[known] % self.naive.window, known] = values[known]
        self.seen[known] += 1

    def means(self, leads: Integers) -> Floats:
        """The same at every lead."""
        kept = np.minimum(self.seen, self.naive.window)
        with np.errstate(invalid="ignore"):
            mean = np.where(kept > 0, np.nansum(self.last, axis=0) / kept, np.nan)
        return np.broadcast_to(mean, (len(leads), self.streams)).copy()
