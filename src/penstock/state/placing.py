"""Where rows of state belong after a change of router: which stay in their channel, and where others go.

Rows of a whole key go where their key goes. A join may hold copies of a row in several channels, if its key
is hot or the join is a product. Then exactly one copy represents the row and is sent to the new channels;
the other copies are dropped. For rows of port 0, which go to all channels of a column, it is the first in the
column; for rows of port 1, which go to one channel of every column, it is the one in the first column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.columns import TIME
from penstock.routing import Batches, Grid, HashPair, JoinSpread, RouteArrays, Spread, WindowChannels
from penstock.routing.spark_hash import spark_hash
from penstock.sketches.splitmix import splitmix64
from penstock.state.segments import Mask

__all__ = [
    "EverywherePlacing",
    "GridPlacing",
    "KeyPlacing",
    "Placed",
    "Placing",
    "SpreadPlacing",
    "StateLayout",
    "WindowPlacing",
    "losing",
]

Rows = NDArray[np.int64]
Targets = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class StateLayout:
    """The placement of a stage's state: a router over a number of channels, and the hot keys of a join.

    Where rows lie with the windows that they are in, `batches` says which windows share a channel.
    """

    router: HashPair | None
    channels: int
    spread: Spread | None = None
    batches: Batches | None = None

    def join_router(self) -> JoinSpread:
        """The router of an equi-join."""
        assert self.router is not None
        return (self.spread or Spread()).router(self.router)

    def losing(self, after: "StateLayout") -> set[int] | None:
        """The channels that lose state when `after` replaces this placement; None if any channel may."""
        if self.router is None or after.router is None:
            return None
        if self.spread is not after.spread or (self.spread is not None and self.spread.keys):
            return None
        return losing(self.router, after.router) | set(range(after.channels, self.channels))


@dataclass(frozen=True, eq=False)
class Placed:
    """For a table of state: which rows stay, and pairs of a row and the other channel that it goes to.

    `hashes` are those of all rows and serve to count moved keys; rows without a key have none.
    """

    stays: Mask
    rows: Rows
    targets: Targets
    hashes: NDArray[np.uint64] | None = None


class Placing(Protocol):
    """A change of router for the state of one stage; shipped to the workers."""

    def place(self, rows: Any, keys: tuple[str, ...], port: int, channel: int) -> Placed:
        """Where the rows of that channel belong.

        `keys` are the columns that the router hashes, in its order; `port` says which copy rule applies.
        """
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
    """State of whole keys."""

    after: RouteArrays

    def place(self, rows: Any, keys: tuple[str, ...], port: int, channel: int) -> Placed:
        """Every row goes to the channel of its key."""
        del port
        hashes = spark_hash([rows[name] for name in keys], rows.num_rows)
        routes = self.after.route(hashes)
        moving = np.flatnonzero(routes != channel)
        return Placed(routes == channel, moving, routes[moving], hashes)


@dataclass(frozen=True)
class SpreadPlacing:
    """State of an equi-join whose hot keys may be on grids before, after, or both."""

    before: JoinSpread
    after: JoinSpread

    def place(self, rows: Any, keys: tuple[str, ...], port: int, channel: int) -> Placed:
        """Send rows of whole keys to their channel, and rows on grids to a new grid if theirs changes."""
        columns = [rows[name] for name in keys]
        hashes = spark_hash(columns, rows.num_rows)
        known = np.ones(rows.num_rows, np.bool_)
        for column in columns:
            known &= np.asarray(column.is_valid())
        old, new = self.before.arrays.route(hashes), self.after.arrays.route(hashes)
        # A row without a key matches nothing, so it may stay in any channel that remains.
        remains = channel < self.after.channels
        stays = np.where(known, self._unchanged(old, new), remains)
        dealt = np.flatnonzero(known & ~stays & self._first_copy(old, port, channel))
        salts = splitmix64(dealt.astype(np.uint64), seed=channel)
        copies = (self.after.left if port == 0 else self.after.right)(hashes[dealt], salts)
        own = copies.channels == channel
        stays[dealt[copies.rows[own]]] = True
        moving, targets = dealt[copies.rows[~own]], copies.channels[~own]
        if not remains:
            lost = np.flatnonzero(~known)
            moving = np.concatenate([moving, lost])
            targets = np.concatenate([targets, np.full(len(lost), channel % self.after.channels, np.int32)])
        return Placed(stays, moving, targets, hashes)

    def _unchanged(self, old: Targets, new: Targets) -> Mask:
        """Whether a row's key has the same channel or the same grid as before."""
        same = np.asarray((old == new) & (old >= 0), np.bool_)
        both = np.flatnonzero((old < 0) & (new < 0))
        pairs, at = np.unique(~np.stack([old[both], new[both]], axis=1), axis=0, return_inverse=True)
        alike = [_grid(self.before, one) == _grid(self.after, other) for one, other in pairs.tolist()]
        same[both] = np.array(alike, np.bool_)[at.reshape(-1)]
        return same

    def _first_copy(self, old: Targets, port: int, channel: int) -> Mask:
        """Whether the copy in this channel is the one that represents the row."""
        first = np.ones(len(old), np.bool_)
        spread = np.flatnonzero(old < 0)
        places = range(len(self.before.counts))
        chosen = np.array([channel in _first_cells(self.before, place, port) for place in places], np.bool_)
        first[spread] = chosen[~old[spread]] if len(spread) else True
        return first


