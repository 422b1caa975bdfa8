"""Keys of Zipf frequency with unrelated hashes, drawn from a seed: the tuples of the experiments on keys."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Hashes
from penstock_lab.workloads import draw, zipf_shares

__all__ = ["SkewedKeys"]


@dataclass(frozen=True)
class SkewedKeys:
    """`count` keys; the key with rank r, counted from 1, has a frequency in proportion to r ** -`skew`."""

    count: int
    skew: float

    @cached_property
    def hashes(self) -> Hashes:
        """The hash of every key, most frequent first.

        Not from SplitMix64, which places the channels on the ring: keys must fall there independently.
        """
        return np.random.default_rng(0).integers(0, 2**64, self.count, dtype=np.uint64)

    @cached_property
    def frequencies(self) -> NDArray[np.float64]:
        """The part of all tuples that every key has."""
        return zipf_shares(self.count, self.skew)

    def draw(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The keys of this many tuples, as places in `hashes`."""
        return draw(rng, self.frequencies, tuples)
