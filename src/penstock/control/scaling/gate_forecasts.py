"""What gates forecast of the rates of sources, as a scaling policy uses it and tells of it."""

from statistics import NormalDist

from penstock.control.scaling.load import Load, OperatorLoad
from penstock.shown import shown_seconds

__all__ = ["gates_words", "with_gates"]

_MORE = 1.1
"""A forecast is told that is so many times what comes now."""


def with_gates(
    seen: Load, operator: OperatorLoad, ahead: list[float], horizon: float, level: float
) -> list[float]:
    """The rates that are forecast for the next ticks, or those that gates forecast where they are higher.

    The probability that a rate stays below is `level`. Beyond the horizon what comes can still be asked for.
    """
    given = operator.expected
    if given is None:
        return ahead
    errors = NormalDist().inv_cdf(min(level, 0.999))
    times = [(step + 0.5) * seen.seconds for step in range(len(ahead))]
    return [
        max(rate, given.rate(seen.at + min(time, horizon), errors))
        for time, rate in zip(times, ahead, strict=True)
    ]


def gates_words(seen: Load, seconds: float) -> str:
    """What gates expect in so many seconds, in words; empty if it is no more than comes now."""
    given = [(each, each.expected) for each in seen.operators if each.expected is not None]
    now = sum(each.received for each, _ in given) / seen.seconds
    later = sum(expected.rate(seen.at + seconds) for _, expected in given)
    if later <= _MORE * now:
        return ""
    return f"; gates forecast {later:,.0f} rows/s in {shown_seconds(seconds)}, {now:,.0f} come now"
