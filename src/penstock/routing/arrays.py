"""The exported form of a router: two small arrays, which numpy and Spark evaluate in O(1) to the same result.

`ring` has an entry for each cell of the hash space, found by the top bits of a hash: the channel of the
cell in the low 32 bits, and above them the displacement that leads to the one slot of `table` where a
hash of that cell can be. `table` has the keys of the slots in its first half and their channels in the
second. So a route is one access to the ring and one to the table, present or not ([003] §4.1.1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.displacement import displace, probe
from penstock.routing.router import Channels, Hashes, Router
from penstock.sketches.wire import pack, unpack

__all__ = ["CHANNEL_BITS", "Cells", "Exported", "RouteArrays", "cells_of", "route_arrays"]

CHANNEL_BITS = 32
Cells = NDArray[np.uint16]
"""The first 16 bits of hashes."""
_MOST_CELLS = 1 << 16
_LEAST_CELLS = 1024  # of a ring under a table
_CHUNK = 8192  # hashes at a time: what a chunk needs stays in the cache, and its arrays on the heap


def cells_of(hashes: Hashes) -> Cells:
    """The first 16 bits of every hash: rows keep them, so that a move need not hash their keys again."""
    return (hashes >> np.uint64(48)).astype(np.uint16)


class Exported(Router, Protocol):
    """A router that is nothing but its arrays."""

    @property
    def arrays(self) -> "RouteArrays":
        """What Spark needs to evaluate the same function."""
        ...


@dataclass(frozen=True, eq=False)
class RouteArrays:
    """A router as data: `channels`, the arrays `table` and `ring`, and the `fold` of the table's probe.

    >>> arrays = route_arrays(np.array([7], np.uint64), np.array([2], np.int32), np.array([0, 1]), 3)
    >>> arrays.route(np.array([7, 8, 2**63], np.uint64)).tolist()
    [2, 0, 1]
    """

    channels: int
    table: NDArray[np.int64]
    ring: NDArray[np.int64]
    fold: int = 32

    @property
    def shift(self) -> int:
        """How far to shift a hash to the right to have its cell; 64 if there is only one cell."""
        return 65 - len(self.ring).bit_length()

    @property
    def slots(self) -> int:
        """Places in the table, a power of two; 0 without a table."""
        return len(self.table) // 2

    def route(self, hashes: Hashes) -> Channels:
        """The channel of every hash."""
        routes = np.empty(len(hashes), np.int32)
        for start in range(0, len(hashes), _CHUNK):
            piece = slice(start, start + _CHUNK)
            self._route_chunk(hashes[piece], routes[piece])
        return routes

    def by_cells(self, cells: Cells, hashes: Callable[[NDArray[np.int64]], Hashes]) -> Channels:
        """The same from the first 16 bits of every hash; those of rows in doubt are asked for by place.

        In doubt are only cells in which a key of the table lies, so most rows cost one look-up.
        """
        if len(self.ring) > _MOST_CELLS:
            return self.route(hashes(np.arange(len(cells))))
        owners, doubtful = self._cells
        routes = owners.take(cells, mode="clip")
        if doubtful is not None:
            at = np.flatnonzero(doubtful.take(cells, mode="clip"))
            routes[at] = self.route(hashes(at))
        return routes

    @cached_property
    def _cells(self) -> tuple[Channels, NDArray[np.bool_] | None]:
        """For all 16-bit cells their channel by the ring, and which have a key of the table."""
        owners = np.repeat(self.ring.astype(np.int32), _MOST_CELLS // len(self.ring))
        if not self.slots:
            return owners, None
        doubtful = np.zeros(_MOST_CELLS, np.bool_)
        doubtful[cells_of(self._keys)] = True
        return owners, doubtful

    def to_bytes(self) -> bytes:
        """A form to send or to store."""
        numbers = {"channels": self.channels, "fold": self.fold}
        return pack("route-arrays", numbers, [self.table, self.ring])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The arrays that `to_bytes` wrote."""
        numbers, (table, ring) = unpack("route-arrays", data)
        return cls(numbers["channels"], table, ring, numbers["fold"])

    def _route_chunk(self, hashes: Hashes, routes: Channels) -> None:
        # Every index is in range by construction; "clip" only spares numpy the buffer that "raise" needs.
        cells = (
            (hashes >> np.uint64(self.shift)).view(np.int64)
            if len(self.ring) > 1
            else 0 * hashes.view(np.int64)
        )
        entries = self.ring.take(cells, mode="clip")
        routes[:] = entries  # keeps the low 32 bits, which are the channel
        if not self.slots:
            return
        entries >>= CHANNEL_BITS
        entries ^= probe(hashes, self.fold, self.slots)
        found = self._keys.take(entries, mode="clip") == hashes
        # Adding what the table changes beats a masked copy, which would guess a branch for every hash.
        change = self._targets.take(entries, mode="clip")
        change -= routes
        change *= found
        routes += change

    @cached_property
    def _keys(self) -> Hashes:
        return self.table[: self.slots].view(np.uint64)

    @cached_property
    def _targets(self) -> Channels:
        return self.table[self.slots :].astype(np.int32)


def route_arrays(keys: Hashes, targets: Channels, cells: NDArray[np.integer], channels: int) -> RouteArrays:
    """The arrays of an explicit table of keys over a ring of cells; the number of cells is a power of two.

    The table takes 32 to 64 bytes for each key, the ring 8 for each cell. Cells are cut until there are at
    least two for each key.
    """
    if not len(cells) or len(cells) & (len(cells) - 1):
        raise BadRouting(f"a ring has {len(cells)} cells; give a power of two")
    ring = cells.astype(np.int64)
    if not len(keys):
        return RouteArrays(channels, np.zeros(0, np.int64), ring)
    # Finer cells have fewer keys each, which then find their slots at once.
    wanted = max(_LEAST_CELLS, 1 << (2 * len(keys) - 1).bit_length())
    ring = np.repeat(ring, max(1, wanted // len(ring)))
    groups = (keys >> np.uint64(65 - len(ring).bit_length())).view(np.int64)
    placed = displace(keys, groups, len(ring))
    slots = probe(keys, placed.fold, placed.slots) ^ placed.displacements[groups]
    # Empty slots hold the first key, which is looked for in its own slot only.
    table = np.full((2, placed.slots), keys.view(np.int64)[0], np.int64)
    table[0, slots], table[1, slots] = keys.view(np.int64), targets
    return RouteArrays(
        channels, table.reshape(-1), ring | (placed.displacements << CHANNEL_BITS), placed.fold
    )