def _grid(spread: JoinSpread, place: int) -> tuple[int, list[int]]:
    start, count = int(spread.starts[place]), int(spread.counts[place])
    return int(spread.across[place]), spread.cells[start : start + count].tolist()


def _first_cells(spread: JoinSpread, place: int, port: int) -> set[int]:
    """The channels whose copies represent the rows of a key on a grid."""
    begin = int(spread.column_starts[place])
    columns = range(begin, begin + int(spread.across[place]))
    firsts = [int(spread.firsts[column]) for column in columns]
    if port == 0:
        return {int(spread.cells[first]) for first in firsts}
    return set(spread.cells[firsts[0] : firsts[0] + int(spread.heights[begin])].tolist())


@dataclass(frozen=True)
class GridPlacing:
    """State of a product, whose rows are on a grid of all channels."""

    before: Grid
    after: Grid

    def place(self, rows: Any, keys: tuple[str, ...], port: int, channel: int) -> Placed:
        """Send one copy of each row to the new grid and drop the others."""
        del keys
        stays = np.full(rows.num_rows, self.before == self.after, np.bool_)
        if self.before == self.after or channel not in self._first_cells(port):
            return Placed(stays, np.zeros(0, np.int64), np.zeros(0, np.int32))
        salts = splitmix64(np.arange(rows.num_rows, dtype=np.uint64), seed=channel)
        copies = (self.after.left if port == 0 else self.after.right)(salts)
        own = copies.channels == channel
        stays[copies.rows[own]] = True
        return Placed(stays, copies.rows[~own], copies.channels[~own])

    def _first_cells(self, port: int) -> Sequence[int]:
        heights = self.before.heights
        if port == 1:
            return range(heights[0])
        return [sum(heights[:column]) for column in range(len(heights))]


@dataclass(frozen=True)
class EverywherePlacing:
    """State that every channel has whole: new channels get it from the first, and others lose it."""

    before: int
    after: int

    def place(self, rows: Any, keys: tuple[str, ...], port: int, channel: int) -> Placed:
        """Copy all rows of the first channel to the channels that are new."""
        del keys, port
        stays = np.full(rows.num_rows, channel < self.after, np.bool_)
        new = np.arange(self.before, self.after, dtype=np.int32) if channel == 0 else np.zeros(0, np.int32)
        every = np.arange(rows.num_rows, dtype=np.int64)
        return Placed(stays, np.tile(every, len(new)), np.repeat(new, rows.num_rows))


@dataclass(frozen=True)
class WindowPlacing:
    """State that lies on every channel that computes one of its windows.

    A row's time is that of its bucket in `column`, each `width` long from `offset` on.
    """

    before: WindowChannels
    after: WindowChannels
    column: str = TIME
    width: int = 1
    offset: int = 0

    def place(self, rows: Any, keys: tuple[str, ...], port: int, channel: int) -> Placed:
        """Keep what is needed here; the copy of the last window goes to channels that need the row anew.

        Every live row is on all channels of its windows: copies die together, by time.
        """
        del keys, port
        times = rows[self.column].to_numpy() * self.width + self.offset
        needed, targets = self.after.deliveries(times)
        stays = np.zeros(rows.num_rows, np.bool_)
        stays[needed[targets == channel]] = True
        held, holders = self.before.deliveries(times)
        span = max(self.before.channels, self.after.channels)
        lacking = ~np.isin(needed * span + targets, held * span + holders)
        sent = lacking & (self.before.last(times) == channel)[needed]
        return Placed(stays, needed[sent], targets[sent])
