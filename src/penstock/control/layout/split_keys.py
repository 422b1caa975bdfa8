"""Which keys of a stage are split into sub-keys: none while whole keys are even ([000] §4.1).

A split moves no state, so it needs no price: it follows the load at once. It changes when the keys change,
not in every epoch, so that people can follow the decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.control.layout.key_loads import Keys, Places, loads
from penstock.control.observation import StageChannels
from penstock.distribution.sub_keys import SubKeyPlan, plan_sub_keys
from penstock.routing import Growth, HashPair

__all__ = ["SplitKeys"]

Floats = NDArray[np.float64]

_FEWEST_ROWS = 1000
"""This number of tuples says enough about the keys."""
SPLIT_ABOVE, WHOLE_BELOW, AGAIN_ABOVE = 1.1, 1.05, 1.1
"""Of the busiest channel over the mean: above the first, keys are split; below the second, they become whole
again; above the third, the sub-keys are chosen again."""


@dataclass
class SplitKeys:
    """The tuples of each channel in the last epochs, and what follows from them."""

    _loads: Floats = field(default_factory=lambda: np.zeros(0))

    def observe(self, stage: StageChannels) -> None:
        """Take in an epoch; half of the old counts stay, so that one small epoch decides nothing."""
        loads = np.array([each.tuples for each in stage.channels], np.float64)
        if loads.any():
            self._loads = loads + (self._loads / 2 if len(self._loads) == len(loads) else 0)

    def decide(self, stage: StageChannels, router: HashPair) -> SubKeyPlan | None:
        """The sub-keys of the next epoch; None if whole keys leave no channel much more than its share."""
        channels, current, known = len(stage.channels), stage.sub_keys, stage.known.frequencies
        if channels == 1:
            return None
        rows = float(self._loads.sum())
        if rows < _FEWEST_ROWS or len(self._loads) != channels:
            return current
        # Rows that reach channels at random are uneven by about this much.
        chance = 3 * (channels / rows) ** 0.5
        if self.imbalance(stage, router) <= (WHOLE_BELOW if current else SPLIT_ABOVE + chance):
            return None
        if current is not None and current.imbalance(known, channels) <= AGAIN_ABOVE:
            return current
        return plan_sub_keys(known, channels, dict(stage.known.texts))

    def imbalance(self, stage: StageChannels, router: HashPair) -> float:
        """The busiest channel over the mean with whole keys: measured, or as the known keys say if split."""
        found = self._loads
        if stage.sub_keys is not None:
            found = loads(Places(router), Keys(stage.known.frequencies, stage.domain), Growth.LINEAR)
        return float(found.max() / found.mean()) if found.any() else 1.0

    def to_json(self) -> dict[str, Any]:
        """The smoothed tuples."""
        return {"loads": self._loads.tolist()}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._loads = np.array(value["loads"], np.float64)
