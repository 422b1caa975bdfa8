"""What is known of a stream's rate before it flows: the ten characteristics (000, section 2.4), all optional.

They describe a rate that swings between a low and a high level: its bounds, its rhythm, how it goes from one
level to the other (a jump or a trend, two of the ten), and its bursts.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from itertools import pairwise
from math import isfinite
from typing import Any, Self

from penstock.errors import BadMetadata

__all__ = ["Metadata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Rates in rows per second, times in seconds; None says that nothing is known.

    >>> Metadata(min_rate=10, max_rate=200, expected_rate=50, transition="jump").given()
    {'max_rate': 200, 'min_rate': 10, 'expected_rate': 50, 'transition': 'jump'}
    >>> Metadata(min_rate=10, max_rate=5)
    Traceback (most recent call last):
        ...
    penstock.errors.BadMetadata: min_rate=10 is above max_rate=5; give min <= expected <= max <= burst peak
    """

    max_rate: float | None = None
    """The highest rate without bursts."""
    min_rate: float | None = None
    """The lowest rate."""
    expected_rate: float | None = None
    """The mean rate."""
    period: float | None = None
    """After this time the rate repeats itself."""
    low_period: float | None = None
    """How long the rate stays low in each period."""
    high_period: float | None = None
    """How long it stays high in each period."""
    transition: str | None = None
    """From one level to the other: "jump" at once, "trend" step by step."""
    burst_share: float | None = None
    """The share of time that is spent in bursts, 0 to 1."""
    burst_peak: float | None = None
    """The rate in a burst."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and each.name != "transition":
                _check_number(each.name, value)
        if self.transition not in (None, "jump", "trend"):
            raise BadMetadata(f"transition={self.transition!r}; give 'jump', 'trend' or nothing")
        if self.burst_share is not None and self.burst_share > 1:
            raise BadMetadata(f"burst_share={self.burst_share}; give a share of time from 0 to 1")
        _check_order(self)
        _check_period(self)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The metadata in a message or a configuration file."""
        known = [each.name for each in fields(cls)]
        for name in given:
            if name not in known:
                near = get_close_matches(str(name), known, 1)
                hint = f"did you mean {near[0]!r}? They" if near else "they"
                raise BadMetadata(f"no characteristic {str(name)[:40]!r}; {hint} are: {', '.join(known)}")
        return cls(**given)

    def given(self) -> dict[str, Any]:
        """Those characteristics that are known."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value) or value < 0:
        raise BadMetadata(f"{name}={value!r}; give a number from 0")


def _check_order(stream: Metadata) -> None:
    names = ("min_rate", "expected_rate", "max_rate", "burst_peak")
    known = [(name, getattr(stream, name)) for name in names if getattr(stream, name) is not None]
    for (lower, low), (upper, high) in pairwise(known):
        if low > high:
            raise BadMetadata(
                f"{lower}={low} is above {upper}={high}; give min <= expected <= max <= burst peak"
            )


def _check_period(stream: Metadata) -> None:
    parts = (stream.low_period or 0) + (stream.high_period or 0)
    if stream.period is not None and (stream.period == 0 or parts > stream.period):
        raise BadMetadata(
            f"period={stream.period} with low_period={stream.low_period}, high_period={stream.high_period}; "
            "give a period above 0 that is at least as long as both"
        )
