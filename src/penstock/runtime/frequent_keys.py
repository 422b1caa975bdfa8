"""Frequencies of keys over the last epochs, from what channels report: sliding lossy counting on the driver.

Each epoch adds at most 16,384 items, so a step costs a few milliseconds however many tuples came; a key is
seen from about a share of 1/16,384 of an epoch on. The tracked keys are part of the manifest: after a
restart, counting goes on from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.routing import Frequencies
from penstock.runtime.key_counts import KeyCounts
from penstock.sketches import SlidingCounting
from penstock.sketches.splitmix import splitmix64

__all__ = ["MOST_TRACKED", "FrequentKeys"]

MOST_TRACKED = 1024
"""How many keys of a stage are tracked."""

_ITEMS = 16_384  # of an epoch
_WINDOW = 16 * _ITEMS  # about the last epochs that count
_EPSILON = 1e-4
_REMEMBERED = 256  # keys in a manifest


@dataclass
class FrequentKeys:
    """The frequent keys of one stage; `keys` is the most that an epoch had."""

    keys: int = 0
    _counting: SlidingCounting = field(default_factory=lambda: SlidingCounting(_EPSILON, _WINDOW))
    _strangers: int = 0

    def resume(self, counts: KeyCounts) -> None:
        """Go on from what a manifest holds."""
        self.update([counts])

    def update(self, channels: Sequence[KeyCounts]) -> None:
        """Take in what the channels of an epoch report."""
        total = sum(each.total for each in channels)
        if not total:
            return
        self.keys = max(self.keys, sum(each.keys for each in channels))
        scale = max(1.0, total / _ITEMS)
        hashes = np.array([key for each in channels for key in each.hashes], np.int64).view(np.uint64)
        counts = np.array([count for each in channels for count in each.counts], np.int64)
        items = np.repeat(hashes, np.round(counts / scale).astype(np.int64))
        # What is not reported counts for the total: as keys that come once and never again.
        others = max(0, round(total / scale) - len(items))
        strangers = np.arange(self._strangers, self._strangers + others, dtype=np.uint64)
        self._strangers += others
        self._counting.update(np.concatenate([items, splitmix64(strangers, seed=1)]))

    def known(self) -> Frequencies:
        """The keys that were seen more than once, with their shares."""
        found = self._counting.items()
        often = found.counts > 1
        shares = found.frequencies[often]
        return Frequencies(found.hashes[often][:MOST_TRACKED], shares[:MOST_TRACKED])

    def counts(self) -> KeyCounts:
        """What a manifest holds."""
        known = self.known()
        known = Frequencies(known.hashes[:_REMEMBERED], known.shares[:_REMEMBERED])
        counts = np.round(known.shares * _ITEMS).astype(np.int64)
        kept = counts > 0
        return KeyCounts(
            tuple(known.hashes[kept].view(np.int64).tolist()), tuple(counts[kept].tolist()), _ITEMS, self.keys
        )
