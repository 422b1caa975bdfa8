"""Chooses how rows find a channel where any will do: an exchange only where it pays for itself ([001] §5).

Three ways compete: rows stay in the tasks of the source, they are dealt out in equal numbers, or they are
placed by what they cost. How long an epoch would take in each is the busy time of its fullest slot plus what
comes on top of it: reading, placing, the exchange, the tasks themselves. All of it is measured in epochs that
went that way, and expected from the spread of the costs before there were any. Nothing has to move, so a
change needs no price; it has to gain enough for a few epochs in a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log, sqrt
from statistics import median
from typing import Any, Final

import numpy as np

from penstock.control.observation import Grouped, Observation, StageChannels
from penstock.distribution.distribution import Change
from penstock.routing import Grouping, greedy
from penstock.shown import shown_seconds

__all__ = ["GroupingPolicy"]

_KEPT: Final = 7
"""The epochs of each way whose median counts: one that something else held up says nothing."""
_LASTS: Final = 3
"""Another way has to be better for so many epochs in a row."""
_PART, _LEAST = 0.05, 0.02
"""What another way has to gain: this part of the busy time of the fullest slot, and at least so many seconds.

What comes on top of the busy time is the same in both but for what is measured, and on a busy machine most of
it is waiting: it must not raise the bar."""
_FIRST: Final[Mapping[Grouping, tuple[float, float]]] = {
    "in place": (0.0, 0.0),
    "round robin": (0.1, 2e-6),
    "by cost": (0.15, 6e-6),
}
"""What an exchange is expected to cost beyond rows in place, before there is a measure: seconds, and seconds
for each row of a slot."""
_PLACED: Final = 0.4
"""The part of the unevenness of equal numbers that remains when rows are placed by cost, before measures."""
_TRIAL: Final = 64
"""After so many epochs with an exchange, rows stay in place for one, since the source may have changed."""


@dataclass
class _Way:
    """What the last epochs of one grouping measured; `age` counts the epochs since.

    Each has the fullest slot over the mean, less 1, the seconds on top of that, and its rows.
    """

    last: list[tuple[float, float, int]] = field(default_factory=list)
    age: int = 0

    def measured(self, uneven: float, beyond: float, rows: int) -> None:
        """Take in an epoch."""
        self.last = [*self.last[1 - _KEPT :], (uneven, beyond, rows)]
        self.age = 0

    @property
    def uneven(self) -> float:
        """The fullest slot over the mean, less 1."""
        return median(each for each, _, _ in self.last)

    @property
    def doubt(self) -> float:
        """The standard error of what came on top, from its median deviation."""
        each = [beyond for _, beyond, _ in self.last]
        middle = median(each)
        return 1.5 * median(abs(one - middle) for one in each) / sqrt(len(each))

    def beyond(self, rows: int) -> float:
        """The seconds on top of that in an epoch with so many rows; half of them grow with rows."""
        return median(beyond * (1 + rows / max(then, 1)) / 2 for _, beyond, then in self.last)


@dataclass
class _Watch:
    """A stage under the policy: its ways, which other one has been better, and for how many epochs."""

    ways: dict[Grouping, _Way] = field(default_factory=dict)
    better: Grouping | None = None
    lasted: int = 0
    trying: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "ways": {name: vars(each) for name, each in self.ways.items()},
            "better": self.better,
            "lasted": self.lasted,
            "trying": self.trying,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "_Watch":
        ways = {
            name: _Way([(uneven, beyond, rows) for uneven, beyond, rows in each["last"]], each["age"])
            for name, each in value["ways"].items()
        }
        return cls(**{**value, "ways": ways})


@dataclass
class GroupingPolicy:
    """Switches the exchange of a stage on where its gain exceeds its price, and off where it does not."""

    _watches: dict[int, _Watch] = field(default_factory=dict, init=False)
    _told: list[StageChannels] = field(default_factory=list, init=False)
    _slots: int = field(default=1, init=False)

    def observe(self, seen: Observation) -> None:
        """Take in an epoch; a stage without rows says nothing."""
        self._slots, self._told = max(seen.slots, 1), []
        for stage in seen.stages:
            grouped = stage.grouped
            if grouped is None or len(grouped.allowed) < 2 or sum(grouped.tasks) <= 0:
                continue
            watch = self._watches.setdefault(stage.stage, _Watch())
            for each in watch.ways.values():
                each.age += 1
            busy = np.array(grouped.tasks)
            fullest = greedy(busy, np.zeros(self._slots)).makespan
            mean = float(busy.sum()) / self._slots
            way = watch.ways.setdefault(grouped.grouping, _Way())
            way.measured(fullest / mean - 1, max(grouped.seconds - fullest, 0.0), _rows(stage))
            self._told.append(stage)

    def decide(self, now: float) -> Sequence[Change]:  # noqa: ARG002 -- the shape of every policy
        """Another grouping for each stage that would have gained by it for a while."""
        told, self._told = self._told, []
        found = [self._judged(stage) for stage in told]
        return [each for each in found if each is not None]

    def to_json(self) -> dict[str, Any]:
        """What it has measured of each stage."""
        return {"watches": {str(stage): watch.to_json() for stage, watch in self._watches.items()}}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._watches = {int(stage): _Watch.from_json(each) for stage, each in value["watches"].items()}

    def _judged(self, stage: StageChannels) -> Change | None:
        grouped = stage.grouped
        assert grouped is not None
        watch = self._watches[stage.stage]
        times = {each: self._seconds(stage, grouped, each) for each in grouped.allowed}
        now, best = times[grouped.grouping], min(grouped.allowed, key=lambda each: times[each])
        gain = now - times[best]
        busy = now - self._known(stage, grouped, grouped.grouping)[1]
        doubt = sum(watch.ways[each].doubt for each in {grouped.grouping, best} if each in watch.ways)
        if gain > max(_PART * busy, _LEAST, doubt if best in watch.ways else 0.0):
            watch.lasted = watch.lasted + 1 if watch.better == best else 1
            watch.better = best
        else:
            watch.better, watch.lasted = None, 0
        if watch.better is not None and watch.lasted >= (1 if watch.trying else _LASTS):
            watch.better, watch.lasted, watch.trying = None, 0, False
            return _regroup(stage, best, self._reason(stage, grouped, best, times), times)
        watch.trying = False
        home = watch.ways.get("in place")
        if grouped.grouping != "in place" and home is not None and home.age >= _TRIAL:
            watch.trying = True
            reason = f"a trial: no epoch has run without the exchange for {home.age}"
            return _regroup(stage, "in place", reason, times)
        return None

    def _seconds(self, stage: StageChannels, grouped: Grouped, way: Grouping) -> float:
        """How long the stage would take in an epoch like this one."""
        mean = sum(grouped.tasks) / self._slots
        uneven, beyond = self._known(stage, grouped, way)
        return mean * (1 + uneven) + beyond

    def _known(self, stage: StageChannels, grouped: Grouped, way: Grouping) -> tuple[float, float]:
        """The fullest slot over the mean, less 1, and what comes on top: as measured, else as expected."""
        watch = self._watches[stage.stage]
        measured = watch.ways.get(way)
        channels, rows = len(stage.channels), _rows(stage)
        if measured is not None:
            return measured.uneven, measured.beyond(rows)
        # Channels of which there are too few, or one more than fits, leave slots without work.
        turns = ceil(channels / self._slots) * self._slots / channels
        # The most of sums of random costs: with so many rows each, they differ by so much of their mean.
        chance = grouped.deviation * sqrt(2 * channels * log(max(channels, 2)) / max(rows, 1))
        uneven = turns * (1 + chance * (_PLACED if way == "by cost" else 1.0)) - 1
        least = min((each.beyond(rows) for each in watch.ways.values()), default=0.0)
        fixed, each_row = _FIRST[way]
        return uneven, least + fixed + each_row * rows / self._slots

    def _reason(
        self, stage: StageChannels, grouped: Grouped, best: Grouping, times: Mapping[Grouping, float]
    ) -> str:
        (was, cost), (will, price) = (self._known(stage, grouped, each) for each in (grouped.grouping, best))
        return (
            f"rows {best}: an epoch takes {shown_seconds(times[best])} instead of "
            f"{shown_seconds(times[grouped.grouping])}; the fullest slot has {1 + will:.2f} instead of "
            f"{1 + was:.2f} times the mean, and what comes on top takes {shown_seconds(price)} instead of "
            f"{shown_seconds(cost)}; the cost of a row deviates by {grouped.deviation:.2f} times its mean of "
            f"{shown_seconds(grouped.mean)}"
        )


def _rows(stage: StageChannels) -> int:
    return sum(each.tuples for each in stage.channels)


def _regroup(
    stage: StageChannels, grouping: Grouping, reason: str, times: Mapping[Grouping, float]
) -> Change:
    numbers = {str(name): seconds for name, seconds in times.items()}
    return Change(stage.stage, "grouping", grouping, reason, numbers, shown=f"rows {grouping}")
