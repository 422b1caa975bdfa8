"""Limits of what policies may change in a run: how often, how much, which stages and at what hours."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from penstock.checks import short, whole_number
from penstock.control.observation import Observation
from penstock.control.pace import Pace
from penstock.errors import BadLimits
from penstock.shown import shown_bytes, shown_seconds

__all__ = ["Budget", "Limits"]

_HOUR = 3600.0
_DAY = 24
_MOST_STAGE = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What holds decisions of policies back; the defaults hold back none.

    `least_interval` is in seconds, between two changes of the same stage. `most_bytes_an_hour` counts the
    state that moved in the last hour, of all stages. `excluded_stages` are never changed. `excluded_hours`
    are pairs of hours of the day in UTC, from the first up to the second, which may be on the next day.

    >>> Limits(excluded_hours=[(22, 6)]).hours_words(23.5 * 3600)
    'the hours from 22 to 6 UTC are excluded'
    """

    least_interval: float = 0.0
    most_bytes_an_hour: float | None = None
    excluded_stages: tuple[int, ...] = ()
    excluded_hours: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Check every limit and keep plain values."""
        self._set("least_interval", _number("least_interval", self.least_interval))
        if self.most_bytes_an_hour is not None:
            self._set("most_bytes_an_hour", _number("most_bytes_an_hour", self.most_bytes_an_hour))
        self._set("excluded_stages", _stages(self.excluded_stages))
        self._set("excluded_hours", _hours(self.excluded_hours))

    def hours_words(self, now: float) -> str:
        """Why nothing changes at this instant; empty if it may."""
        hour = now % (_DAY * _HOUR) / _HOUR
        for begin, end in self.excluded_hours:
            inside = begin <= hour < end if begin < end else hour >= begin or hour < end
            if inside:
                return f"the hours from {begin} to {end} UTC are excluded"
        return ""

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


@dataclass
class Budget:
    """What has been changed and moved under some limits, and so what they still allow.

    A decision that is carried out counts with the bytes that it expects to move until they have moved.
    """

    limits: Limits
    _moved: list[tuple[float, int]] = field(default_factory=list)
    _expected: dict[int, float] = field(default_factory=dict)
    _changed: dict[int, float] = field(default_factory=dict)

    def observe(self, seen: Observation) -> None:
        """Take in what an epoch moved."""
        for stage in seen.stages:
            if stage.moved is not None and stage.moved.bytes:
                self._moved.append((seen.committed, stage.moved.bytes))
                left = self._expected.get(stage.stage, 0.0) - stage.moved.bytes
                self._expected[stage.stage] = max(left, 0.0)
            if stage.moved is not None and not stage.moving:
                self._expected.pop(stage.stage, None)
        self._moved = [each for each in self._moved if each[0] > seen.committed - _HOUR]

    def why_not(self, decision: Any, now: float) -> str:
        """The limit that holds a decision back, in words; empty if none does."""
        limits = self.limits
        if isinstance(decision, Pace):
            return ""
        if decision.stage in limits.excluded_stages:
            return f"stage {decision.stage} is excluded"
        if words := limits.hours_words(now):
            return words
        since = now - self._changed.get(decision.stage, -math.inf)
        if since < limits.least_interval:
            return (
                f"the stage changed {shown_seconds(since)} ago, at least "
                f"{shown_seconds(limits.least_interval)} have to be in between"
            )
        if limits.most_bytes_an_hour is not None:
            return self._bytes_words(decision.numbers.get("bytes", 0.0), limits.most_bytes_an_hour, now)
        return ""

    def carry_out(self, decision: Any, now: float) -> None:
        """Count a decision that the next plan follows."""
        if isinstance(decision, Pace):
            return
        self._changed[decision.stage] = now
        if expected := decision.numbers.get("bytes", 0.0):
            self._expected[decision.stage] = expected

    def to_json(self) -> dict[str, Any]:
        """What has been changed and moved, as plain values."""
        return {
            "moved": [list(each) for each in self._moved],
            "expected": {str(stage): size for stage, size in self._expected.items()},
            "changed": {str(stage): then for stage, then in self._changed.items()},
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._moved = [(then, size) for then, size in value["moved"]]
        self._expected = {int(stage): size for stage, size in value["expected"].items()}
        self._changed = {int(stage): then for stage, then in value["changed"].items()}

    def _bytes_words(self, more: float, most: float, now: float) -> str:
        moved = sum(size for then, size in self._moved if then > now - _HOUR) + sum(self._expected.values())
        if moved + more <= most and (moved < most or not moved):
            return ""
        words = f"{shown_bytes(moved)} moved in the last hour"
        words += f", {shown_bytes(more)} more" if more else ""
        return f"{words}, limit {shown_bytes(most)}"


def _number(name: str, given: object) -> float:
    number = isinstance(given, Real) and not isinstance(given, bool)
    if not number or not math.isfinite(given) or given < 0:  # type: ignore[arg-type, operator]
        raise BadLimits(f"{name}={short(given)}; give a number of 0 or more")
    return float(given)  # type: ignore[arg-type]


def _stages(given: object) -> tuple[int, ...]:
    if not isinstance(given, list | tuple | set | frozenset | range):
        raise BadLimits(f"excluded_stages={short(given)}; give numbers of stages, such as [0, 2]")
    return tuple(sorted(whole_number("excluded_stages", each, 0, _MOST_STAGE, BadLimits) for each in given))


def _hours(given: object) -> tuple[tuple[int, int], ...]:
    wrong = BadLimits(
        f"excluded_hours={short(given)}; give pairs of different hours of the day in UTC, from 0 to 24, "
        "such as [(22, 6)]"
    )
    if not isinstance(given, list | tuple):
        raise wrong
    found = []
    for pair in given:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise wrong
        begin, end = (whole_number("excluded_hours", each, 0, _DAY, BadLimits) for each in pair)
        if begin == end:
            raise wrong
        found.append((begin, end))
    return tuple(found)
