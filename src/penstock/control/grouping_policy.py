"""Chooses how rows find a channel where any will do, and over how many: one decision ([001] §6).

Rows stay in the tasks that have them, which needs no channels, or they are dealt out over k channels, in turn
or by what they cost. What an epoch takes in each of these ways is told by the one objective from the busy
time and the processor time of the last epoch, plus what comes on top: reading, placing, the exchange. So two
channels by cost may be better than four in turn. Nothing has to move, so a change has no price; it has to be
worth it for a few epochs in a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.control.objective import CPU_PRICE, NUMBERS, TASK_CPU, Objective, makespan
from penstock.control.observation import Grouped, Observation, StageChannels
from penstock.control.proposal import Effect, Proposal
from penstock.control.rescale import Rescale
from penstock.distribution.distribution import Change
from penstock.routing import Grouping
from penstock.shown import shown_seconds

__all__ = ["GroupingPolicy"]

_KEPT: Final = 7
"""The epochs of each grouping whose median counts: one that something else held up says nothing."""
_LASTS, _LASTS_FEWER = 3, 12
"""Another way has to be better for so many epochs in a row. With fewer channels for longer: [001] §6 has it
that channels placed by cost must not be taken away before the load is surely gone."""
_PART, _LEAST, _NEAR = 0.05, 0.02, 0.01
"""What another way has to gain: this part of the busy time of the stage, and with another grouping at least
so many seconds, since an exchange is measured by the clock. What comes on top is mostly waiting on a busy
machine, so it does not raise the bar. Of ways within the last part of the best the present one is kept."""
_TRIAL: Final = 64
"""After so many epochs with an exchange, rows stay in place for one, since the source may have changed."""

# What is expected of a grouping before there is a measure of it.
_FIRST: Final[Mapping[Grouping, tuple[float, float]]] = {
    "in place": (0.0, 0.0),
    "round robin": (0.03, 1e-6),
    "by cost": (0.04, 2e-6),
}
"""What an exchange costs beyond rows in place: seconds, and seconds of the processor for each row."""
_PLACED: Final = 0.4
"""The part of the unevenness of rows in turn, as measured or as costs deviate, that is left by cost."""

_GOLDEN: Final = 0.6180339887

Floats = NDArray[np.float64]


@dataclass
class _Measures:
    """What the last epochs of one grouping measured; `age` counts the epochs since.

    `apart` says how uneven tasks were: in place the fullest slot over the mean, less 1. Over channels it is
    the deviation of the cost of rows, over their mean, that would make channels as uneven by chance; so it
    holds for another number of channels and rows too. `beyond` are seconds on top, and the rows of then.
    """

    apart: list[float] = field(default_factory=list)
    beyond: list[tuple[float, int]] = field(default_factory=list)
    age: int = 0

    def take(self, apart: float | None, beyond: float, rows: int) -> None:
        """Take in an epoch; a single channel does not tell how uneven several are."""
        self.apart = [*self.apart, *([] if apart is None else [apart])][-_KEPT:]
        self.beyond = [*self.beyond, (beyond, rows)][-_KEPT:]
        self.age = 0

    @property
    def doubt(self) -> float:
        """The standard error of what came on top, from its median deviation."""
        each = [beyond for beyond, _ in self.beyond]
        middle = median(each)
        return 1.5 * median(abs(one - middle) for one in each) / sqrt(len(each))

    def on_top(self, rows: int) -> float:
        """The seconds on top in an epoch with so many rows; half of them grow with rows."""
        return median(beyond * (1 + rows / max(then, 1)) / 2 for beyond, then in self.beyond)


@dataclass
class _Watch:
    """A stage under the policy: what was measured of each grouping, and how long another way was better."""

    measured: dict[Grouping, _Measures] = field(default_factory=dict)
    lasted: int = 0
    trying: bool = False

    def to_json(self) -> dict[str, Any]:
        measured = {name: vars(each) for name, each in self.measured.items()}
        return {"measured": measured, "lasted": self.lasted, "trying": self.trying}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "_Watch":
        measured = {
            name: _Measures(list(each["apart"]), [(one, rows) for one, rows in each["beyond"]], each["age"])
            for name, each in value["measured"].items()
        }
        return cls(**{**value, "measured": measured})


@dataclass(frozen=True)
class _Way:
    """A grouping and a number of channels, none in place, with what an epoch like the last one takes so.

    `busy` seconds go until the fullest slot is done, and others come on top (`beyond`); `cpu` is of the
    processor. `uneven` is the busiest task over the mean.
    """

    grouping: Grouping
    channels: int
    busy: float
    beyond: float
    cpu: float
    uneven: float

    @property
    def seconds(self) -> float:
        return self.busy + self.beyond

    def cost(self, price: float) -> float:
        return self.seconds + price * self.cpu

    def words(self) -> str:
        if not self.channels:
            return f"rows {self.grouping}"
        return f"rows {self.grouping} over {self.channels} channel{'s' if self.channels != 1 else ''}"


@dataclass
class GroupingPolicy:
    """Changes grouping and channels of a stage where that is better by the objective.

    A stage has `least` to `most` channels, None for as many as there are slots; without a least number the
    channels stay as they are.
    """

    least: int | None = None
    most: int | None = None
    cpu_price: float = CPU_PRICE
    _watches: dict[int, _Watch] = field(default_factory=dict, init=False)
    _told: list[StageChannels] = field(default_factory=list, init=False)
    _objective: Objective = field(default_factory=Objective, init=False)

    def observe(self, seen: Observation) -> None:
        """Take in an epoch; a stage without rows says nothing."""
        self._objective = Objective(max(seen.slots, 1), seen.cores, self.cpu_price)
        self._told = []
        for stage in seen.stages:
            grouped = stage.grouped
            if grouped is None or sum(grouped.tasks) <= 0:
                continue
            watch = self._watches.setdefault(stage.stage, _Watch())
            for each in watch.measured.values():
                each.age += 1
            busy, apart = self._measured(stage, grouped)
            measures = watch.measured.setdefault(grouped.grouping, _Measures())
            measures.take(apart, max(grouped.seconds - busy, 0.0), _rows(stage))
            self._told.append(stage)

    def propose(self, now: float) -> Sequence[Proposal[Change | Rescale]]:  # noqa: ARG002 -- no clock needed
        """Another way for each stage that would have gained by it for a while, or why none would."""
        told, self._told = self._told, []
        return [self._judged(stage, stage.grouped) for stage in told if stage.grouped is not None]

    def to_json(self) -> dict[str, Any]:
        """What it has measured of each stage."""
        return {"watches": {str(stage): watch.to_json() for stage, watch in self._watches.items()}}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._watches = {int(stage): _Watch.from_json(each) for stage, each in value["watches"].items()}

    def _judged(self, stage: StageChannels, grouped: Grouped) -> Proposal[Change | Rescale]:
        watch = self._watches[stage.stage]
        present = 0 if grouped.grouping == "in place" else len(stage.channels)
        now = self._expected(stage, grouped, grouped.grouping, present)
        best = self._best(stage, grouped, now)
        gain = now.cost(self.cpu_price) - best.cost(self.cpu_price)
        regrouped = best.grouping != now.grouping
        bar = _PART * now.busy
        if regrouped:
            known = watch.measured.get(best.grouping)
            bar = max(bar, _LEAST, 0.0 if known is None else known.doubt + watch.measured[now.grouping].doubt)
        watch.lasted = watch.lasted + 1 if best != now and gain > bar else 0
        fewer = not regrouped and best.channels < now.channels
        if watch.lasted >= (1 if watch.trying else _LASTS_FEWER if fewer else _LASTS):
            effect = Effect(now.seconds - best.seconds, now.cpu - best.cpu, lasted=watch.lasted)
            watch.lasted, watch.trying = 0, False
            return self._changed(stage, grouped, now, best, effect)
        watch.trying = False
        home = watch.measured.get("in place")
        if "in place" in grouped.allowed and present and home is not None and home.age >= _TRIAL:
            watch.trying = True
            reason = f"a trial: no epoch has run without the exchange for {home.age}"
            change = Change(stage.stage, "grouping", "in place", reason, shown="rows in place")
            return Proposal((change,), reason=reason, urgent=True)
        why = f"{now.words()} take {shown_seconds(now.seconds)} an epoch"
        if best != now:
            why += f", and {best.words()} {shown_seconds(best.seconds)}"
        return Proposal((), reason=f"stage {stage.stage} stays: {why}{_unknown(grouped)}")

    def _best(self, stage: StageChannels, grouped: Grouped, now: _Way) -> _Way:
        """The best way, or the one that there is."""
        found = [] if now.grouping not in grouped.allowed else [now]
        for grouping in grouped.allowed:
            if grouping == "in place":
                found.append(self._expected(stage, grouped, grouping, 0))
            elif grouping == "round robin" or grouped.mean > 0:
                found += [self._expected(stage, grouped, grouping, each) for each in self._numbers(stage)]
        if not found:
            return now
        least = min(each.cost(self.cpu_price) for each in found)
        near = [each for each in found if each.cost(self.cpu_price) <= least + _NEAR * now.busy]
        return min(
            near,
            key=lambda each: (each != now, each.channels != len(stage.channels), each.cpu, each.channels),
        )

    def _numbers(self, stage: StageChannels) -> list[int]:
        """The numbers of channels that the stage may have."""
        if self.least is None:
            return [len(stage.channels)]
        most = max(self.most or self._objective.slots, self.least)
        return sorted({each for each in (*NUMBERS, most) if self.least <= each <= most})

    def _measured(self, stage: StageChannels, grouped: Grouped) -> tuple[float, float | None]:
        """How long the fullest slot was busy, and how uneven tasks were, as `_Measures` has it."""
        busy, cpu, objective = np.array(grouped.tasks), _cpu(stage, grouped), self._objective
        if grouped.grouping == "in place":
            fullest = makespan(busy, objective.slots)
            return max(fullest, cpu / objective.cores), fullest * objective.slots / float(busy.sum()) - 1
        channels = len(stage.channels)
        uneven, chance = busy.max() * channels / busy.sum() - 1, _chance(channels, _rows(stage))
        return objective.seconds(busy, cpu), None if not chance else float(uneven) / chance

    def _expected(self, stage: StageChannels, grouped: Grouped, grouping: Grouping, channels: int) -> _Way:
        """An epoch like this one in another way: as measured, else as expected."""
        objective, total, cpu = self._objective, sum(grouped.tasks), _cpu(stage, grouped)
        apart, beyond = self._known(stage, grouped, grouping)
        if grouping == "in place":
            busy = max(total / objective.slots * (1 + apart), cpu / objective.cores)
            return _Way(grouping, 0, busy, beyond, cpu, 1 + apart)
        rows = _rows(stage)
        uneven = min(apart * _chance(channels, rows), channels - 1.0)
        busy = objective.seconds(total / channels * _loads(channels, uneven), cpu)
        cpu += channels * TASK_CPU + rows * _FIRST[grouping][1]
        return _Way(grouping, channels, busy, beyond, cpu, 1 + uneven)

    def _known(self, stage: StageChannels, grouped: Grouped, grouping: Grouping) -> tuple[float, float]:
        """How uneven tasks are, as `_Measures` has it, and the seconds on top: as measured or expected."""
        watch, rows = self._watches[stage.stage], _rows(stage)
        measured = watch.measured.get(grouping)
        apart = grouped.deviation
        if grouping == "by cost":
            in_turn = watch.measured.get("round robin")
            apart = _PLACED * (median(in_turn.apart) if in_turn and in_turn.apart else apart)
        if measured is not None:
            return median(measured.apart) if measured.apart else apart, measured.on_top(rows)
        # What is known of the other exchange, or of none, is where an expectation starts from.
        exchanged = [name for name in watch.measured if name != "in place"]
        base = min(exchanged or watch.measured, key=lambda name: watch.measured[name].on_top(rows))
        (fixed, each_row), (less, less_row) = _FIRST[grouping], _FIRST[base]
        more = fixed - less + (each_row - less_row) * rows / self._objective.slots
        return apart, max(watch.measured[base].on_top(rows) + more, 0.0)

    def _changed(
        self, stage: StageChannels, grouped: Grouped, now: _Way, best: _Way, effect: Effect
    ) -> Proposal[Change | Rescale]:
        """The grouping and the channels, at once."""
        reason = (
            f"{best.words()}: an epoch takes {shown_seconds(best.seconds)} instead of "
            f"{shown_seconds(now.seconds)}, and of the processor {shown_seconds(best.cpu)} instead of "
            f"{shown_seconds(now.cpu)}; the busiest has {best.uneven:.2f} instead of {now.uneven:.2f} times "
            f"the mean, and what comes on top takes {shown_seconds(best.beyond)} instead of "
            f"{shown_seconds(now.beyond)}"
        )
        if grouped.mean:
            reason += (
                f"; the cost of a row deviates by {grouped.deviation:.2f} times its mean of "
                f"{shown_seconds(grouped.mean)}"
            )
        numbers = {"seconds": best.seconds, "before": now.seconds, "channels": float(best.channels)}
        changes: list[Change | Rescale] = []
        if best.grouping != now.grouping:
            shown = f"rows {best.grouping}"
            changes.append(Change(stage.stage, "grouping", best.grouping, reason, numbers, shown=shown))
        if best.channels and best.channels != len(stage.channels):
            changes.append(Rescale(stage.stage, best.channels, reason=reason, numbers=numbers))
        return Proposal(tuple(changes), effect, reason)


def _rows(stage: StageChannels) -> int:
    return sum(each.tuples for each in stage.channels)


def _cpu(stage: StageChannels, grouped: Grouped) -> float:
    return sum(each.cpu_seconds for each in stage.channels) or sum(grouped.tasks)


def _chance(channels: int, rows: int) -> float:
    """The most of sums of random costs over their mean, less 1, if costs deviate by as much as their mean."""
    return sqrt(2 * channels * log(channels) / max(rows, 1))


def _loads(channels: int, uneven: float) -> Floats:
    """Loads with a mean of 1: the most is so much above it, the others evenly spaced, in mixed order."""
    if channels == 1:
        return np.ones(1)
    order = np.argsort(np.arange(channels) * _GOLDEN % 1)
    loads = np.maximum(1 + uneven * np.linspace(-1, 1, channels)[order], 0.0)
    found: Floats = loads * ((1 + uneven) / loads.max())
    return found


def _unknown(grouped: Grouped) -> str:
    """Why rows cannot go by cost, where they could if more were known."""
    return f"; none go by cost, because {grouped.unknown}" if grouped.unknown else ""
