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
"""The most rows of a channel that are counted; of more rows the heavy ones and a sample of the others."""

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

    The counts of more rows than `MOST_ROWS` are estimates, the total is exact.

    >>> import pyarrow as pa
    >>> found = count_keys([pa.chunked_array([["a", "b", "a"]])], 3)
    >>> found.counts, found.total, found.keys
    ((2, 1), 3, 2)
    """
    if not columns or not rows:
        return KeyCounts(total=rows)
    total = rows if weights is None else int(weights.sum())
    estimates: NDArray[Any] | None = weights
    if rows > MOST_ROWS:
        at, estimates = _sampled(rows, weights)
        columns = [column.take(at) for column in columns]
        rows = len(at)
    numbers, keys = number_keys(list(columns), rows)
    counts = np.round(np.bincount(numbers, estimates)).astype(np.int64)
    most = min(MOST_KEYS, len(counts))
    top = np.argpartition(-counts, most - 1)[:most]
    top = top[np.argsort(-counts[top], kind="stable")]
    chosen = [column.take(top) for column in keys]
    hashes = spark_hash(chosen, len(top))
    return KeyCounts(
        tuple(hashes.view(np.int64).tolist()),
        tuple(counts[top].tolist()),
        total,
        len(counts),
        tuple(
            ", ".join(map(str, row))[:_LONGEST_TEXT]
            for row in zip(*(each.to_pylist() for each in chosen), strict=True)
        ),
    )


def _sampled(rows: int, weights: NDArray[np.int64] | None) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Places and weights of the rows that stand for all: every heavy row, and a sample of the light ones.

    A row is heavy if it has more than 1/32,768 of all weight, so no frequent key is missed or overrated
    because of one row. The sample takes a row at random out of each of many equal runs, so that no period in
    the data can meet it. The same rows always give the same sample.
    """
    if weights is None:
        taken = _one_of_each_run(rows, MOST_ROWS)
        return taken, np.full(len(taken), rows / len(taken))
    total = int(weights.sum())
    is_heavy = weights > total / (MOST_ROWS // 2)
    heavy = np.flatnonzero(is_heavy)
    taken = _one_of_each_run(rows, MOST_ROWS - len(heavy))
    taken = taken[~is_heavy[taken]]
    rest, found = total - int(weights[heavy].sum()), int(weights[taken].sum())
    scaled = weights[taken] * (rest / found if found else 1.0)
    return np.concatenate([heavy, taken]), np.concatenate([weights[heavy].astype(np.float64), scaled])


def _one_of_each_run(rows: int, most: int) -> NDArray[np.intp]:
    """A place at random out of each of at most so many equal runs of rows."""
    run = -(-rows // most)
    starts = np.arange(0, rows, run)
    within = splitmix64(starts.astype(np.uint64), seed=2) % np.uint64(run)
    return np.minimum(starts + within.astype(np.intp), rows - 1)


MOST_TRACKED = 1024
"""The most keys of a stage that are tracked."""

_ITEMS = 16_384  # of an epoch
_WINDOW = 4 * _ITEMS  # about the last epochs that count; with more, changed keys are known too late
# Errors of shares: more is never needed for the table, and less than half an item of an epoch cannot be seen.
_EPSILON, _FINEST = 1e-4, 0.5 / _ITEMS
_REMEMBERED = 256  # keys in a manifest


@dataclass
class FrequentKeys:
    """The frequent keys of one stage; `keys` is the largest number of keys in an epoch."""

    keys: int = 0
    _counting: SlidingCounting = field(default_factory=lambda: SlidingCounting(_EPSILON, _WINDOW))
    _strangers: int = 0

    @property
    def epsilon(self) -> float:
        """By how much a share may be too low."""
        return self._counting.epsilon

    def aim(self, delta: float) -> None:
        """Count finely enough for keys of this share: with errors of a tenth of it, as far as can be seen.

        Never coarser than before; finer counters start from the keys that a manifest would hold.
        """
        epsilon = max(delta / 10, _FINEST)
        # By half at least, so that a goal that changes little does not start the counters again.
        if epsilon < self.epsilon:
            counts = self.counts()
            self._counting = SlidingCounting(max(min(epsilon, self.epsilon / 2), _FINEST), _WINDOW)
            self.update([counts])

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
