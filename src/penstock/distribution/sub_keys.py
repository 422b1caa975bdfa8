"""Rows of hot keys are formed in several channels, by sub-keys of each ([000] §4.1).

Only the forming of partials is partitioned by sub-keys; the state of a key stays whole in its own channel.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.distribution.distribution import Forming, Placed
from penstock.routing import Frequencies, Ring, SubKeys, split_hot_keys
from penstock.routing.spark_hash import spark_hash
from penstock.sketches.splitmix import splitmix64

__all__ = ["GRAIN", "MOST_SPLIT", "BySubKey", "SplitKey", "SubKeyPlan", "plan_sub_keys"]

GRAIN = 1024
"""Sub-keys in the fair share of one channel: their load is uneven by about 1/sqrt(GRAIN), 3 %."""
MOST_SPLIT = 256
"""The most keys of a stage that are split."""


@dataclass(frozen=True)
class SplitKey:
    """A hot key: Spark's signed hash, its share of all tuples, its number of sub-keys, its readable text."""

    hash: int
    share: float
    parts: int
    text: str = ""


@dataclass(frozen=True)
class SubKeyPlan(Forming):
    """The keys that are split, hottest first, each with its number of sub-keys.

    >>> plan = SubKeyPlan((SplitKey(5, 0.5, 16, "berlin"),))
    >>> plan.router(4).counts.tolist()
    [16]
    """

    keys: tuple[SplitKey, ...]

    kind: ClassVar[str] = "sub-keys"

    def open(self, keys: tuple[str, ...], bucket: str, channels: int, task: int) -> "BySubKey":
        """Rows of these keys to their sub-keys, others by the ring."""
        del bucket
        return BySubKey(keys, self.router(channels), task)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "SubKeyPlan":
        """The plan from its plain values."""
        return cls(tuple(SplitKey(**each) for each in value["keys"]))

    def router(self, channels: int) -> SubKeys:
        """The router that sends rows to the channels that form partials."""
        hashes = np.array([each.hash for each in self.keys], np.int64).view(np.uint64)
        return SubKeys(hashes, np.array([each.parts for each in self.keys], np.int64), Ring(channels))

    def imbalance(self, known: Frequencies, channels: int) -> float:
        """The busiest forming channel over the mean, given key frequencies; other keys are even."""
        router = self.router(channels)
        loads = np.full(channels, max(1.0 - known.shares.sum(), 0.0) / channels)
        routes = router.arrays.route(known.hashes)
        whole = routes >= 0
        loads += np.bincount(routes[whole], known.shares[whole], minlength=channels)
        shares = np.zeros(len(router.counts))
        shares[~routes[~whole]] = known.shares[~whole]
        each = np.repeat(shares / router.counts, router.counts)
        loads += np.bincount(router.targets, each, minlength=channels)
        return float(loads.max() / loads.mean())

    def words(self, channels: int, most: int = 3) -> str:
        """Which keys are split and why.

        >>> SubKeyPlan((SplitKey(5, 0.5, 16, "berlin"),)).words(4)
        'berlin with 50.0 % of the rows, 2.0 times the fair share of 1/4, into 16 sub-keys'
        """
        named = [
            f"{each.text or hex(each.hash)} with {100 * each.share:.1f} % of the rows, "
            f"{each.share * channels:.1f} times the fair share of 1/{channels}, into {each.parts:,} sub-keys"
            for each in self.keys[:most]
        ]
        rest = len(self.keys) - len(named)
        return "; ".join([*named, *([f"and {rest} more keys"] if rest else [])])


def plan_sub_keys(known: Frequencies, channels: int, texts: dict[int, str]) -> SubKeyPlan | None:
    """Sub-keys for the hottest keys in proportion to frequency; None if no key needs more than one."""
    hottest = Frequencies(known.hashes[:MOST_SPLIT], known.shares[:MOST_SPLIT])
    router = split_hot_keys(hottest.hashes, hottest.shares, Ring(channels), grain=GRAIN)
    signed = hottest.hashes.view(np.int64).tolist()
    keys = tuple(
        SplitKey(hash_, round(share, 6), parts, texts.get(hash_, ""))
        for hash_, share, parts in zip(signed, hottest.shares.tolist(), router.parts.tolist(), strict=True)
        if parts > 1
    )
    return SubKeyPlan(keys) if keys else None


@dataclass
class BySubKey:
    """Rows of hot keys go to their sub-keys in turn.

    The turn comes from a hash of a row's number in its task, since the number may follow a pattern of keys.
    """

    keys: tuple[str, ...]
    router: SubKeys
    task: int
    _passed: int = 0

    @property
    def channels(self) -> int:
        """Those of the ring."""
        return self.router.channels

    def place(self, rows: Any) -> Placed:
        """By the hash of the key, and the turn."""
        hashes = spark_hash([rows[name] for name in self.keys], rows.num_rows)
        numbers = np.arange(self._passed, self._passed + rows.num_rows, dtype=np.uint64)
        self._passed += rows.num_rows
        turns = (splitmix64(numbers, seed=self.task) >> np.uint64(1)).astype(np.int64)
        return None, self.router.route(hashes, turns)
