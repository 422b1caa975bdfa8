"""Keys with their relative frequencies, the most frequent first: what a counter knows about the stream."""

from dataclasses import dataclass

import numpy as np

from penstock.errors import BadRouting
from penstock.routing.router import Costs, Hashes

__all__ = ["Frequencies"]


@dataclass(frozen=True)
class Frequencies:
    """Known keys and the fraction of all tuples that each has; every other key is rarer or unknown.

    >>> known = Frequencies(np.array([7, 8], dtype=np.uint64), np.array([0.1, 0.3]))
    >>> known.hashes.tolist(), known.at_least(0.2).hashes.tolist()
    ([8, 7], [8])
    """

    hashes: Hashes
    shares: Costs

    def __post_init__(self) -> None:
        if self.hashes.shape != self.shares.shape or self.hashes.ndim != 1:
            raise BadRouting(
                f"{self.hashes.shape} hashes and {self.shares.shape} shares; give one share for each key"
            )
        if np.any(self.shares[1:] > self.shares[:-1]):
            order = np.argsort(-self.shares, kind="stable")
            object.__setattr__(self, "hashes", self.hashes[order])
            object.__setattr__(self, "shares", self.shares[order])

    def __len__(self) -> int:
        return len(self.hashes)

    def at_least(self, threshold: float) -> "Frequencies":
        """The keys with at least this share."""
        # The shares fall, so the wanted keys are a prefix.
        count = int(np.searchsorted(-self.shares, -threshold, side="right"))
        return Frequencies(self.hashes[:count], self.shares[:count])

    def without(self, hashes: Hashes) -> "Frequencies":
        """What is known of all tuples but those of these keys; shares are of the tuples that are left.

        >>> known = Frequencies(np.array([7, 8], np.uint64), np.array([0.3, 0.5]))
        >>> known.without(np.array([8], np.uint64)).shares.tolist()
        [0.6]
        """
        apart = np.isin(self.hashes, hashes)
        rest = 1.0 - float(self.shares[apart].sum())
        if rest <= 0 or not apart.any():
            return Frequencies(self.hashes[~apart], self.shares[~apart])
        return Frequencies(self.hashes[~apart], self.shares[~apart] / rest)

    def of(self, hashes: Hashes) -> Costs:
        """The share of each of these keys, 0 for a key that is not known."""
        order = np.argsort(self.hashes)
        places = np.minimum(np.searchsorted(self.hashes, hashes, sorter=order), max(len(self) - 1, 0))
        if not len(self):
            return np.zeros(len(hashes))
        found = self.hashes[order[places]] == hashes
        return np.where(found, self.shares[order[places]], 0.0)
