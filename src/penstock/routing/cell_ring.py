"""A ring whose cells were given to channels one by one, for partitionings that weigh channels."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.ring import Ring
from penstock.routing.router import Channels, Costs, Hashes

__all__ = ["CellRing", "cells_of", "handed_over"]


@dataclass(frozen=True, eq=False)
class CellRing(Ring):
    """A ring with its owners written down; routes and exports like any other ring.

    Replicas and seed are those of the ring that it descends from.

    >>> ring = CellRing.over(Ring(2), np.array([0, 1, 2, 0], np.int32), 3)
    >>> ring.route(np.array([2**63], np.uint64)).tolist()
    [2]
    """

    owners: Channels = field(default_factory=lambda: np.zeros(0, np.int32))

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.owners) != self.buckets:
            raise BadRouting(f"{len(self.owners)} owners for {self.buckets} cells; give one for each cell")
        if not 0 <= self.owners.min() <= self.owners.max() < self.channels:
            raise BadRouting(
                f"owners go from {self.owners.min()} to {self.owners.max()}; "
                f"with {self.channels} channels give 0 to {self.channels - 1}"
            )

    @classmethod
    def over(cls, ring: Ring, owners: Channels, channels: int) -> "CellRing":
        """A ring of these owners that descends from `ring`."""
        return cls(channels, replicas=ring.replicas, buckets=len(owners), seed=ring.seed, owners=owners)

    @cached_property
    def cells(self) -> Channels:
        """The channel of every cell."""
        owners = self.owners.astype(np.int32)
        owners.flags.writeable = False
        return owners


def cells_of(hashes: Hashes, buckets: int) -> NDArray[np.intp]:
    """The cell of each hash, of a power of two."""
    if buckets == 1:
        return np.zeros(len(hashes), np.intp)
    return (hashes >> np.uint64(65 - buckets.bit_length())).astype(np.intp)


def handed_over(owners: Channels, shares: Costs) -> Channels:
    """Owners with these shares, with as few cells moved as possible."""
    wanted = np.floor(shares * len(owners)).astype(np.intp)
    rounded = np.argsort(wanted - shares * len(owners), kind="stable")[: len(owners) - int(wanted.sum())]
    wanted[rounded] += 1
    owners = owners.copy()
    have = np.bincount(owners, minlength=len(shares))
    rich = np.flatnonzero(have[: len(shares)] > wanted)
    given = [np.flatnonzero(owners == channel)[wanted[channel] :] for channel in rich]
    free = np.concatenate([np.flatnonzero(owners >= len(shares)), *given])
    owners[free] = np.repeat(np.arange(len(shares)), np.maximum(wanted - have[: len(shares)], 0))[: len(free)]
    return owners
