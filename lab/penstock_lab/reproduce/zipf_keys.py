"""Zipf keys as the partitioning experiments see them: all keys count exactly, but rare ones by ring cell.

A router that is a table and a ring sends all keys of a cell to one channel unless the table names them. So
keys too rare for any table are added up by cell once, and each router is then measured on few entries.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.routing.balance import Balance, balance, loads
from penstock.routing.frequencies import Frequencies
from penstock.routing.resources import Growth, Resources
from penstock.routing.router import Costs, Hashes, Router, relative_migration
from penstock.sketches.splitmix import splitmix64

__all__ = ["CELLS", "Population", "zipf_keys"]

CELLS = 16_384
_NAMED = 20_000
_CHUNK = 1 << 20
# Rings place replicas by the same hash; with the same seed, replica k of channel 0 would lie on key k.
_APART = 1 << 40


@dataclass(frozen=True)
class Population:
    """The frequent keys by name, then all others by cell, with what they cost under each growth."""

    named: Frequencies
    hashes: Hashes
    costs: Mapping[Growth, Costs]

    def balance(self, router: Router, resources: Resources) -> Balance:
        """The relative imbalance over every key."""
        routes = router.route(self.hashes)
        return balance(
            resources,
            {growth: loads(routes, costs, router.channels) for growth, costs in self.costs.items()},
        )

    def migration(self, before: Router, after: Router, resources: Resources) -> float:
        """The relative migration over every key."""
        return relative_migration(before, after, self.hashes, self.costs[resources.state])


def zipf_keys(domain: int, skew: float, seed: int) -> Population:
    """`domain` keys, the k-th with a frequency proportional to 1 / k^skew; the seed draws their hashes.

    >>> keys = zipf_keys(100_000, 1.0, seed=7)
    >>> round(float(keys.costs[Growth.LINEAR].sum()), 9), int(keys.costs[Growth.CONSTANT].sum())
    (1.0, 100000)
    """
    norm = sum(float((ranks**-skew).sum()) for ranks in _ranks(domain))
    sums = {growth: np.zeros(CELLS) for growth in Growth}
    names, shares = [], []
    for ranks in _ranks(domain):
        hashes = splitmix64(ranks.astype(np.uint64), seed + _APART)
        frequencies = ranks**-skew / norm
        rare = ranks > _NAMED
        names.append(hashes[~rare])
        shares.append(frequencies[~rare])
        cells = (hashes[rare] >> np.uint64(50)).astype(np.intp)
        for growth in Growth:
            sums[growth] += np.bincount(cells, growth.costs(frequencies[rare]), CELLS)
    named = Frequencies(np.concatenate(names), np.concatenate(shares))
    # A point inside each cell stands for its rare keys; a named key has this hash only by a rare accident.
    points = (np.arange(CELLS, dtype=np.uint64) << np.uint64(50)) | np.uint64(0x1234567)
    costs = {growth: np.concatenate([growth.costs(named.shares), sums[growth]]) for growth in Growth}
    return Population(named, np.concatenate([named.hashes, points]), costs)


def _ranks(domain: int) -> Iterator[Costs]:
    for start in range(1, domain + 1, _CHUNK):
        yield np.arange(start, min(start + _CHUNK, domain + 1), dtype=np.float64)
