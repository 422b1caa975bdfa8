"""Count-min: how often, or how heavily, any item occurred, never too low and rarely much too high.

For each item the estimate is at least the truth, and exceeds it by `epsilon` times the weight of all
other items with probability at most `delta`, in a matrix of ln(1/delta) rows and e/epsilon columns
([001] §5.1, which rounds e to 2.7).
"""

from collections.abc import Iterator
from math import ceil, e, log
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.sketches.splitmix import splitmix64
from penstock.sketches.weights import check_weights
from penstock.sketches.wire import pack, unpack

__all__ = ["CountMin"]

# The last bit of a logarithm depends on the processor; it must not decide on the size of the matrix.
_ROUNDING = 1e-9
_CHUNK = 16_384  # items at a time: indices and hashes of a chunk stay in the cache
_LOW = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)


class CountMin:
    """Counts of hashed items, or sums of their weights, within (`epsilon`, `delta`).

    Sketches with the same `epsilon`, `delta` and `seed` share their hash functions, so their matrices can
    be merged, or divided cell by cell. A sum of counts is exact up to 2**53. An update costs one pass
    over the items for each row.

    >>> sketch = CountMin(epsilon=0.7, delta=0.25)
    >>> sketch.rows, sketch.columns
    (2, 4)
    >>> sketch.update(np.array([5, 5, 9], np.uint64))
    >>> sketch.estimate(np.array([5, 9, 1], np.uint64)).tolist(), sketch.total
    ([2.0, 1.0, 0.0], 3.0)
    """

    def __init__(self, epsilon: float, delta: float, seed: int = 0) -> None:
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if not 0 < value < 1:
                raise BadRouting(f"{name} is {value}; give more than 0 and less than 1, such as 0.05")
        if not 0 <= seed < 1 << 63:
            raise BadRouting(f"seed is {seed}; give 0 to 2**63 - 1")
        self.epsilon, self.delta, self.seed = epsilon, delta, seed
        self.rows, self.columns = ceil(log(1 / delta) - _ROUNDING), ceil(e / epsilon - _ROUNDING)
        self.matrix: NDArray[np.float64] = np.zeros((self.rows, self.columns))
        self.total = 0.0
        numbers = np.arange(3 * self.rows, dtype=np.uint64)
        self._coefficients = splitmix64(numbers, seed + 1).reshape(self.rows, 3)

    def update(self, hashes: NDArray[np.uint64], weights: NDArray[np.float64] | None = None) -> None:
        """Take in one item for each hash, each with its weight, or each once."""
        check_weights(len(hashes), weights)
        for start in range(0, len(hashes), _CHUNK):
            piece = slice(start, start + _CHUNK)
            weight = None if weights is None else weights[piece]
            for row, columns in enumerate(self._columns(hashes[piece])):
                self.matrix[row] += np.bincount(columns, weight, minlength=self.columns)
        self.total += len(hashes) if weights is None else float(weights.sum())

    def estimate(self, hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The count or weight of each item."""
        estimates = np.full(len(hashes), np.inf)
        for row, columns in zip(self.matrix, self._columns(hashes), strict=True):
            np.minimum(estimates, row[columns], out=estimates)
        return estimates

    def cells(self, hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Of each row, the cells of these items; the least of an item's cells is its estimate."""
        columns = self._columns(hashes)
        return np.stack([row[at] for row, at in zip(self.matrix, columns, strict=True)])

    def merge(self, other: "CountMin") -> None:
        """Take in all that another sketch with the same parameters has seen; bounds stay as they are."""
        mine, theirs = ((each.epsilon, each.delta, each.seed) for each in (self, other))
        if mine != theirs:
            raise BadRouting(
                f"sketches differ in (epsilon, delta, seed): {mine} and {theirs}; give both the same"
            )
        self.matrix += other.matrix
        self.total += other.total

    def fade(self, kept: float) -> None:
        """Let all that it has seen count only as this part of it."""
        if not 0 <= kept <= 1:
            raise BadRouting(f"a sketch fades to {kept} of itself; give 0 to 1")
        self.matrix *= kept
        self.total *= kept

    def to_bytes(self) -> bytes:
        """A form to send or to store."""
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "seed": self.seed, "total": self.total}
        return pack("count-min", numbers, [self.matrix])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch that `to_bytes` wrote."""
        numbers, (matrix,) = unpack("count-min", data)
        sketch = cls(numbers["epsilon"], numbers["delta"], numbers["seed"])
        sketch.matrix, sketch.total = matrix, numbers["total"]
        return sketch

    def _columns(self, hashes: NDArray[np.uint64]) -> Iterator[NDArray[np.int64]]:
        """Of each row, the columns of these items.

        (a * high + b * low + c) / 2**32 is 2-universal over both halves of a hash; its 32 bits are then
        scaled to the number of columns.
        """
        high, low = hashes >> _HALF, hashes & _LOW
        for a, b, c in self._coefficients:
            word = (high * a + low * b + c) >> _HALF
            yield ((word * np.uint64(self.columns)) >> _HALF).view(np.int64)
