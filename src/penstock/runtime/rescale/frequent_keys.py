"""Frequent keys: counted by the channels in an epoch, and over the last epochs on the driver.

Each epoch adds at most 16,384 items, so a step costs a few milliseconds however many tuples came. A key is
seen if its share of an epoch is at least about 1/16,384. The frequent keys are part of the manifest: after
a restart, counting continues from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Frequencies
from penstock.routing.spark_hash import spark_hash
from penstock.sketches import SlidingCounting
from penstock.sketches.splitmix import splitmix64
from penstock.state.keys import number_keys

__all__ = ["MOST_KEYS", "MOST_ROWS", "MOST_TRACKED", "FrequentKeys", "KeyCounts", "count_keys"]

MOST_KEYS = 64
"""The most keys that a channel reports."""

MOST_ROWS = 65_536
"""The most rows of a channel that are counted."""

_LONGEST_TEXT = 40


@dataclass(frozen=True)
class KeyCounts:
    """Signed hashes of keys with the count of each among `total` tuples; `keys` is the number of all keys.

    `texts` are the keys in readable form, if a channel reports them.
    """

    hashes: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    total: int = 0
    keys: int = 0
    texts: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "KeyCounts":
        """The counts from their plain values."""
        texts = tuple(value.get("texts", ()))
        return cls(tuple(value["hashes"]), tuple(value["counts"]), value["total"], value["keys"], texts)


def count_keys(columns: Sequence[Any], rows: int, weights: NDArray[np.int64] | None = None) -> KeyCounts:
    """Count the keys in these columns of a table; a row counts for as many tuples as its weight says.

    >>> import pyarrow as pa
    >>> found = count_keys([pa.chunked_array([["a", "b", "a"]])], 3)
    >>> found.counts, found.total, found.keys
    ((2, 1), 3, 2)
    """
    if not columns or not rows:
        return KeyCounts(total=rows)
    step = -(-rows // MOST_ROWS)
    if step > 1:
        at = np.arange(0, rows, step)
        columns = [column.take(at) for column in columns]
        rows = len(at)
        weights = None if weights is None else weights[at]
    numbers, keys = number_keys(list(columns), rows)
    counts = np.bincount(numbers, weights).astype(np.int64)
    most = min(MOST_KEYS, len(counts))
    top = np.argpartition(-counts, most - 1)[:most]
    top = top[np.argsort(-counts[top], kind="stable")]
    chosen = [column.take(top) for column in keys]
    hashes = spark_hash(chosen, len(top))
    return KeyCounts(
        tuple(hashes.view(np.int64).tolist()),
        tuple((counts[top] * step).tolist()),
        int(counts.sum()) * step,
        len(counts),
        tuple(
            ", ".join(map(str, row))[:_LONGEST_TEXT]
            for row in zip(*(each.to_pylist() for each in chosen), strict=True)
        ),
    )


MOST_TRACKED = 1024
"""The most keys of a stage that are tracked."""

_ITEMS = 16_384  # of an epoch
_WINDOW = 16 * _ITEMS  # about the last epochs that count
_EPSILON = 1e-4
_REMEMBERED = 256  # keys in a manifest


@dataclass
class FrequentKeys:
    """The frequent keys of one stage; `keys` is the largest number of keys in an epoch."""

    keys: int = 0
    _counting: SlidingCounting = field(default_factory=lambda: SlidingCounting(_EPSILON, _WINDOW))
    _strangers: int = 0

    def resume(self, counts: KeyCounts) -> None:
        """Continue from what a manifest holds."""
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
        # What is not reported counts in the total, as keys that come once and never again.
        others = max(0, round(total / scale) - len(items))
        strangers = np.arange(self._strangers, self._strangers + others, dtype=np.uint64)
        self._strangers += others
        self._counting.update(np.concatenate([items, splitmix64(strangers, seed=1)]))

    def known(self) -> Frequencies:
        """The keys that came more than once, with their shares."""
        found = self._counting.items()
        often = found.counts > 1
        shares = found.frequencies[often]
        return Frequencies(found.hashes[often][:MOST_TRACKED], shares[:MOST_TRACKED])

    def counts(self) -> KeyCounts:
        """The part that a manifest holds."""
        known = self.known()
        known = Frequencies(known.hashes[:_REMEMBERED], known.shares[:_REMEMBERED])
        counts = np.round(known.shares * _ITEMS).astype(np.int64)
        kept = counts > 0
        return KeyCounts(
            tuple(known.hashes[kept].view(np.int64).tolist()), tuple(counts[kept].tolist()), _ITEMS, self.keys
        )
