"""Paired measurements: two ways in turn, and the ratio of their pairs with an interval.

What the machine does to a run, it does to both runs of a pair, so that ratios of pairs scatter less than the
runs. Every pair counts. A ratio is the geometric mean of the pairs' ratios, so that swapping the two ways
gives its reciprocal. Intervals are those of Student's t at 95 %, for ratios over their logarithms.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TypeVar

__all__ = ["Interval", "in_turn", "mean_of", "ratio_of"]

Way = TypeVar("Way")

# The 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Interval:
    """A mean of so many measurements, and the two ends of its 95 % interval."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


def mean_of(values: Sequence[float]) -> Interval:
    """The arithmetic mean with its interval; of more than 31 values the interval is a little too wide.

    >>> print(mean_of([1.0, 2.0, 3.0]))
    2.000 (-0.484 to 4.484)
    """
    if len(values) < 2:
        raise ValueError(f"{len(values)} measurements have no interval; take two or more")
    mean, degrees = fmean(values), len(values) - 1
    half = _T[min(degrees, len(_T)) - 1] * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half, len(values))


def ratio_of(over: Sequence[float], under: Sequence[float]) -> Interval:
    """The geometric mean of the ratios of pairs, with its interval.

    >>> print(ratio_of([2.0, 2.1, 8.0], [1.0, 1.0, 4.0]))
    2.033 (1.895 to 2.180)
    """
    found = mean_of([math.log(one / other) for one, other in zip(over, under, strict=True)])
    return Interval(math.exp(found.mean), math.exp(found.low), math.exp(found.high), found.count)


def in_turn(pairs: int, one: Way, other: Way) -> Iterator[tuple[Way, Way]]:
    """The order of the two ways in each pair: whichever came first comes second in the next.

    >>> list(in_turn(3, "on", "off"))
    [('on', 'off'), ('off', 'on'), ('on', 'off')]
    """
    for number in range(pairs):
        yield (other, one) if number % 2 else (one, other)
