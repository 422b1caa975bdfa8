"""What a counting sketch knows: items, counts that are never too high, and bounds on how low they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counted"]


@dataclass(frozen=True, eq=False)
class Counted:
    """Hashed items by falling count; the truth is at least `counts` and at most `counts` + `errors`.

    `total` is the count, or weight, of everything that was seen.
    """

    hashes: NDArray[np.uint64]
    counts: NDArray[np.float64]
    errors: NDArray[np.float64]
    total: float

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """The share of each item in the total, too low by at most errors / total."""
        return self.counts / max(self.total, 1e-300)

    def at_least(self, count: float) -> "Counted":
        """Only the items with at least this count."""
        kept = self.counts >= count
        return Counted(self.hashes[kept], self.counts[kept], self.errors[kept], self.total)


def by_count(
    hashes: NDArray[np.uint64], counts: NDArray[np.generic], errors: NDArray[np.generic], total: float
) -> Counted:
    """These items in the order of `Counted`: falling counts, equal ones by hash."""
    order = np.lexsort((hashes, -counts.astype(np.float64)))
    return Counted(hashes[order], counts[order].astype(float), errors[order].astype(float), float(total))
