"""Decides which keys of a stage are split into sub-keys, from the receipts of its last epochs.

No key is split while the channels are even: rows then take one exchange, not two. The split changes when
the keys change, not in every epoch, so that people can follow the decisions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.control.sub_keys import SubKeyPlan, plan_sub_keys
from penstock.routing import Frequencies
from penstock.runtime.observation import Decision
from penstock.runtime.records import Manifest, StagePlan
from penstock.runtime.stage import Receipt, StageRunner

__all__ = ["Splits", "Splitting", "splits_decided"]

# This number of rows says enough about the keys.
_FEWEST_ROWS = 1000
# Thresholds of the busiest channel over the mean: above the first, keys are split; below the second, they
# become whole again; above the third, the sub-keys are chosen again.
_SPLIT_ABOVE, _WHOLE_BELOW, _AGAIN_ABOVE = 1.1, 1.05, 1.1
_MOST_TEXTS = 1024


@dataclass
class Splitting:
    """The load that the channels of a stage would have with whole keys, and the texts of frequent keys."""

    _loads: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _texts: dict[int, str] = field(default_factory=dict)

    def observe(self, receipts: Sequence[Receipt]) -> None:
        """Take in an epoch: the rows of each channel's own keys, whichever channel formed them."""
        loads = np.array([each.tuples for each in receipts], np.float64)
        if not loads.any():
            return
        # Half of the old counts stay, so that one small epoch decides nothing.
        self._loads = loads + (self._loads / 2 if len(self._loads) == len(loads) else 0)
        for each in receipts:
            self._texts |= zip(each.keys.hashes, each.keys.texts, strict=False)
        while len(self._texts) > _MOST_TEXTS:
            del self._texts[next(iter(self._texts))]

    def decide(self, channels: int, current: SubKeyPlan | None, known: Frequencies) -> SubKeyPlan | None:
        """The sub-keys of the next epoch; None if the busiest channel has hardly more than the mean."""
        if channels == 1:
            return None
        rows = float(self._loads.sum())
        if rows < _FEWEST_ROWS or len(self._loads) != channels:
            return current
        # Rows that reach channels at random are uneven by about this much.
        chance = 3 * (channels / rows) ** 0.5
        if self.imbalance <= (_WHOLE_BELOW if current else _SPLIT_ABOVE + chance):
            return None
        if current is not None and current.imbalance(known, channels) <= _AGAIN_ABOVE:
            return current
        return plan_sub_keys(known, channels, self._texts)

    @property
    def imbalance(self) -> float:
        """The rows of the busiest channel's own keys over the mean: the imbalance with whole keys."""
        return float(self._loads.max() / self._loads.mean()) if self._loads.any() else 1.0


@dataclass(frozen=True)
class Splits:
    """The loads of the stages that may split hot keys, by the number of the stage."""

    stages: Mapping[int, Splitting]

    @classmethod
    def of(cls, runners: Sequence[StageRunner]) -> "Splits":
        """The stages whose rows may be formed in several channels."""
        return cls({each.number: Splitting() for each in runners if each.may_split})

    def observe(self, receipts: Mapping[int, Sequence[Receipt]]) -> None:
        """Take in the receipts of an epoch, by the number of the stage."""
        for number, splitting in self.stages.items():
            splitting.observe(receipts.get(number, ()))


def splits_decided(manifest: Manifest, before: Manifest) -> list[Decision]:
    """The stages where an epoch split other keys than the epoch before, and why."""
    if manifest.epoch_id.drain:
        return []
    return [
        Decision(
            stage,
            then.channels,
            plan.channels,
            epoch=manifest.epoch_id.epoch,
            partitioning="sub-keys",
            reason=_why(plan),
        )
        for stage, (plan, then) in enumerate(zip(manifest.plan.stages, before.plan.stages, strict=True))
        if plan.sub_keys != then.sub_keys
    ]


def _why(plan: StagePlan) -> str:
    if plan.sub_keys is None:
        return "keys are whole again: no channel has much more than its share without it"
    return f"split: {plan.sub_keys.words(plan.channels)}"
