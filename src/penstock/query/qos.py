"""QoS: what a user asks of the results of a run ([000] §3.1)."""

import math
from dataclasses import dataclass
from datetime import timedelta

from penstock.checks import short, whole_number
from penstock.errors import BadDuration, BadOption
from penstock.expressions.durations import microseconds, words

__all__ = ["LEAST_LATENCY", "QoS", "most_disorder"]

LEAST_LATENCY = 100_000
"""The least bound of a latency, in microseconds: an epoch takes longer than that anyway."""

_MOST_LATENCY = 86_400_000_000
_MOST_DISORDER = 1_000_000_000


@dataclass(frozen=True, kw_only=True, repr=False)
class QoS:
    """What is asked of results: the most seconds from the arrival of the last tuple to the result.

    The delay of the streams comes on top, since the query itself asks to wait for it. The run takes as many
    tuples together as the bound allows, which costs the least; `EpochProgress.latency` says how many results
    kept to it.

    >>> QoS(latency="5 seconds")
    QoS(latency='5 seconds')
    >>> QoS(latency="0 seconds")
    Traceback (most recent call last):
        ...
    penstock.errors.BadOption: latency='0 seconds'; give from 100 milliseconds to 1 day
    """

    latency: str | timedelta

    def __post_init__(self) -> None:
        """Check the bound."""
        duration("latency", self.latency, LEAST_LATENCY, _MOST_LATENCY)

    @property
    def bound(self) -> int:
        """The bound in microseconds."""
        return microseconds(self.latency)

    def __repr__(self) -> str:
        return f"QoS(latency={words(self.bound)!r})"


def most_disorder(given: object) -> int | None:
    """A checked bound of disorder; None if it is infinite.

    >>> most_disorder(10), most_disorder(math.inf)
    (10, None)
    """
    if given == math.inf:
        return None
    hint = ", or math.inf for results as they come"
    return whole_number("disorder", given, 0, _MOST_DISORDER, BadOption, hint=hint)


def duration(name: str, given: object, least: int, most: int) -> int:
    """A duration within its range, in microseconds."""
    wanted = f"give from {words(least)} to {words(most)}"
    if not isinstance(given, str | timedelta):
        raise BadOption(f"{name}={short(given)}; {wanted}, such as '5 seconds'")
    try:
        length = microseconds(given)
    except BadDuration as error:
        raise BadOption(f"{name}={short(given)}; {wanted}: {error}") from error
    if not least <= length <= most:
        raise BadOption(f"{name}={short(given)}; {wanted}")
    return length
