"""What the directory of gates and the runs that read from them tell each other.

A run tells how far behind it is, what a row costs it and how long results may take. The directory tells the
rates that it expects: it sees rows before a run does, and knows what each stream has declared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Expected", "QueryLoad"]

_LEVEL = 1.645
"""Standard errors up to the ends of an interval that holds nine rates of ten."""


@dataclass(frozen=True)
class QueryLoad:
    """A run after an epoch: rows that it has not taken, seconds of an epoch for a row, and its bound.

    >>> QueryLoad(lag=3000, row_seconds=0.001, bound=1.5).behind
    3.0
    """

    lag: int
    row_seconds: float
    bound: float

    @property
    def behind(self) -> float:
        """The seconds that it takes the run to take all rows that wait."""
        return self.lag * self.row_seconds


@dataclass(frozen=True)
class Expected:
    """Rows a second of all streams of an inlet in the periods after `at`, and an interval for nine of ten.

    `streams` has the rates of each stream, if they were asked for.

    >>> given = Expected(100.0, 10.0, (50.0, 70.0, 90.0), (40.0, 50.0, 60.0), (60.0, 90.0, 120.0))
    >>> given.rate(115.0), given.rate(500.0), round(given.rate(125.0, errors=0.8), 1)
    (70.0, 90.0, 104.6)
    """

    at: float
    period: float
    rates: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    streams: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def rate(self, at: float, errors: float = 0.0) -> float:
        """The rate at an instant, so many standard errors above the mean; far off, the last one."""
        place = min(max(int((at - self.at) / self.period), 0), len(self.rates) - 1)
        return self.rates[place] + errors / _LEVEL * (self.upper[place] - self.rates[place])

    def to_json(self) -> dict[str, Any]:
        """Plain values, without single streams."""
        return {
            "at": self.at,
            "period": self.period,
            "rates": list(self.rates),
            "lower": list(self.lower),
            "upper": list(self.upper),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Expected":
        """What `to_json` gave."""
        rates, lower, upper = (tuple(map(float, value[name])) for name in ("rates", "lower", "upper"))
        streams = {name: tuple(each) for name, each in (value.get("streams") or {}).items()}
        return cls(float(value["at"]), float(value["period"]), rates, lower, upper, streams)

    @classmethod
    def of(
        cls, at: float, period: float, streams: Mapping[str, tuple[np.ndarray, float]], *, single: bool
    ) -> "Expected":
        """The sums of rates of streams period by period, each with the standard error of a rate.

        Errors of streams are taken to be independent.
        """
        paths = np.array([path for path, _ in streams.values()], np.float64)
        mean = paths.sum(axis=0)
        error = _LEVEL * float(np.sqrt(sum(each**2 for _, each in streams.values())))
        lower, upper = np.maximum(mean - error, 0.0), mean + error
        rates, lows, highs = (
            tuple(round(each, 3) for each in some.tolist()) for some in (mean, lower, upper)
        )
        each = {name: tuple(np.round(path, 3).tolist()) for name, (path, _) in streams.items()}
        return cls(at, period, rates, lows, highs, each if single else {})
