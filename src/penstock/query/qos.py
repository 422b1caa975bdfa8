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
    """What is asked of results: how old they may be, and how far out of order.

    `latency` is the most from the arrival of the last tuple to the result. The delay of the streams comes on
    top, since the query itself asks to wait for it. The run takes as many tuples together as the bound
    allows, which costs the least; `EpochProgress.latency` says how many results kept to it.

    With `disorder`, results are given as channels finish, before their epoch is whole, with at most so many
    between two that are out of order: 0 is in order, `math.inf` as they come.

    >>> QoS(latency="5 seconds", disorder=10)
    QoS(latency='5 seconds', disorder=10)
    >>> QoS(latency="0 seconds")
    Traceback (most recent call last):
        ...
    penstock.errors.BadOption: latency='0 seconds'; give from 100 milliseconds to 1 day
    """

    latency: str | timedelta | None = None
    disorder: float | None = None

    def __post_init__(self) -> None:
        """Check what is given."""
        if self.latency is None and self.disorder is None:
            raise BadOption("QoS() asks for nothing; give a latency, such as '5 seconds', or a disorder")
        if self.latency is not None:
            duration("latency", self.latency, LEAST_LATENCY, _MOST_LATENCY)
        if self.disorder is not None:
            most_disorder(self.disorder)

    @property
    def bound(self) -> int | None:
        """The bound of the latency in microseconds, if there is one."""
        return None if self.latency is None else microseconds(self.latency)

    def __repr__(self) -> str:
        given = [] if self.bound is None else [f"latency={words(self.bound)!r}"]
        given += [] if self.disorder is None else [f"disorder={self.disorder}"]
        return f"QoS({', '.join(given)})"


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
