"""Durations as whole microseconds, the resolution of Spark's and Arrow's timestamps."""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

from penstock.errors import BadDuration

__all__ = ["microseconds", "signed_microseconds", "words"]

_UNITS: Final = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_SPELLINGS: Final = {name: unit for unit in _UNITS for name in (unit, f"{unit}s")} | {
    "w": "week",
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "hrs": "hour",
    "m": "minute",
    "min": "minute",
    "mins": "minute",
    "s": "second",
    "sec": "second",
    "secs": "second",
    "ms": "millisecond",
    "us": "microsecond",
    "µs": "microsecond",
}
_CALENDAR: Final = {"month", "months", "mon", "quarter", "quarters", "year", "years", "y"}
_PART: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*,?")
_EXAMPLES: Final = "write a number and a unit, such as '5 seconds' or '1 hour 30 minutes'"


def microseconds(duration: str | timedelta) -> int:
    """The length of a non-negative duration, in microseconds.

    >>> microseconds("1h 30m") == microseconds("INTERVAL 90 MINUTES")
    True
    """
    length = signed_microseconds(duration)
    if length < 0:
        raise BadDuration(f"duration {duration!r} is negative; give zero or more")
    return length


def signed_microseconds(duration: str | timedelta) -> int:
    """The length of a duration, which may have a leading minus, in microseconds.

    >>> signed_microseconds("-250 milliseconds")
    -250000
    """
    if isinstance(duration, timedelta):
        return duration // timedelta(microseconds=1)
    if not isinstance(duration, str):
        raise BadDuration(f"duration {duration!r} is {type(duration).__name__}; {_EXAMPLES}, or a timedelta")
    text = re.sub(r"^interval\b", "", duration.strip().lower()).replace("'", " ").strip()
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    length = _sum_of_parts(text, duration)
    if length.denominator != 1:
        raise BadDuration(f"duration {duration!r} is not a whole number of microseconds; round it")
    return sign * length.numerator


def words(length: int) -> str:
    """A length in microseconds in readable form, in the largest unit that divides it.

    >>> words(60_000_000), words(90_000_000)
    ('1 minute', '90 seconds')
    """
    if length == 0:
        return "0 seconds"
    unit = next(unit for unit, size in _UNITS.items() if unit != "week" and length % size == 0)
    count = length // _UNITS[unit]
    return f"{count} {unit}" if abs(count) == 1 else f"{count} {unit}s"


def _sum_of_parts(text: str, given: str) -> Fraction:
    total, position = Fraction(0), 0
    while match := _PART.match(text, position):
        total += Fraction(match[1]) * _unit(match[2], given)
        position = match.end()
    if position == 0 or text[position:].strip():
        raise BadDuration(f"cannot read the duration {given!r}; {_EXAMPLES}")
    return total


def _unit(spelling: str, given: str) -> int:
    if spelling in _CALENDAR:
        raise BadDuration(f"duration {given!r}: a {spelling} has no fixed length; give days or hours")
    if spelling not in _SPELLINGS:
        raise BadDuration(f"duration {given!r}: no unit {spelling!r}; the units are {', '.join(_UNITS)}")
    return _UNITS[_SPELLINGS[spelling]]
