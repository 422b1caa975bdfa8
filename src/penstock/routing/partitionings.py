"""The registry of partitionings: each gives the first router of a stage and the successor of a router.

To add one, write its algorithm in a file of its own, as a function from a router, the known frequencies, a
number of channels and a goal to the next router, and name it in `REGISTRY`. The contract suite covers it.

Two know nothing of keys: "uniform" has the most even cells and moves almost every key when the number of
channels changes, and "consistent" moves one channel's share. The others place frequent keys in a table over a
ring ([003] §4.2); "balanced" also weighs the cells of the ring.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.errors import BadRouting
from penstock.routing.balanced import balanced
from penstock.routing.cell_ring import CellRing
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.readjust import readjust
from penstock.routing.redistribute import redistribute
from penstock.routing.ring import Ring
from penstock.routing.scan import scan
from penstock.routing.threshold import Goal

__all__ = ["PARTITIONINGS", "REGISTRY", "Partitioning", "first_router", "next_router"]

First = Callable[[int], HashPair]
Next = Callable[[HashPair, Frequencies, int, Goal], HashPair]

_NO_KEYS = (np.zeros(0, np.uint64), np.zeros(0, np.int32))


@dataclass(frozen=True)
class Partitioning:
    """A way to make routers: `first` while nothing is known, `next` from a router and known frequencies.

    Without `next` it looks at the number of channels only.
    """

    first: First
    next: Next | None = None


def _consistent(channels: int) -> HashPair:
    return HashPair(*_NO_KEYS, Ring(channels))


def _even(channels: int) -> HashPair:
    """Cells go to channels in turn."""
    ring = Ring(channels)
    cells = np.arange(ring.buckets, dtype=np.int32) % np.int32(channels)
    return HashPair(*_NO_KEYS, CellRing.over(ring, cells, channels))


REGISTRY: Mapping[str, Partitioning] = {
    "balanced": Partitioning(_even, balanced),
    "uniform": Partitioning(_even),
    "consistent": Partitioning(_consistent),
    "scan": Partitioning(_consistent, scan),
    "redist": Partitioning(_consistent, redistribute),
    "readj": Partitioning(_consistent, readjust),
}
PARTITIONINGS = tuple(REGISTRY)


def first_router(partitioning: str, channels: int) -> HashPair:
    """The router of a stage of which nothing is known yet.

    >>> np.bincount(first_router("balanced", 4).ring.cells).tolist()
    [4096, 4096, 4096, 4096]
    >>> np.bincount(first_router("consistent", 4).ring.cells).tolist()
    [4065, 4144, 4103, 4072]
    """
    return _named(partitioning).first(channels)


def next_router(
    partitioning: str, before: HashPair, known: Frequencies, channels: int, goal: Goal
) -> HashPair:
    """The successor of `before` on `channels` channels, from the frequencies that are known."""
    named = _named(partitioning)
    return named.first(channels) if named.next is None else named.next(before, known, channels, goal)


def _named(partitioning: str) -> Partitioning:
    if partitioning not in REGISTRY:
        raise BadRouting(f"partitioning is {partitioning!r}; give one of {', '.join(REGISTRY)}")
    return REGISTRY[partitioning]
