"""The frame of every scaling policy: limits, quotas, cooldowns, stabilisation, measures that fail.

A policy says what it wishes for each pool (`wishes`); the frame rules what of that is wanted now. A wish that
is held back is told once, with the cause, and asked for again when it is still there later.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from penstock.checks import whole_number
from penstock.control.limits import Limits
from penstock.control.scale import MOST_UNITS, Scale
from penstock.control.scaling.load import Load
from penstock.errors import BadScaling
from penstock.shown import shown_seconds

__all__ = ["SCALING_LIMITS", "Scaler", "ScalingLimits", "Wish"]


@dataclass(frozen=True)
class Wish:
    """What a policy wants of a pool; `held` is its own diagnosis that more units would not help."""

    pool: str
    units: int
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    held: str = ""


@dataclass(frozen=True, kw_only=True)
class ScalingLimits:
    """What a policy may do; the defaults hold back nothing but a change during a change.

    A pool has `least` to `most` units, and all pools together at most `quota`. After a change, measures do
    not count for `stabilisation` seconds. A pool grows again `out_cooldown` seconds after it last grew, and
    shrinks `in_cooldown` seconds after its last change. In `excluded_hours` (UTC) and in `excluded` pools
    nothing changes. If measures fail for `fallback_after` seconds, a pool gets at least `fallback` units.
    """

    least: int = 1
    most: int = 1024
    quota: int | None = None
    out_cooldown: float = 0.0
    in_cooldown: float = 0.0
    stabilisation: float = 0.0
    excluded_hours: tuple[tuple[int, int], ...] = ()
    excluded: tuple[str, ...] = ()
    fallback: int | None = None
    fallback_after: float = 60.0

    def __post_init__(self) -> None:
        whole_number("least", self.least, 1, MOST_UNITS, BadScaling)
        whole_number("most", self.most, self.least, MOST_UNITS, BadScaling)
        for name in ("quota", "fallback"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1, MOST_UNITS, BadScaling)
        for name in ("out_cooldown", "in_cooldown", "stabilisation", "fallback_after"):
            if not 0 <= getattr(self, name) < math.inf:
                raise BadScaling(f"{name}={getattr(self, name)}; give a number of seconds from 0")
        Limits(excluded_hours=self.excluded_hours)

    def hours_words(self, now: float) -> str:
        """The excluded hours that `now` is in, in words."""
        return Limits(excluded_hours=self.excluded_hours).hours_words(now)


SCALING_LIMITS = tuple(each.name for each in fields(ScalingLimits) if each.name not in {"least", "most"})
"""The names of the limits beside the numbers of units."""


class Scaler(ABC):
    """A scaling policy: `learn` from ticks whose measures count, then `wishes`."""

    name: str

    def __init__(self, limits: ScalingLimits | None = None) -> None:
        self.limits = limits or ScalingLimits()
        self._seen: Load | None = None
        self._settled = True
        self._failing: float | None = None
        self._grown: dict[str, float] = {}
        self._changed: dict[str, float] = {}
        self._told: dict[str, str] = {}

    @abstractmethod
    def learn(self, seen: Load) -> None:
        """Take in a tick with usable measures."""

    @abstractmethod
    def wishes(self, seen: Load) -> Sequence[Wish]:
        """What the policy wants after the last tick, at most one wish a pool."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What the policy itself remembers, as plain values."""

    @abstractmethod
    def restore(self, value: Mapping[str, Any]) -> None:
        """Continue from what `state` gave."""

    def unsettled(self) -> None:
        """A change is going on: a policy that compares ticks may forget what it has."""
        return

    def observe(self, seen: Load) -> None:
        """Take in a tick."""
        self._seen = seen
        if seen.problem:
            self._failing = seen.at - seen.seconds if self._failing is None else self._failing
            return
        self._failing = None
        last = max(self._changed.values(), default=-math.inf)
        changing = any(each.changing or each.starting for each in seen.pools)
        if changing:
            # Stabilisation counts from when the units are there, not from when they were asked for.
            self._changed = {
                name: max(then, seen.at) if seen_changing(seen, name) else then
                for name, then in self._changed.items()
            }
        self._settled = not changing and seen.at - seen.seconds >= last + self.limits.stabilisation
        if not self._settled:
            self.unsettled()
        self.learn(seen)

    def decide(self, now: float) -> list[Scale]:
        """What should change now, and what is wished for and held back."""
        seen = self._seen
        if seen is None:
            return []
        if seen.problem:
            return self._fallen_back(seen, now)
        wanted = [self._bounded(seen, each) for each in self.wishes(seen)]
        ruled = [self._ruled(seen, each, now) for each in wanted if each is not None]
        return self._told_once([each for each in self._within_quota(seen, ruled) if each is not None], now)

    def to_json(self) -> dict[str, Any]:
        """All that it remembers, as plain values."""
        return {
            "name": self.name,
            "failing": self._failing,
            "grown": dict(self._grown),
            "changed": dict(self._changed),
            "told": dict(self._told),
            "own": self.state(),
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave; the state of another policy is refused."""
        if value["name"] != self.name:
            raise BadScaling(
                f"a state of policy {value['name']!r}; this is {self.name!r}: start without state"
            )
        self._failing = value["failing"]
        self._grown, self._changed = dict(value["grown"]), dict(value["changed"])
        self._told = dict(value["told"])
        self.restore(value["own"])

    @property
    def settled(self) -> bool:
        """Whether no change is going on and the last one is over."""
        return self._settled

    def _fallen_back(self, seen: Load, now: float) -> list[Scale]:
        own = self.limits
        since = now - (self._failing if self._failing is not None else now)
        if own.fallback is None or since < own.fallback_after:
            return []
        ruled = [
            Scale(
                each.name,
                own.fallback,
                each.present,
                f"measures have failed for {shown_seconds(since)} ({seen.problem}); the fallback is "
                f"{own.fallback} units",
            )
            for each in seen.pools
            if each.present < own.fallback and not each.changing
        ]
        return self._told_once(ruled, now)

    def _bounded(self, seen: Load, wish: Wish) -> Scale | None:
        own, present = self.limits, seen.pool(wish.pool).present
        units = min(max(wish.units, own.least), own.most)
        if units == present and wish.units == present and not wish.held:
            return None
        scale = Scale(wish.pool, units, present, wish.reason, wish.numbers, wish.held)
        if units == present and not wish.held:
            return replace(scale, units=wish.units, held=f"limits are {own.least} to {own.most} units")
        if units != wish.units:
            return replace(scale, reason=f"{wish.reason}; {wish.units} units, within limits {units}")
        return scale

    def _ruled(self, seen: Load, scale: Scale, now: float) -> Scale:
        if scale.held:
            return scale
        return replace(scale, held=self._why_not(seen, scale, now))

    def _why_not(self, seen: Load, scale: Scale, now: float) -> str:
        own, pool = self.limits, seen.pool(scale.pool)
        if scale.pool in own.excluded:
            return f"{scale.pool} is excluded"
        if words := own.hours_words(now):
            return words
        if pool.changing:
            return "a change is going on"
        out = scale.units > scale.before
        since = now - (self._grown if out else self._changed).get(scale.pool, -math.inf)
        rest = own.out_cooldown if out else own.in_cooldown
        if since < rest:
            which = "grew" if out else "changed"
            return f"it {which} {shown_seconds(since)} ago, {shown_seconds(rest)} have to be in between"
        return "" if self._settled or out else "the last change is not over"

    def _within_quota(self, seen: Load, ruled: list[Scale]) -> list[Scale]:
        """Grant units one by one to the pool that has the least of what it asks for, until none is left."""
        quota = self.limits.quota
        if quota is None:
            return ruled
        after = {each.name: each.present for each in seen.pools}
        after |= {each.pool: each.units for each in ruled if not each.held and each.units < each.before}
        free = quota - sum(after.values())
        outs = {each.pool: each for each in ruled if not each.held and each.units > each.before}
        if sum(each.units - each.before for each in outs.values()) <= free:
            return ruled
        granted = dict.fromkeys(outs, 0)
        for _ in range(max(free, 0)):
            open_ = [name for name, each in outs.items() if each.before + granted[name] < each.units]
            if not open_:
                break
            least = min(open_, key=lambda name: (after[name] + granted[name]) / outs[name].units)
            granted[least] += 1
        return [self._granted(each, granted, quota) for each in ruled]

    def _granted(self, scale: Scale, granted: Mapping[str, int], quota: int) -> Scale:
        if scale.pool not in granted or scale.held or scale.units <= scale.before:
            return scale
        more = granted[scale.pool]
        if not more:
            return replace(scale, held=f"the quota of {quota} units is used up")
        if scale.before + more == scale.units:
            return scale
        words = f"{scale.reason}; {scale.units} units, the quota of {quota} allows {scale.before + more}"
        return replace(scale, units=scale.before + more, reason=words)

    def _told_once(self, ruled: list[Scale], now: float) -> list[Scale]:
        found = []
        wished = {each.pool for each in ruled}
        self._told = {pool: cause for pool, cause in self._told.items() if pool in wished}
        for each in ruled:
            if each.held:
                # Without its figures: a wait that goes on is the same cause.
                cause = "".join(letter for letter in each.held if not letter.isdigit())
                if self._told.get(each.pool) == cause:
                    continue
                self._told[each.pool] = cause
            else:
                self._told.pop(each.pool, None)
                self._changed[each.pool] = now
                if each.units > each.before:
                    self._grown[each.pool] = now
            found.append(each)
        return found


def seen_changing(seen: Load, name: str) -> bool:
    """Whether the pool of this name is being changed; no if it is gone."""
    return any(each.name == name and (each.changing or each.starting) for each in seen.pools)
