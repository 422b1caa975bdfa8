"""Items of a stream in their order, as runs: each item so many times in a row.

A channel reports keys with their counts. A sketch that takes the counts in costs as much as there are keys,
however many items they stand for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Runs"]


@dataclass(frozen=True, eq=False)
class Runs:
    """Each of these hashes so many times in a row; then so many `others`, which nobody can tell apart.

    Of the others none comes more than once, now or later, so they need no hashes.

    >>> runs = Runs(np.array([7, 8], np.uint64), np.array([3, 2]), others=1)
    >>> first, rest = runs[:4], runs[4:]
    >>> len(runs), first.hashes.tolist(), first.counts.tolist(), rest.counts.tolist(), rest.others
    (6, [7, 8], [3, 1], [1], 1)
    """

    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]
    others: int = 0

    def __post_init__(self) -> None:
        """Leave out items that do not come at all."""
        if not self.counts.all():
            there = self.counts > 0
            object.__setattr__(self, "hashes", self.hashes[there])
            object.__setattr__(self, "counts", self.counts[there])

    @classmethod
    def of(cls, items: NDArray[np.uint64]) -> "Runs":
        """Items that each come once."""
        return cls(items, np.ones(len(items), np.int64))

    @classmethod
    def joined(cls, parts: Sequence["Runs"]) -> "Runs":
        """The runs of all of these together; the others come last."""
        if len(parts) == 1:
            return parts[0]
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none.view(np.uint64), *(each.hashes for each in parts)]),
            np.concatenate([none, *(each.counts for each in parts)]),
            sum(each.others for each in parts),
        )

    def __len__(self) -> int:
        return int(self.counts.sum()) + self.others

    def __getitem__(self, place: slice) -> "Runs":
        """The items between two places; a run may be cut."""
        size = len(self)
        start, stop, _ = place.indices(size)
        if (start, stop) == (0, size):
            return self
        ends = np.cumsum(self.counts)
        within = np.minimum(ends, stop) - np.maximum(ends - self.counts, start)
        kept = within > 0
        return Runs(self.hashes[kept], within[kept], max(stop - max(start, size - self.others), 0))

    def counted(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Each item once, in rising order, with its count; without the others.

        >>> [each.tolist() for each in Runs.of(np.array([5, 3, 5], np.uint64)).counted()]
        [[3, 5], [1, 2]]
        """
        if not len(self.hashes):
            return self.hashes, self.counts
        order = np.argsort(self.hashes, kind="stable")
        hashes = self.hashes[order]
        first = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
        return hashes[first], np.add.reduceat(self.counts[order], first)
