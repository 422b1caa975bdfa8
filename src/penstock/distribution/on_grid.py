"""Pairs of rows meet in exactly one channel: on a grid of all channels, or on one for each hot key of a join.

A row of the left side goes to all channels of a column of its grid, one of the right side to one channel of
every column ([002] §III.D). So rows have copies. When the layout changes, exactly one copy represents its row
and is dealt to the new channels; the others are dropped. For rows of port 0 it is the first in the column,
for rows of port 1 the one in the first column. On judged grids, those of full outer joins, it is the copy in
the cell that judges the row: no other knows whether it has matched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.distribution.distribution import (
    Distribution,
    Files,
    Held,
    Layout,
    Measured,
    Placed,
    Sample,
    Settings,
    Steering,
    dealt,
    salts,
)
from penstock.distribution.key_layout import KeyLayout, ring_flows
from penstock.distribution.key_steering import KeySteering
from penstock.routing import (
    Copied,
    Grid,
    JoinSpread,
    Ring,
    Spread,
    is_judged,
    left_delivers,
    shaped_grid,
    spread_hot_keys,
)
from penstock.routing.cell_ring import CellRing
from penstock.routing.spark_hash import spark_hash
from penstock.state.placing import Flow, Mask, Placing, Read, Targets

__all__ = [
    "Duty",
    "FirstGrids",
    "GridLayout",
    "GridPlacing",
    "JudgedGrids",
    "OnGrid",
    "OnGrids",
    "SpreadPlacing",
]

# How many of the most frequent keys of each side are considered for a grid, how many rows say enough about
# them, and how many rows of each side are read.
_MOST_KEYS: Final = 256
_FEWEST_ROWS: Final = 1_000
_ENOUGH_ROWS: Final = 100_000


# A grid of all channels.


@dataclass(frozen=True, kw_only=True)
class GridLayout(Layout):
    """The number of channels is all there is to say."""

    kind: ClassVar[str] = "on a grid"


@dataclass(frozen=True)
class OnGrid(Distribution):
    """Rows without a key, on a grid of all channels that copies only these sides.

    If neither side may have copies, all rows are in the first channel; where they are combined into
    `mergeable` partials by `bucket`, others may form them.
    """

    copied: Copied
    mergeable: bool = False
    slices: str = ""

    copies: ClassVar[bool] = True

    @property
    def bucket(self) -> str:
        """The column that numbers panes."""
        return self.slices

    def home(self, layout: GridLayout, files: Files, port: int, task: int) -> "GridPlacer":
        """On the grid."""
        del files, task
        return GridPlacer(shaped_grid(self.copied, layout.channels), port)

    def move(self, before: GridLayout, after: GridLayout, files: Files) -> "GridPlacing":
        """To the new grid."""
        del files
        return GridPlacing(*(shaped_grid(self.copied, each.channels) for each in (before, after)))

    def steering(self, settings: Settings, files: Files) -> "GridSteering":
        """As asked for."""
        return GridSteering(self, settings, files)


@dataclass
class GridSteering(Steering):
    """Follows the number of channels; rows without a key may be dealt out for their partials."""

    def first(self, channels: int, sample: Sample) -> GridLayout:
        """So many channels."""
        del sample
        return self._layout(channels, None)

    def follow(self, before: GridLayout, asked: Mapping[str, Any], held: Held, sample: Sample) -> GridLayout:
        """As many as are asked for."""
        del sample
        return self._layout(self.channels(before, asked), held)

    def _layout(self, channels: int, held: Held | None) -> GridLayout:
        forming = None
        if self.distribution.mergeable:
            forming = dealt(self.settings.dealing, channels, held, keyed=False)
        return GridLayout(channels=channels, forming=forming)


@dataclass(frozen=True)
class GridPlacer:
    """Rows of a port of a product, on a grid of all channels."""

    grid: Grid
    port: int

    @property
    def channels(self) -> int:
        """Those of the grid."""
        return self.grid.channels

    def place(self, rows: Any) -> Placed:
        """A copy for each channel of a column, or of a row."""
        copies = (self.grid.left, self.grid.right)[self.port](salts(rows))
        return copies.rows, copies.channels


@dataclass(frozen=True)
class GridPlacing(Placing):
    """State of a product, whose rows are on a grid of all channels."""

    before: Grid
    after: Grid

    kind: ClassVar[str] = "grid"
    coarse: ClassVar[bool] = False

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


# Grids of hot keys.


@dataclass(frozen=True)
class OnGrids(Distribution):
    """Rows of an equi-join: whole keys have a channel, hot ones a grid that copies only these sides.

    What a channel has to know of the layout are judged grids, if there are any.

    Both ports have the same `columns` as keys. A row without a key matches nothing, so it may go anywhere;
    all in one place would be a hot key.
    """

    columns: tuple[str, ...]
    copied: Copied

    copies: ClassVar[bool] = True

    def keys(self, port: int) -> tuple[str, ...]:
        """The columns that the router hashes."""
        del port
        return self.columns

    def home(self, layout: KeyLayout, files: Files, port: int, task: int) -> "SpreadPlacer":
        """By the router, or by grids."""
        del task
        return SpreadPlacer(self.columns, port, layout.join_router(files, judged=is_judged(self.copied)))

    def moves(self, before: Layout, after: Layout) -> bool:
        """If the router is another one, or a grid."""
        assert isinstance(before, KeyLayout)
        assert isinstance(after, KeyLayout)
        return before.places != after.places

    def move(self, before: KeyLayout, after: KeyLayout, files: Files) -> "SpreadPlacing":
        """Rows go with their keys, and to the new grid where they have copies."""
        judged = is_judged(self.copied)
        return SpreadPlacing(*(each.join_router(files, judged=judged) for each in (before, after)))

    def view(self, layout: KeyLayout) -> "JudgedGrids | None":
        """Which keys are on judged grids, if any is."""
        return JudgedGrids(layout.spread.grids) if is_judged(self.copied) and layout.spread.grids else None

    def steering(self, settings: Settings, files: Files) -> "GridsSteering":
        """By the frequent keys of both sides."""
        return GridsSteering(self, settings, files, copied=self.copied)


@dataclass(frozen=True)
class JudgedGrids:
    """The keys on judged grids: by the signed hash of each the number of left cells, and all cells."""

    grids: Mapping[int, tuple[int, tuple[int, ...]]]

    def duties(self, channel: int) -> Mapping[int, "Duty"]:
        """What a channel does for each key that has a cell there.

        >>> JudgedGrids({7: (2, (5, 0, 3))}).duties(3)
        {7: Duty(port=1, delivers=False)}
        """
        found = {}
        for key, (columns, cells) in self.grids.items():
            if channel in cells:
                port = int(cells.index(channel) >= columns)
                found[key] = Duty(port, left_delivers(len(cells), columns) == (port == 0))
        return found


@dataclass(frozen=True)
class Duty:
    """What a cell of a judged grid does: it judges its rows of a port, and may deliver all of its pairs."""

    port: int
    delivers: bool


@dataclass(frozen=True)
class FirstGrids:
    """How many keys the first tuples put on grids, and their share of the pairs; `made` unless only told."""

    keys: int
    share: float
    made: bool


@dataclass
class GridsSteering(KeySteering):
    """Puts hot keys on grids before the first tuples are sent; later they change by requests.

    `first_grids` is there if the last layout has them, or would have them.
    """

    first_grids: FirstGrids | None = None

    def follow(self, before: KeyLayout, asked: Mapping[str, Any], held: Held, sample: Sample) -> KeyLayout:
        """The next layout; the first grids once there are enough tuples to tell."""
        self.first_grids = None
        return super().follow(before, asked, held, sample)

    def observed(self, measured: Measured) -> dict[str, Any]:
        """The first grids too, after the epoch that has them."""
        return {**super().observed(measured), "first_grids": self.first_grids}

    def grids(self, channels: int, sample: Sample) -> Spread | None:
        """Those of the first tuples that are ahead; None if there are too few to tell."""
        adapts = self.settings.adapts
        if self.copied == "neither" or channels == 1 or self.settings.hosted or adapts == "off":
            return Spread()
        counted = [each for each in map(_counted, (sample(0), sample(1))) if len(each[0])]
        if sum(int(counts.sum()) for _, counts in counted) < _FEWEST_ROWS:
            return None
        if len(counted) == 1:
            counted *= 2
        keys = np.union1d(counted[0][0], counted[1][0])
        left, right = (_rates(keys, *each) for each in counted)
        spread = Spread.of(spread_hot_keys(keys.view(np.uint64), left, right, Ring(channels), self.copied))
        if spread.grids:
            pairs = left * right
            share = pairs[np.isin(keys, list(spread.grids))].sum() / pairs.sum()
            self.first_grids = FirstGrids(len(spread.grids), round(float(share), 4), adapts == "on")
        return spread if adapts == "on" else Spread()


def _counted(sample: Any) -> tuple[Any, Any]:
    """The most frequent hashes among the first rows of a port, with the number of rows of each."""
    found, rows = [np.zeros(0, np.int64)], 0
    for hashes in sample:
        found.append(hashes)
        rows += len(hashes)
        if rows >= _ENOUGH_ROWS:
            break
    every, place = np.unique(np.concatenate(found), return_inverse=True)
    counts = np.bincount(place, minlength=len(every)).astype(np.int64)
    most = np.lexsort((every, -counts))[:_MOST_KEYS]
    return every[most], counts[most]


def _rates(keys: Any, hashes: Any, counts: Any) -> Any:
    rates = np.zeros(len(keys))
    rates[np.searchsorted(keys, hashes)] = counts
    # A key that is not among the most frequent ones is at most as frequent as the last of them.
    return np.where(rates > 0, rates, counts.min() if len(counts) == _MOST_KEYS else 0.0)


@dataclass(frozen=True)
class SpreadPlacer:
    """Rows of a port of an equi-join: whole keys go to their channel, hot ones to the cells of their grid."""

    keys: tuple[str, ...]
    port: int
    spread: JoinSpread

    @property
    def channels(self) -> int:
        """Those of the spread."""
        return self.spread.channels

    def place(self, rows: Any) -> Placed:
        """Copies of rows on grids, others once."""
        keys = [rows[name] for name in self.keys]
        hashes = spark_hash(keys, rows.num_rows)
        among = salts(rows) if len(self.spread.counts) else hashes
        copies = (self.spread.left, self.spread.right)[self.port](hashes, among)
        if not any(each.null_count for each in keys):
            return copies.rows, copies.channels
        known = np.logical_and.reduce([np.asarray(each.is_valid()) for each in keys])
        lone = np.flatnonzero(~known)
        anywhere = salts(rows.take(pa.array(lone))) % np.uint64(self.channels)
        chosen = known[copies.rows]
        return (
            np.concatenate([copies.rows[chosen], lone]),
            np.concatenate([copies.channels[chosen], anywhere.astype(np.int32)]),
        )


@dataclass(frozen=True, eq=False)
class SpreadPlacing(Placing):
    """State of an equi-join whose hot keys may be on grids before, after, or both."""

    before: JoinSpread
    after: JoinSpread

    kind: ClassVar[str] = "spread"
    coarse: ClassVar[bool] = False

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
        new = read.routes(self.after.arrays)
        if not len(self.before.counts) and not len(self.after.counts):
            whole = np.asarray(new == target)
            return whole if read.known is None else np.where(read.known, whole, self._home(source) == target)
        known = np.ones(len(read.numbers), np.bool_) if read.known is None else read.known
        old = read.routes(self.before.arrays)
        unchanged = self._unchanged(old, new)
        # A row without a key matches nothing, so it may be in any channel.
        mine = np.where(known, unchanged & (source == target), self._home(source) == target)
        dealt = np.flatnonzero(known & ~unchanged & self._first_copy(old, read.port, source))
        deal = self.after.left if read.port == 0 else self.after.right
        copies = deal(read.hashes(dealt), read.salts(dealt))
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
        return {"channels": [each.channels for each in both], "judged": self.after.judged}, arrays

    @classmethod
    def unpacked(cls, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> "SpreadPlacing":
        """The same placing."""
        before, after = (
            JoinSpread(
                keys,
                sizes,
                columns,
                targets,
                CellRing.over(Ring(1), cells, channels),
                values.get("judged", False),
            )
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
        return ring_flows(self.before.ring.cells, self.after.ring.cells)

    @cached_property
    def _keys(self) -> tuple[Targets, Targets, Mask]:
        """The routes before and after of all keys that have their own, and whether they are the same."""
        keys = np.union1d(self.before.keys, self.after.keys)
        old, new = (each.arrays.route(keys) for each in (self.before, self.after))
        return old, new, self._unchanged(old, new)


def _grid(spread: JoinSpread, place: int) -> tuple[int, list[int]]:
    start, count = int(spread.starts[place]), int(spread.counts[place])
    return int(spread.across[place]), spread.cells[start : start + count].tolist()


def _channels(spread: JoinSpread, route: int) -> set[int]:
    """The channels of a route: one, or those of a grid."""
    return {route} if route >= 0 else set(_grid(spread, ~route)[1])


def _first_cells(spread: JoinSpread, place: int, port: int) -> set[int]:
    """The channels whose copies represent the rows of a key on a grid."""
    if spread.judged:
        columns, cells = _grid(spread, place)
        return set(cells[:columns] if port == 0 else cells[columns:])
    begin = int(spread.column_starts[place])
    firsts = [int(spread.firsts[column]) for column in range(begin, begin + int(spread.across[place]))]
    if port == 0:
        return {int(spread.cells[first]) for first in firsts}
    return set(spread.cells[firsts[0] : firsts[0] + int(spread.heights[begin])].tolist())
