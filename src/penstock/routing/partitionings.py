"""The partitioning functions by name: the first router of a stage, and the successor of a router.

Two know nothing of keys: "uniform" has the evenest cells and moves almost every key when N changes, and
"consistent" moves a channel's share. The others place frequent keys in a table over a ring (003, section
4.2); "balanced" weighs the cells of the ring as well.
"""

from typing import Literal, get_args

import numpy as np

from penstock.errors import BadRouting
from penstock.routing.cell_ring import CellRing
from penstock.routing.constructors import CONSTRUCTORS
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.ring import Ring
from penstock.routing.threshold import Goal

__all__ = ["PARTITIONINGS", "Partitioning", "first_router", "next_router"]

Partitioning = Literal["balanced", "uniform", "consistent", "scan", "redist", "readj"]
PARTITIONINGS: tuple[Partitioning, ...] = get_args(Partitioning)

_NO_KEYS = (np.zeros(0, np.uint64), np.zeros(0, np.int32))


def first_router(partitioning: str, channels: int) -> HashPair:
    """The router of a stage of which nothing is known yet.

    >>> np.bincount(first_router("balanced", 4).ring.cells).tolist()
    [4096, 4096, 4096, 4096]
    >>> np.bincount(first_router("consistent", 4).ring.cells).tolist()
    [4065, 4144, 4103, 4072]
    """
    _known(partitioning)
    ring = Ring(channels)
    return HashPair(*_NO_KEYS, ring if partitioning not in {"balanced", "uniform"} else _even(ring))


def next_router(
    partitioning: str, before: HashPair, known: Frequencies, channels: int, goal: Goal
) -> HashPair:
    """The successor of `before` on `channels` channels, from the frequencies that are known."""
    _known(partitioning)
    if partitioning in {"uniform", "consistent"}:
        return first_router(partitioning, channels)
    return CONSTRUCTORS[partitioning](before, known, channels, goal)


def _even(ring: Ring) -> CellRing:
    """Cells dealt to channels in turn."""
    return CellRing.over(
        ring, np.arange(ring.buckets, dtype=np.int32) % np.int32(ring.channels), ring.channels
    )


def _known(partitioning: str) -> None:
    if partitioning not in PARTITIONINGS:
        raise BadRouting(f"partitioning is {partitioning!r}; give one of {', '.join(PARTITIONINGS)}")
