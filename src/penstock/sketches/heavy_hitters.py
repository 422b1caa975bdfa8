"""Weighted heavy hitters: the items that carry most weight, in 1/epsilon places for a stream of any length.

The weight of an item is too low by at most `epsilon` times the weight of all, so every item with more
than that share is in memory. It is the weighted form of Misra and Gries, whose summaries merge without
loss of the bound: add them up, then subtract the weight of the first item that finds no place. A whole
batch is one such merge here; the frequent items of datasketches have the same bound, but take whole
weights only, and one item a call.
"""

from math import ceil
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.sketches.counted import Counted, by_count
from penstock.sketches.weights import check_weights
from penstock.sketches.wire import pack, unpack

__all__ = ["HeavyHitters"]

Hashes = NDArray[np.uint64]
Weights = NDArray[np.float64]

_CHUNK = 65_536  # items that are summed up at once


class HeavyHitters:
    """Sums of the weights of hashed items, too low by at most `epsilon` of all weight.

    >>> heavy = HeavyHitters(epsilon=0.5)
    >>> heavy.update(np.array([1, 2, 3, 1], np.uint64), np.array([5.0, 1.0, 0.5, 5.0]))
    >>> found = heavy.frequent(support=0.5)
    >>> found.hashes.tolist(), found.counts.tolist(), found.errors.tolist(), found.total
    ([1], [9.5], [0.5], 11.5)
    """

    def __init__(self, epsilon: float) -> None:
        if not 1e-7 <= epsilon < 1:
            raise BadRouting(f"epsilon is {epsilon}; give 1e-07 or more and less than 1, such as 0.001")
        self.epsilon = epsilon
        self.places = ceil(1 / epsilon)
        self.hashes: Hashes = np.zeros(0, np.uint64)
        self.weights: Weights = np.zeros(0)
        self.error = 0.0  # how much any weight may be too low
        self.total = 0.0

    def update(self, hashes: Hashes, weights: Weights | None = None) -> None:
        """Take in one item for each hash, each with its weight, or each with weight 1."""
        check_weights(len(hashes), weights)
        for start in range(0, len(hashes), _CHUNK):
            piece = slice(start, start + _CHUNK)
            if weights is None:  # sorting hashes alone is several times faster
                distinct, times = np.unique(hashes[piece], return_counts=True)
                self._add(distinct, times.astype(float))
            else:
                self._add(hashes[piece], weights[piece])
        self.total += len(hashes) if weights is None else float(weights.sum())

    def items(self) -> Counted:
        """Everything in memory."""
        errors = np.full(len(self.hashes), self.error)
        return by_count(self.hashes, self.weights, errors, self.total)

    def frequent(self, support: float) -> Counted:
        """All items with a share of at least `support`, and some of at least `support` - `epsilon`."""
        if not self.epsilon <= support <= 1:
            raise BadRouting(f"support is {support}; give {self.epsilon} (epsilon) or more, and at most 1")
        return self.items().at_least(support * self.total - self.error)

    def merge(self, other: "HeavyHitters") -> None:
        """Take in all that another sketch of the same `epsilon` has seen; the bound holds for the union."""
        if other.epsilon != self.epsilon:
            raise BadRouting(f"sketches have epsilon {self.epsilon} and {other.epsilon}; give both the same")
        self._add(other.hashes, other.weights)
        self.error += other.error
        self.total += other.total

    def to_bytes(self) -> bytes:
        """A form to send or to store."""
        numbers = {"epsilon": self.epsilon, "error": self.error, "total": self.total}
        return pack("heavy-hitters", numbers, [self.hashes, self.weights])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch that `to_bytes` wrote."""
        numbers, (hashes, weights) = unpack("heavy-hitters", data)
        sketch = cls(numbers["epsilon"])
        sketch.hashes, sketch.weights = hashes, weights
        sketch.error, sketch.total = numbers["error"], numbers["total"]
        return sketch

    def _add(self, hashes: Hashes, weights: Weights) -> None:
        hashes, weights = _summed(
            np.concatenate([self.hashes, hashes]), np.concatenate([self.weights, weights])
        )
        if len(hashes) > self.places:
            # Each subtraction takes its amount from places + 1 items, so all of them are at most
            # total / (places + 1) together.
            first_out = np.partition(weights, -self.places - 1)[-self.places - 1]
            self.error += float(first_out)
            stays = weights > first_out
            hashes, weights = hashes[stays], weights[stays] - first_out
        self.hashes, self.weights = hashes, weights


def _summed(hashes: Hashes, weights: Weights) -> tuple[Hashes, Weights]:
    """Each hash once, with the sum of its weights."""
    if not len(hashes):
        return hashes, weights
    order = np.argsort(hashes, kind="stable")  # stable, for sums in the same order on every machine
    hashes = hashes[order]
    first = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    return hashes[first], np.add.reduceat(weights[order], first)
