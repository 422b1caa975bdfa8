"""What is remembered of a stage: its smoothed load, what rows and keys cost, how long a gain was seen.

Loads are relative to their mean and costs are by row, so that neither a change of rate nor another length of
epochs is taken for a change of balance.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.control.layout.cost_curve import CurveFit
from penstock.control.layout.relative_load import RelativeLoad
from penstock.control.observation import StageChannels

__all__ = ["StageWatch", "busy_seconds"]

Floats = NDArray[np.float64]

_WEIGHT = 0.25
"""The weight of the newest epoch in the cost of a row and the rows of an epoch."""
_CALM = 3
"""A gain has ended if it was not seen in this many epochs in a row."""
_TOP, _DRIFT, _LONGEST_DRIFT = 16, 0.05, 6
"""If this share of all tuples went over to others of the top keys since the last epoch, keys have changed
and are still being counted: a plan waits for that, but not for more epochs in a row than this. Keys that
change in every epoch are the load of this stream."""
_STEADY = 4
"""After so many epochs without a change of keys, the first epoch of other keys is enough for a plan."""
_SECONDS_A_ROW = 1e-6
"""What a row is taken to cost where no time is measured."""
_RESTS = (2, 256)
"""Epochs to wait after a plan that found nothing or was held back; doubled each time up to the second."""
_NEWS, _NOW_AND_THEN = 8, 4
"""Epochs after another layout or load in which each is looked at; later one of so many is."""
_SLOWER, _CHANNELS = 1.25, 2
"""A node is slow whose rows take this many times as long as others, in each of so many channels or more."""


@dataclass
class StageWatch:
    """Epochs are counted if they had load and moved no state of the stage."""

    load: RelativeLoad = field(default_factory=RelativeLoad)
    curve: CurveFit = field(default_factory=CurveFit)
    rows: float = 0.0
    busy_a_row: float = 0.0
    cpu_a_row: float = 0.0
    lasted: int = 0
    epoch: int = 0
    speeds: dict[str, float] = field(default_factory=dict)
    _placed: str = ""
    _calm: int = 0
    _rest_until: int = 0
    _rest: int = _RESTS[0]
    _top: dict[int, float] = field(default_factory=dict)
    _drifting: int = 0
    _steady: int = 0
    _fresh: bool = False
    _looked_at: int = 0

    def observe(self, stage: StageChannels) -> bool:
        """Take in an epoch of the stage; whether it says anything about its load."""
        placed = f"{stage.router} {stage.spread} {stage.sub_keys} {len(stage.channels)}"
        if placed != self._placed:
            self._placed = placed
            self.load.forget()
            self.lasted, self._calm = 0, 0
            self._rest_until, self._rest = self.epoch, _RESTS[0]
            self._looked_at = self.epoch
        busy = busy_seconds(stage)
        rows = float(sum(each.rows or each.tuples for each in stage.channels))
        if stage.moving or stage.moved is not None or not busy.any() or not rows:
            return False
        self.epoch += 1
        cpu = sum(each.cpu_seconds for each in stage.channels) or float(busy.sum())
        weight = max(_WEIGHT, 1 / self.epoch)
        self.rows += weight * (rows - self.rows)
        self.busy_a_row += weight * (float(busy.sum()) / rows - self.busy_a_row)
        self.cpu_a_row += weight * (cpu / rows - self.cpu_a_row)
        self._learn_speeds(stage, busy)
        self._drifted(stage)
        if self.counting:
            # Other keys are hot from this epoch on, so loads before it say nothing.
            self.load.forget()
        if self.load.observe(busy / self._slowness(stage)) or self.counting:
            # The load is another one now: what was learnt about plans for the old one does not count.
            self.lasted, self._calm, self._rest_until, self._rest = 0, 0, 0, _RESTS[0]
            self._looked_at = self.epoch
        return True

    @property
    def due(self) -> bool:
        """Whether to look for a better layout: in every epoch while there is news, else now and then."""
        return bool(self.lasted) or self.epoch - self._looked_at <= _NEWS or self.epoch % _NOW_AND_THEN == 0

    @property
    def counting(self) -> bool:
        """Whether the most frequent keys have changed, and are not yet known as they are."""
        return 0 < self._drifting <= _LONGEST_DRIFT

    @property
    def rests(self) -> bool:
        """Whether to leave the stage alone for now; a plan for keys that are still being counted is none."""
        return self.counting or self.epoch < self._rest_until

    @property
    def fresh(self) -> bool:
        """Whether this is the first epoch of other keys after a steady time: they are what they will be."""
        return self._fresh and self.epoch >= self._rest_until

    @property
    def calm(self) -> bool:
        """Whether no other layout would have been better for a while, whatever the keys are."""
        return self._calm >= _CALM

    def count(self, *, promising: bool) -> None:
        """Count an epoch in which another layout would have been better, or would not."""
        if promising:
            self._calm = 0
            self.lasted += 1
            return
        self._calm += 1
        if self.calm:
            self.lasted, self._rest = 0, _RESTS[0]

    def wait_longer(self) -> None:
        """Make no plan for a while, and for a longer while the next time."""
        self._rest_until = self.epoch + self._rest
        self._rest = min(2 * self._rest, _RESTS[1])

    def wait_for(self, gain: float, price: float) -> None:
        """Make no plan until the gain may have reached the price, or its cause is twice as old."""
        needed = int(price / gain) - self.lasted if gain > 0 else self.lasted
        self._rest_until = self.epoch + max(1, min(needed, self.lasted))

    def slow_nodes(self) -> list[str]:
        """The nodes that take much longer for a row than others."""
        return sorted(node for node, each in self.speeds.items() if each > _SLOWER)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "load": self.load.to_json(),
            "curve": self.curve.to_json(),
            "speeds": dict(self.speeds),
            "top": {str(key): share for key, share in self._top.items()},
            **{name: getattr(self, name) for name in _PLAIN},
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self.load.resume(value["load"])
        self.curve.resume(value["curve"])
        self.speeds = dict(value["speeds"])
        self._top = {int(key): share for key, share in value["top"].items()}
        for name in _PLAIN:
            setattr(self, name, value[name])

    def _learn_speeds(self, stage: StageChannels, busy: Floats) -> None:
        """How long a row takes on each node over what it takes in the median channel.

        By the quickest of the channels of a node, and only if it has several: all of them are slow on a slow
        node, and one with dear keys on a node of its own looks the same.
        """
        took: dict[str, list[float]] = {}
        for each, seconds in zip(stage.channels, busy.tolist(), strict=True):
            if each.node and (each.rows or each.tuples):
                took.setdefault(each.node, []).append(seconds / (each.rows or each.tuples))
        if len(took) < 2:
            self.speeds = {}
            return
        means = {node: min(each) for node, each in took.items() if len(each) >= _CHANNELS}
        middle = float(np.median([seconds for each in took.values() for seconds in each])) or 1.0
        past = {node: self.speeds.get(node, mean / middle) for node, mean in means.items()}
        self.speeds = {
            node: past[node] + _WEIGHT * (mean / middle - past[node]) for node, mean in means.items()
        }

    def _slowness(self, stage: StageChannels) -> Floats:
        """By what the seconds of each channel are divided: how slow its node is, if it is slow."""
        slow = {node: self.speeds[node] for node in self.slow_nodes()}
        return np.array([slow.get(each.node, 1.0) for each in stage.channels])

    def _drifted(self, stage: StageChannels) -> None:
        """By how much the shares of the most frequent keys changed since the epoch before."""
        top = dict(zip(stage.known.hashes[:_TOP], stage.known.shares[:_TOP], strict=True))
        apart = sum(abs(top.get(key, 0.0) - self._top.get(key, 0.0)) for key in top.keys() | self._top.keys())
        drifts = apart / 2 > _DRIFT
        self._fresh = drifts and self._steady >= _STEADY
        self._top, self._drifting = top, self._drifting + 1 if drifts else 0
        self._steady = 0 if drifts else self._steady + 1


_PLAIN = (
    *("rows", "busy_a_row", "cpu_a_row", "lasted", "epoch"),
    *("_placed", "_calm", "_rest_until", "_rest", "_drifting", "_looked_at"),
    *("_steady", "_fresh"),
)


def busy_seconds(stage: StageChannels) -> Floats:
    """How long each channel was busy, waiting for other systems included; or what its rows would take."""
    found = np.array([max(each.seconds, each.cpu_seconds) for each in stage.channels], np.float64)
    if found.any():
        return found
    return np.array([each.rows or each.tuples for each in stage.channels], np.float64) * _SECONDS_A_ROW
