"""Decides which keys of a window stage are split into sub-keys, from the counts of its last epochs.

Sliding lossy counting on the driver knows the frequent keys of about the last `_WINDOW` tuples, scaled down
where epochs are large. It starts anew with a run; until it has seen enough, the keys of the last plan stay.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Frequencies
from penstock.runtime.key_counts import KeyCount
from penstock.runtime.receipts import Receipt
from penstock.runtime.sub_key_plan import MOST_SPLIT, SubKeyPlan, plan_sub_keys
from penstock.sketches import SlidingCounting
from penstock.sketches.splitmix import splitmix64

__all__ = ["Splitting"]

_FEWEST_ROWS = 1000
_EPOCH = 1 << 15  # items that an epoch gives to the counters at most
_WINDOW = 1 << 17
_EPSILON = 1e-4
# The busiest channel over the mean: from where on keys are split, below which they are whole again, and
# from where on the sub-keys are chosen anew.
_SPLIT_ABOVE, _WHOLE_BELOW, _ANEW_ABOVE = 1.1, 1.05, 1.1
_MOST_TEXTS = 4 * MOST_SPLIT


@dataclass
class Splitting:
    """What the driver knows of the keys of one stage."""

    _counting: SlidingCounting = field(default_factory=lambda: SlidingCounting(_EPSILON, _WINDOW))
    _texts: dict[int, str] = field(default_factory=dict)
    _loads: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _others: int = 0

    def observe(self, receipts: Iterable[Receipt]) -> None:
        """Take in the key counts of an epoch, and the rows of every channel's own keys."""
        loads = np.array([each.tuples for each in receipts], np.float64)
        counts = [key for each in receipts for key in each.keys]
        if not counts:
            return
        # Half of what is known stays, so that one small epoch decides nothing.
        self._loads = loads + (self._loads / 2 if len(self._loads) == len(loads) else 0)
        self._count(counts, int(loads.sum()))
        for each in counts:
            self._texts[each.hash] = each.text
        while len(self._texts) > _MOST_TEXTS:
            del self._texts[next(iter(self._texts))]

    def decide(self, channels: int, current: SubKeyPlan | None) -> SubKeyPlan | None:
        """The sub-keys of the next epoch; None where the busiest channel has no more than its share."""
        rows = self._loads.sum()
        if channels == 1:
            return None
        if rows < _FEWEST_ROWS or len(self._loads) != channels:
            return current
        # Rows that fall on channels at random are uneven by about this much.
        chance = 3 * float(np.sqrt(channels / rows))
        if self.imbalance <= (_WHOLE_BELOW if current else _SPLIT_ABOVE + chance):
            return None
        known = self.frequencies
        if current is not None and current.imbalance(known, channels) <= _ANEW_ABOVE:
            return current
        return plan_sub_keys(known, channels, self._texts)

    @property
    def imbalance(self) -> float:
        """The rows of the busiest channel's own keys over the mean: what the channels would do unsplit."""
        return float(self._loads.max() / self._loads.mean()) if self._loads.any() else 1.0

    @property
    def frequencies(self) -> Frequencies:
        """The keys known, each with its part of all rows."""
        found = self._counting.items()
        known = np.isin(found.hashes.view(np.int64), np.fromiter(self._texts, np.int64, len(self._texts)))
        return Frequencies(found.hashes[known], found.counts[known] / max(found.total, 1))

    def _count(self, counts: list[KeyCount], rows: int) -> None:
        scale = min(1.0, _EPOCH / rows)
        hashes = np.array([each.hash for each in counts], np.int64).view(np.uint64)
        times = np.rint([each.rows * scale for each in counts]).astype(np.int64)
        self._counting.update(np.repeat(hashes, times))
        # Rows of keys that nobody reported: each an item of its own, so that they count as rare.
        others = max(round(rows * scale) - int(times.sum()), 0)
        numbers = np.arange(self._others, self._others + others, dtype=np.uint64)
        self._others += others
        self._counting.update(splitmix64(numbers))
