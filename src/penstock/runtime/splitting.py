"""Decides which keys of a window stage are split into sub-keys, from the receipts of its last epochs.

Nothing is split while the channels are even: then rows take one exchange, not two. What is split changes when
the keys do, not in every epoch, so that decisions can be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Frequencies
from penstock.runtime.receipts import Receipt
from penstock.runtime.sub_key_plan import SubKeyPlan, plan_sub_keys

__all__ = ["Splitting"]

# So many rows tell enough about the keys.
_FEWEST_ROWS = 1000
# The busiest channel over the mean: from where on keys are split, below which they are whole again, and
# from where on the sub-keys are chosen anew.
_SPLIT_ABOVE, _WHOLE_BELOW, _ANEW_ABOVE = 1.1, 1.05, 1.1
_MOST_TEXTS = 1024


@dataclass
class Splitting:
    """What is known of the channels of one stage if every key were whole, and the texts of frequent keys."""

    _loads: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _texts: dict[int, str] = field(default_factory=dict)

    def observe(self, receipts: Sequence[Receipt]) -> None:
        """Take in an epoch: the rows of every channel's own keys, whoever formed them."""
        loads = np.array([each.tuples for each in receipts], np.float64)
        if not loads.any():
            return
        # Half of what is known stays, so that one small epoch decides nothing.
        self._loads = loads + (self._loads / 2 if len(self._loads) == len(loads) else 0)
        for each in receipts:
            self._texts |= zip(each.keys.hashes, each.keys.texts, strict=False)
        while len(self._texts) > _MOST_TEXTS:
            del self._texts[next(iter(self._texts))]

    def decide(self, channels: int, current: SubKeyPlan | None, known: Frequencies) -> SubKeyPlan | None:
        """The sub-keys of the next epoch; None where the busiest channel has hardly more than the mean."""
        if channels == 1:
            return None
        rows = float(self._loads.sum())
        if rows < _FEWEST_ROWS or len(self._loads) != channels:
            return current
        # Rows that fall on channels at random are uneven by about this much.
        chance = 3 * (channels / rows) ** 0.5
        if self.imbalance <= (_WHOLE_BELOW if current else _SPLIT_ABOVE + chance):
            return None
        if current is not None and current.imbalance(known, channels) <= _ANEW_ABOVE:
            return current
        return plan_sub_keys(known, channels, self._texts)

    @property
    def imbalance(self) -> float:
        """The rows of the busiest channel's own keys over the mean: what whole keys would make of it."""
        return float(self._loads.max() / self._loads.mean()) if self._loads.any() else 1.0
