"""Where rows of state belong after a change of router: which stay in their channel, and which go where.

State that is parted by keys goes where its key goes. A join may hold a row in several channels, of a hot key
or of a product: then exactly one of its copies, the first of its column or the one in the first column, is
taken for the row, and dealt anew; the others are dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Grid, HashPair, JoinSpread, RouteArrays
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.spread import Spread
from penstock.sketches.splitmix import splitmix64

__all__ = ["GridPlacing", "Homes", "KeyPlacing", "Placed", "Placing", "SpreadPlacing", "losing"]


@dataclass(frozen=True, eq=False)
class Homes:
    """Where the state of a stage is: by a router, over so many channels, with the hot keys of a join."""

    router: HashPair | None
    channels: int
    spread: Spread | None = None

    def spread_router(self) -> JoinSpread:
        """The router of an equi-join."""
        assert self.router is not None
        return (self.spread or Spread()).router(self.router)


@dataclass(frozen=True)
class Placed:
    """Of a table of state: which rows stay, and pairs of a row and the other channel that it goes to.

    `hashes` are those of the rows, by which keys are counted; rows without a key have none.
    """

    stays: NDArray[np.bool_]
    rows: NDArray[np.int64]
    targets: NDArray[np.int32]
    hashes: NDArray[np.uint64] | None = None


class Placing(Protocol):
    """A change of router, as the state of one stage sees it; shipped to the workers."""

    def place(self, part: str, table: Any, channel: int) -> Placed:
        """Where the rows of a segment of that part, now in that channel, belong."""
        ...


def losing(before: HashPair, after: HashPair) -> set[int]:
    """The channels that lose keys."""
    size = max(len(before.ring.cells), len(after.ring.cells))
    old, new = (np.repeat(each.ring.cells, size // len(each.ring.cells)) for each in (before, after))
    keys = np.union1d(before.keys, after.keys)
    homes = before.route(keys)
    moved = [old[old != new], homes[homes != after.route(keys)]]
    return set(np.unique(np.concatenate(moved)).tolist())


@dataclass(frozen=True)
class KeyPlacing:
    """State of whole keys: `keys` are the columns that the router hashes, in its order."""

    keys: tuple[str, ...]
    after: RouteArrays

    def place(self, part: str, table: Any, channel: int) -> Placed:
        """Every row goes to the channel of its key."""
        del part
        hashes = spark_hash([table[name] for name in self.keys], table.num_rows)
        routes = self.after.route(hashes)
        moving = np.flatnonzero(routes != channel)
        return Placed(routes == channel, moving, routes[moving], hashes)


@dataclass(frozen=True)
class SpreadPlacing:
    """State of an equi-join, of which hot keys may be spread before, after, or both."""

    keys: tuple[str, ...]
    before: JoinSpread
    after: JoinSpread

    def place(self, part: str, table: Any, channel: int) -> Placed:
        """Rows of whole keys go to their channel, spread ones are dealt anew if their grid changes."""
        left = part == "left"
        columns = [table[name] for name in self.keys]
        hashes = spark_hash(columns, table.num_rows)
        known = np.ones(table.num_rows, np.bool_)
        for column in columns:
            known &= np.asarray(column.is_valid())
        old, new = self.before.arrays.route(hashes), self.after.arrays.route(hashes)
        # A row without a key matches nothing, so it may stay anywhere that there is.
        there = channel < self.after.channels
        stays = np.where(known, self._unchanged(old, new), there)
        dealt = np.flatnonzero(known & ~stays & self._first_copy(old, channel, left=left))
        salts = splitmix64(dealt.astype(np.uint64), seed=channel)
        deal = self.after.left if left else self.after.right
        copies = deal(hashes[dealt], salts)
        own = copies.channels == channel
        stays[dealt[copies.rows[own]]] = True
        rows, targets = dealt[copies.rows[~own]], copies.channels[~own]
        if not there:
            lost = np.flatnonzero(~known)
            rows = np.concatenate([rows, lost])
            targets = np.concatenate([targets, np.full(len(lost), channel % self.after.channels, np.int32)])
        return Placed(stays, rows, targets, hashes)

    def _unchanged(self, old: Any, new: Any) -> NDArray[np.bool_]:
        """Whether a row's key has the same channel or the same grid as before."""
        same = np.asarray((old == new) & (old >= 0), np.bool_)
        both = np.flatnonzero((old < 0) & (new < 0))
        pairs, at = np.unique(~np.stack([old[both], new[both]], axis=1), axis=0, return_inverse=True)
        alike = [_grid(self.before, one) == _grid(self.after, other) for one, other in pairs.tolist()]
        same[both] = np.array(alike, np.bool_)[at.reshape(-1)]
        return same

    def _first_copy(self, old: Any, channel: int, *, left: bool) -> NDArray[np.bool_]:
        """Whether the copy in this channel is the one that stands for the row."""
        first = np.ones(len(old), np.bool_)
        spread = np.flatnonzero(old < 0)
        chosen = np.array(
            [
                channel in _first_cells(self.before, place, left=left)
                for place in range(len(self.before.counts))
            ],
            np.bool_,
        )
        first[spread] = chosen[~old[spread]] if len(spread) else True
        return first


def _grid(spread: JoinSpread, place: int) -> tuple[int, list[int]]:
    start, count = int(spread.starts[place]), int(spread.counts[place])
    return int(spread.across[place]), spread.cells[start : start + count].tolist()


def _first_cells(spread: JoinSpread, place: int, *, left: bool) -> set[int]:
    """The channels whose copies stand for the rows of a spread key."""
    begin = int(spread.column_starts[place])
    columns = range(begin, begin + int(spread.across[place]))
    firsts = [int(spread.firsts[column]) for column in columns]
    if left:
        return {int(spread.cells[first]) for first in firsts}
    return set(spread.cells[firsts[0] : firsts[0] + int(spread.heights[begin])].tolist())


@dataclass(frozen=True)
class GridPlacing:
    """State of a product, whose rows lie on a grid of all channels."""

    before: Grid
    after: Grid

    def place(self, part: str, table: Any, channel: int) -> Placed:
        """One copy of each row is dealt anew."""
        rows, left = table.num_rows, part == "left"
        nothing = Placed(np.zeros(rows, np.bool_), np.zeros(0, np.int64), np.zeros(0, np.int32))
        if channel not in self._first_cells(left=left):
            return nothing
        salts = splitmix64(np.arange(rows, dtype=np.uint64), seed=channel)
        copies = (self.after.left if left else self.after.right)(salts)
        own = copies.channels == channel
        stays = nothing.stays
        stays[copies.rows[own]] = True
        return Placed(stays, copies.rows[~own], copies.channels[~own])

    def _first_cells(self, *, left: bool) -> Sequence[int]:
        heights = self.before.heights
        if not left:
            return range(heights[0])
        return [sum(heights[:column]) for column in range(len(heights))]
