"""Where rows of state belong after a change of router, decided by each channel for itself.

A move sends no rows. It gives every channel that may get rows of a segment a reference to the whole file, and
whoever reads the file asks the placing of that move which rows are its own. So the answer for a row depends
on nothing but the row, the number that it has in its file, and a seed that is the same for all who ask: every
row belongs to the channels that have to have it, once in each, without a word between them.

Rows of a whole key go where their key goes. A join may hold copies of a row in several channels, if its key
is hot or the join is a product. Then exactly one copy represents the row and is dealt to the new channels;
the other copies are dropped. For rows of port 0, which go to all channels of a column, it is the first in the
column; for rows of port 1, which go to one channel of every column, it is the one in the first column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.columns import TIME
from penstock.routing import Batches, Grid, HashPair, JoinSpread, Ring, RouteArrays, Spread, WindowChannels
from penstock.routing.cell_ring import CellRing
from penstock.routing.spark_hash import spark_hash
from penstock.routing.window_shape import WindowShape
from penstock.sketches.splitmix import splitmix64

__all__ = [
    "EverywherePlacing",
    "Flow",
    "GridPlacing",
    "KeyPlacing",
    "Mask",
    "Numbers",
    "Placing",
    "Read",
    "SpreadPlacing",
    "StateLayout",
    "WindowPlacing",
    "placing_from",
]

Mask = NDArray[np.bool_]
Targets = NDArray[np.int32]
Numbers = NDArray[np.int64]

Flow = Mapping[int, float | None]
"""The channels that may get rows of a segment, each with the share of them to expect; None for all rows."""

_CHANNEL = np.int64((1 << 32) - 1)  # the part of an entry of a ring that is the channel
_MOST_TIMES = 1024  # times of a segment for which channels are looked up


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


@dataclass(frozen=True, eq=False)
class Read:
    """Rows of a segment that a channel held before a move, as a placing sees them.

    `rows` has the columns that the placing asks for, and `numbers` are the numbers of the rows in their file.
    `keys` are the columns that the router hashes, in its order; `port` says which copy rule applies. `seed`
    is the same for all channels that read these rows.
    """

    rows: Any
    numbers: Numbers
    keys: tuple[str, ...] = ()
    port: int = 0
    seed: int = 0

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """The hash of each key."""
        return spark_hash([self.rows[name] for name in self.keys], len(self.numbers))

    def salts(self, at: Numbers) -> NDArray[np.uint64]:
        """A uniform number for each of these rows."""
        return splitmix64(self.numbers[at].astype(np.uint64), seed=self.seed)


class Placing(Protocol):
    """A change of router for the state of one stage."""

    kind: ClassVar[str]
    """Its name in the checkpoint."""
    coarse: ClassVar[bool]
    """Whether derived rows belong where the rows do that they are derived from."""

    def columns(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """The columns of the rows that it looks at."""
        ...

    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """Where rows of a segment of a channel may go; its rows have these bounds in their table."""
        ...

    def takes(self, read: Read, source: int, target: int) -> Mask:
        """Which rows that channel `source` had belong to channel `target`, which may be the same."""
        ...

    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Plain values and arrays, from which `placing_from` makes the same placing."""
        ...


