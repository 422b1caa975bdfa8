"""A uniform hash: the most even shares that a hash can give, and almost every key moves when N changes.

The baseline of [003] §5: cell modulo N, where the cells are the top bits of the hash, so that it
exports as a ring. Shares differ by at most N / buckets of themselves.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.errors import BadRouting
from penstock.routing import Channels, Hashes, RouteArrays
from penstock.routing.arrays import route_arrays

__all__ = ["UniformHash"]


@dataclass(frozen=True)
class UniformHash:
    """Routes a hash by its cell modulo `channels`.

    >>> UniformHash(3).route(np.array([0, 2**48, 2**49, 3 * 2**48], np.uint64)).tolist()
    [0, 1, 2, 0]
    """

    channels: int
    buckets: int = 65_536

    def __post_init__(self) -> None:
        if not 1 <= self.channels <= self.buckets:
            raise BadRouting(f"channels is {self.channels}; give 1 to {self.buckets}, the number of buckets")

    @cached_property
    def arrays(self) -> RouteArrays:
        """The exported form: a ring without a table."""
        cells = np.arange(self.buckets, dtype=np.int32) % np.int32(self.channels)
        return route_arrays(np.zeros(0, np.uint64), np.zeros(0, np.int32), cells, self.channels)

    def route(self, hashes: Hashes) -> Channels:
        """The channel of every hash."""
        return self.arrays.route(hashes)
