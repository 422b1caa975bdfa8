"""What one item costs on average, from two count-min matrices of equal size: counts and total costs.

The pair of [001] §5.2. An item's cost is read from the cell in which the fewest others share
its place: the least frequency, and the time of that same cell.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.sketches.count_min import CountMin
from penstock.sketches.wire import pack, unpack

__all__ = ["MeanCost"]


class MeanCost:
    """Mean cost of hashed items: frequencies and summed costs in matrices with the same hash functions.

    >>> sketch = MeanCost(epsilon=0.05, delta=0.05)
    >>> sketch.update(np.array([5, 5, 9], np.uint64), np.array([2.0, 4.0, 10.0]))
    >>> sketch.means(np.array([5, 9], np.uint64)).tolist()
    [3.0, 10.0]
    """

    def __init__(self, epsilon: float, delta: float, seed: int = 0) -> None:
        self.counts = CountMin(epsilon, delta, seed)
        self.costs = CountMin(epsilon, delta, seed)

    @classmethod
    def of(cls, counts: CountMin, costs: CountMin) -> Self:
        """The sketch whose two matrices these are; they need the same hash functions."""
        sketch = cls.__new__(cls)
        sketch.counts, sketch.costs = counts, costs
        return sketch

    def update(self, hashes: NDArray[np.uint64], costs: NDArray[np.float64]) -> None:
        """Take in one item for each hash with what it cost."""
        self.costs.update(hashes, costs)
        self.counts.update(hashes)

    def means(self, hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The mean cost of each item; for an item that was never seen, the mean over all items."""
        counts, costs = self.counts.cells(hashes), self.costs.cells(hashes)
        best = counts.argmin(axis=0), np.arange(len(hashes))
        overall = self.costs.total / self.counts.total if self.counts.total else 0.0
        means: NDArray[np.float64] = np.full(len(hashes), overall)
        np.divide(costs[best], counts[best], out=means, where=counts[best] > 0)
        return means

    def ratios(self) -> NDArray[np.float64]:
        """The mean cost in each cell, 0 in an empty one: the snapshot of [001] §5.2."""
        counts, costs = self.counts.matrix, self.costs.matrix
        return np.divide(costs, counts, out=np.zeros_like(costs), where=counts > 0)

    def merge(self, other: "MeanCost") -> None:
        """Take in all that another sketch with the same parameters has seen."""
        self.counts.merge(other.counts)
        self.costs.merge(other.costs)

    def to_bytes(self) -> bytes:
        """A form to send or to store."""
        parts = (self.counts.to_bytes(), self.costs.to_bytes())
        return pack("mean-cost", {}, [np.frombuffer(part, np.uint8) for part in parts])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch that `to_bytes` wrote."""
        _, (counts, costs) = unpack("mean-cost", data)
        return cls.of(CountMin.from_bytes(counts.tobytes()), CountMin.from_bytes(costs.tobytes()))
