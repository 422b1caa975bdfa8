"""Rows of a key are formed in the less loaded of two channels: partial key grouping ([pkg]).

Every key has two channels that may form its partials, so a hot key never fills one, and a key has at most
two partials, however often it changes. Nothing is counted by key and nobody has to know which keys are hot. A
task goes by the rows that it has sent itself: with enough rows, what is even for each task is even for all.
Loads are looked at again after each block of rows, so where rows are cut into batches changes nothing.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from penstock.distribution.distribution import Forming, Placed
from penstock.routing import Ring
from penstock.routing.spark_hash import spark_hash
from penstock.sketches.splitmix import splitmix64

__all__ = ["LessLoaded", "TwoChoices"]

_BLOCK: Final = 256


@dataclass(frozen=True)
class TwoChoices(Forming):
    """All keys have two channels each."""

    kind: ClassVar[str] = "two choices"
    dealing: ClassVar[str] = "two choices"

    def open(self, keys: tuple[str, ...], bucket: str, channels: int, task: int) -> "LessLoaded":
        """By the loads of a task."""
        del bucket, task
        return LessLoaded(keys, channels)

    def words(self, channels: int) -> str:
        """For people."""
        return f"every key in the less loaded of two among {channels} channels"


@dataclass
class LessLoaded:
    """Rows go to the less loaded of the two channels of their key; the first of equals."""

    keys: tuple[str, ...]
    channels: int
    _passed: int = 0
    _known: NDArray[np.int64] = field(init=False)
    _block: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self._known, self._block = np.zeros((2, self.channels), np.int64)

    def place(self, rows: Any) -> Placed:
        """By the loads when the block of a row began."""
        ring = Ring(self.channels)
        hashes = spark_hash([rows[name] for name in self.keys], rows.num_rows)
        first, second = ring.route(hashes), ring.route(splitmix64(hashes, seed=1))
        found = np.empty(rows.num_rows, np.int32)
        start = 0
        while start < rows.num_rows:
            end = min(rows.num_rows, start + _BLOCK - self._passed % _BLOCK)
            one, other = first[start:end], second[start:end]
            found[start:end] = np.where(self._known[other] < self._known[one], other, one)
            self._block += np.bincount(found[start:end], minlength=self.channels)
            self._passed += end - start
            if self._passed % _BLOCK == 0:
                self._known += self._block
                self._block[:] = 0
            start = end
        return None, found
