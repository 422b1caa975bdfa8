"""Shares a total of channels out among stages by measured cost times rate, and follows both ([002] §III.G).

For runs whose channels were given as a total over several stages. The busy seconds of a stage in an epoch are
its cost per tuple times its tuples. What counts is the fullest channel of all stages, as in the paper; an
allotment by which an epoch whose stages take turns would last longer is not taken. Channels move when what
the fullest channel would save, over as many epochs as the wish has lasted, exceeds the price of the move.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.control.observation import Observation, StageChannels
from penstock.control.rescale import Rescale
from penstock.control.skew.move_price import MovePrice
from penstock.control.skew.stage_watch import LONGEST, busy_seconds
from penstock.routing import allot
from penstock.shown import shown_bytes, shown_seconds

__all__ = ["AllotmentPolicy"]

_WEIGHT = 0.25
"""The weight of the newest epoch in the load of a stage."""
_LEAST_EPOCHS = 5
_LEAST_GAIN = 0.1
"""The part of the fullest channel's time that another allotment has to save: noise feigns less."""
_LONGER = 1.01


@dataclass
class AllotmentPolicy:
    """Keeps `total` channels where the load is; `hosts` has the host of each stage that runs in one."""

    total: int
    hosts: Mapping[int, int] = field(default_factory=dict)
    _loads: dict[int, float] = field(default_factory=dict, init=False)
    _price: MovePrice = field(default_factory=MovePrice, init=False)
    _epochs: int = field(default=0, init=False)
    _lasted: int = field(default=0, init=False)
    _seen: Observation | None = field(default=None, init=False)

    def observe(self, seen: Observation) -> None:
        """Take in the busy seconds of each stage; an epoch that moved state or had no tuples says nothing."""
        for stage in seen.stages:
            if stage.moved is not None:
                self._price.observe(stage.moved)
        loads = {stage.stage: float(busy_seconds(stage).sum()) for stage in seen.stages}
        if any(each.moving or each.moved is not None for each in seen.stages) or not any(loads.values()):
            self._seen = None
            return
        self._seen = seen
        self._epochs += 1
        for number, load in loads.items():
            before = self._loads.get(number, load)
            self._loads[number] = before + _WEIGHT * (load - before)

    def decide(self, now: float) -> Sequence[Rescale]:  # noqa: ARG002 -- the shape of every policy
        """A rescale for each stage that should have another number of channels."""
        seen, self._seen = self._seen, None
        if seen is None or self._epochs < _LEAST_EPOCHS:
            return []
        stages = {each.stage: each for each in seen.stages if each.stage not in self.hosts}
        wanted = self._wanted(stages)
        present = {number: len(stage.channels) for number, stage in stages.items()}
        loads = self._with_hosted(stages)
        each, others = (_times(loads, channels, seen.slots) for channels in (present, wanted))
        gain = max(each) - max(others)
        if wanted == present or gain <= _LEAST_GAIN * max(each) or sum(others) > _LONGER * sum(each):
            self._lasted = 0
            return []
        self._lasted += 1
        moved = {number: _moved(stages[number], wanted[number]) for number in wanted}
        price = sum(
            self._price.of(size) for number, size in moved.items() if wanted[number] != present[number]
        )
        epochs = min(self._lasted, LONGEST)
        if gain * epochs <= price:
            return []
        self._lasted = 0
        return [
            self._request(stages[number], wanted[number], loads, moved[number], (gain, price, epochs))
            for number in wanted
            if wanted[number] != present[number]
        ]

    def to_json(self) -> dict[str, Any]:
        """Smoothed loads and prices."""
        return {
            "loads": {str(stage): load for stage, load in self._loads.items()},
            "price": self._price.to_json(),
            "epochs": self._epochs,
            "lasted": self._lasted,
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._loads = {int(stage): load for stage, load in value["loads"].items()}
        self._price.resume(value["price"])
        self._epochs, self._lasted = value["epochs"], value["lasted"]

    def _with_hosted(self, stages: Mapping[int, StageChannels]) -> dict[int, float]:
        """The load of each stage with channels of its own, including the stages in them."""
        loads = dict.fromkeys(stages, 0.0)
        for stage, load in self._loads.items():
            while stage in self.hosts:
                stage = self.hosts[stage]  # noqa: PLW2901 -- up to the one that has channels
            if stage in loads:
                loads[stage] += load
        return loads

    def _wanted(self, stages: Mapping[int, StageChannels]) -> dict[int, int]:
        single = [number for number, stage in stages.items() if not stage.rescalable]
        shared = [number for number in stages if number not in single]
        total = self.total - len(single)
        if len(shared) < 2 or total < len(shared):
            return {number: len(stage.channels) for number, stage in stages.items()}
        loads = self._with_hosted(stages)
        given = allot(total, [loads[number] for number in shared])
        return dict(zip(shared, given, strict=True)) | dict.fromkeys(single, 1)

    def _request(
        self,
        stage: StageChannels,
        channels: int,
        loads: Mapping[int, float],
        size: float,
        worth: tuple[float, float, int],
    ) -> Rescale:
        gain, price, epochs = worth
        share = loads[stage.stage] / sum(loads.values())
        reason = (
            f"the stage has {share:.0%} of the busy time and {len(stage.channels)} of {self.total} channels; "
            f"moving {shown_bytes(size)}, for all stages {shown_seconds(price)}, saves the fullest channel "
            f"{shown_seconds(gain)} an epoch, {shown_seconds(gain * epochs)} over the next {epochs}"
        )
        numbers = {"share": share, "bytes": size, "price": price, "gain": gain * epochs, "lasted": epochs}
        return Rescale(stage.stage, channels, reason=reason, numbers=numbers)


def _times(loads: Mapping[int, float], channels: Mapping[int, int], slots: int) -> list[float]:
    """The seconds of each stage on its channels, as far as there are slots for them."""
    return [load / min(channels[stage], max(slots, 1)) for stage, load in loads.items()]


def _moved(stage: StageChannels, channels: int) -> float:
    """The bytes that change channel: those of the channels that come or go."""
    before = len(stage.channels)
    return sum(each.state_bytes for each in stage.channels) * abs(channels - before) / max(channels, before)
