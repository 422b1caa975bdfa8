"""How busy the city is at a minute of the day: a quiet night and two rush hours."""

import math

__all__ = ["activity", "rush"]

DAY = 24 * 60
MORNING, EVENING = 8 * 60, 17 * 60 + 30


def rush(minute_of_day: float) -> float:
    """How deep in a rush hour this minute is, from 0 to 1."""
    return max(_bell(minute_of_day, MORNING, 50), _bell(minute_of_day, EVENING, 70))


def activity(minute_of_day: float) -> float:
    """Mean reports per vehicle in this minute; about 0.1 at night, 0.9 at the height of a rush hour."""
    daylight = _bell(minute_of_day, 13 * 60, 300)
    return 0.1 + 0.35 * daylight + 0.55 * rush(minute_of_day)


def _bell(minute: float, peak: float, width: float) -> float:
    """A bell round the clock: 23:59 is one minute from 00:00."""
    distance = abs((minute - peak + DAY / 2) % DAY - DAY / 2)
    return math.exp(-0.5 * (distance / width) ** 2)