@dataclass(frozen=True, eq=False)
class KeyPlacing:
    """State of whole keys."""

    before: RouteArrays
    after: RouteArrays

    kind: ClassVar[str] = "key"
    coarse: ClassVar[bool] = True

    def columns(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """The keys."""
        return keys

    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """By the cells of the ring and the keys of the tables that the channel has."""
        del port, bounds
        old, new = self._homes
        own = np.unique(new[old == source]).tolist()
        found = {**dict.fromkeys(own, 0.0), **self._ring.get(source, {})}
        return {source: None} if found.keys() <= {source} and source < self.after.channels else found

    def takes(self, read: Read, source: int, target: int) -> Mask:
        """Every row goes to the channel of its key."""
        del source
        return np.asarray(self.after.route(read.hashes) == target)

    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """The router after the move; that before it only says who has to read, which is known by then."""
        return {"channels": self.after.channels, "fold": self.after.fold}, [self.after.table, self.after.ring]

    @classmethod
    def unpacked(cls, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> "KeyPlacing":
        """A placing that tells whose rows are whose."""
        table, ring = arrays
        after = RouteArrays(values["channels"], table, ring, values["fold"])
        return cls(after, after)

    @cached_property
    def _ring(self) -> dict[int, dict[int, float]]:
        return _ring_flows(*((each.ring & _CHANNEL) for each in (self.before, self.after)))

    @cached_property
    def _homes(self) -> tuple[Targets, Targets]:
        """The channels of all keys that stand in one of the tables, before and after."""
        tables = [each.table[: each.slots].view(np.uint64) for each in (self.before, self.after)]
        keys = np.unique(np.concatenate(tables))
        return self.before.route(keys), self.after.route(keys)


@dataclass(frozen=True, eq=False)
class SpreadPlacing:
    """State of an equi-join whose hot keys may be on grids before, after, or both."""

    before: JoinSpread
    after: JoinSpread

    kind: ClassVar[str] = "spread"
    coarse: ClassVar[bool] = False

    def columns(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """The keys."""
        return keys

    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """By cells and keys as of whole keys; rows of a grid that changes are dealt to all of the new one."""
        del bounds
        home = self._home(source)
        found = {home: 0.0, **self._ring.get(source, {})}
        loses = found.keys() != {source}
        old, new, unchanged = self._keys
        for one, other, same in zip(old.tolist(), new.tolist(), unchanged.tolist(), strict=True):
            if same or source not in _channels(self.before, one):
                continue
            # A copy that represents no row is dropped.
            loses = True
            if one >= 0 or source in _first_cells(self.before, ~one, port):
                found |= {target: found.get(target, 0.0) for target in _channels(self.after, other)}
        return found if loses else {source: None}

    def takes(self, read: Read, source: int, target: int) -> Mask:
        """Rows of whole keys go to their channel, and rows on grids to a new grid if theirs changes."""
        known = np.ones(len(read.numbers), np.bool_)
        for name in read.keys:
            known &= np.asarray(read.rows[name].is_valid())
        old, new = self.before.arrays.route(read.hashes), self.after.arrays.route(read.hashes)
        unchanged = self._unchanged(old, new)
        # A row without a key matches nothing, so it may be in any channel.
        mine = np.where(known, unchanged & (source == target), self._home(source) == target)
        dealt = np.flatnonzero(known & ~unchanged & self._first_copy(old, read.port, source))
        deal = self.after.left if read.port == 0 else self.after.right
        copies = deal(read.hashes[dealt], read.salts(dealt))
        mine[dealt[copies.rows[copies.channels == target]]] = True
        return mine

    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """The arrays of both routers."""
        both = (self.before, self.after)
        arrays = [
            array
            for each in both
            for array in (each.keys, each.sizes, each.columns, each.targets, each.ring.cells)
        ]
        return {"channels": [each.channels for each in both]}, arrays

    @classmethod
    def unpacked(cls, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> "SpreadPlacing":
        """The same placing."""
        before, after = (
            JoinSpread(keys, sizes, columns, targets, CellRing.over(Ring(1), cells, channels))
            for (keys, sizes, columns, targets, cells), channels in zip(
                (arrays[:5], arrays[5:]), values["channels"], strict=True
            )
        )
        return cls(before, after)

    def _home(self, source: int) -> int:
        """Where the rows without a key go: they stay as long as their channel does."""
        return source % self.after.channels if source >= self.after.channels else source

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

    @cached_property
    def _ring(self) -> dict[int, dict[int, float]]:
        return _ring_flows(self.before.ring.cells, self.after.ring.cells)

    @cached_property
    def _keys(self) -> tuple[Targets, Targets, Mask]:
        """The routes before and after of all keys that have their own, and whether they are the same."""
        keys = np.union1d(self.before.keys, self.after.keys)
        old, new = (each.arrays.route(keys) for each in (self.before, self.after))
        return old, new, self._unchanged(old, new)


def _ring_flows(old: NDArray[Any], new: NDArray[Any]) -> dict[int, dict[int, float]]:
    """For each channel the channels that get cells of it, itself included, with the share of its cells."""
    size = max(len(old), len(new))
    old, new = (np.repeat(each, size // len(each)).astype(np.int64) for each in (old, new))
    pairs, counts = np.unique(np.stack([old, new]), axis=1, return_counts=True)
    found: dict[int, dict[int, float]] = {}
    cells = np.bincount(old)
    for source, target, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        found.setdefault(source, {})[target] = count / int(cells[source])
    return found


def _grid(spread: JoinSpread, place: int) -> tuple[int, list[int]]:
    start, count = int(spread.starts[place]), int(spread.counts[place])
    return int(spread.across[place]), spread.cells[start : start + count].tolist()


def _channels(spread: JoinSpread, route: int) -> set[int]:
    """The channels of a route: one, or those of a grid."""
    return {route} if route >= 0 else set(_grid(spread, ~route)[1])


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

    kind: ClassVar[str] = "grid"
    coarse: ClassVar[bool] = False

    def columns(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """None: the number of a row decides."""
        del keys
        return ()

    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """One copy of each row goes to the new grid, and the others are dropped."""
        del bounds
        if self.before == self.after:
            return {source: None}
        if source not in self._first_cells(port):
            return {}
        heights = np.repeat(self.after.heights, self.after.heights)
        shares = heights / self.after.channels if port == 0 else 1 / heights
        return dict(enumerate(shares.tolist()))

    def takes(self, read: Read, source: int, target: int) -> Mask:
        """Those whose copies the new grid has there."""
        del source
        copies = (self.after.left if read.port == 0 else self.after.right)(
            read.salts(np.arange(len(read.numbers)))
        )
        mine = np.zeros(len(read.numbers), np.bool_)
        mine[copies.rows[copies.channels == target]] = True
        return mine

    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """The shapes of both grids."""
        return {"before": asdict(self.before), "after": asdict(self.after)}, []

    @classmethod
    def unpacked(cls, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> "GridPlacing":
        """The same placing."""
        del arrays
        return cls(Grid(**values["before"]), Grid(**values["after"]))

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

    kind: ClassVar[str] = "everywhere"
    coarse: ClassVar[bool] = True

    def columns(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """None."""
        del keys
        return ()

    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """All rows, so nobody has to choose among them."""
        del port, bounds
        new = range(self.before, self.after) if source == 0 else ()
        return dict.fromkeys([*([source] if source < self.after else []), *new])

    def takes(self, read: Read, source: int, target: int) -> Mask:
        """All rows."""
        del source, target
        return np.ones(len(read.numbers), np.bool_)

    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Both numbers of channels."""
        return {"before": self.before, "after": self.after}, []

    @classmethod
    def unpacked(cls, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> "EverywherePlacing":
        """The same placing."""
        del arrays
        return cls(values["before"], values["after"])


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

    kind: ClassVar[str] = "window"
    coarse: ClassVar[bool] = False

    def columns(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """The bucket."""
        del keys
        return (self.column,)

    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """By the windows of the times in a segment; of many times some are looked up."""
        del port
        if self.before == self.after:
            return {source: None}
        first, end = bounds
        few = end - first <= _MOST_TIMES
        buckets = np.arange(first, end) if few else np.linspace(first, end - 1, _MOST_TIMES).astype(np.int64)
        shares = {
            target: float(self._taken(buckets, source, target).mean()) if len(buckets) else 0.0
            for target in range(self.after.channels)
        }
        return {target: share for target, share in shares.items() if share or not few}

    def takes(self, read: Read, source: int, target: int) -> Mask:
        """What is needed stays; the copy of the last window goes to channels that need the row anew.

        Every live row is on all channels of its windows: copies die together, by time.
        """
        return self._taken(read.rows[self.column].to_numpy(), source, target)

    def _taken(self, buckets: Numbers, source: int, target: int) -> Mask:
        times = buckets * self.width + self.offset
        needed = _delivered(self.after, times, target)
        if source == target:
            return needed
        sent: Mask = needed & ~_delivered(self.before, times, target) & (self.before.last(times) == source)
        return sent

    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Plain values of both layouts."""
        return asdict(self), []

    @classmethod
    def unpacked(cls, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> "WindowPlacing":
        """The same placing."""
        del arrays
        before, after = (
            WindowChannels(WindowShape(**each["shape"]), Batches.from_json(each["batches"]), each["channels"])
            for each in (values["before"], values["after"])
        )
        return cls(before, after, values["column"], values["width"], values["offset"])


def _delivered(windows: WindowChannels, times: Numbers, channel: int) -> Mask:
    """Whether a channel computes a window of each time."""
    rows, channels = windows.deliveries(times)
    found = np.zeros(len(times), np.bool_)
    found[rows[channels == channel]] = True
    return found


_KINDS: Mapping[str, Any] = {
    each.kind: each for each in (KeyPlacing, SpreadPlacing, GridPlacing, EverywherePlacing, WindowPlacing)
}


def placing_from(kind: str, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> Placing:
    """The placing of a kind from what it was packed into."""
    found: Placing = _KINDS[kind].unpacked(values, arrays)
    return found
