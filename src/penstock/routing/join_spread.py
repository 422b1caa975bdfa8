"""A router that spreads hot keys of an equi-join over grids of channels ([002] §III.D.1 and §III.D.2).

Two tuples of one key meet in exactly one channel for any salts: a key that is whole has one channel,
and a key that is spread has a grid of its own, whose cells are all in different channels. On judged grids
they meet in one left and in one right cell (see `join_grid`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.arrays import RouteArrays, route_arrays
from penstock.routing.grid import Copies
from penstock.routing.ring import Ring
from penstock.routing.router import Channels, Hashes

__all__ = ["JoinSpread", "Numbers"]

Numbers = NDArray[np.int64]
_HALF = np.uint64(32)


@dataclass(frozen=True, eq=False)
class JoinSpread:
    """Routes the tuples of both sides: of each of `keys` over its grid, of all other keys by the ring.

    The grid of key i has `sizes[i]` cells in `columns[i]` columns, as in `Grid`; the channels of all cells of
    all grids are in `targets`, one grid after another. Salts are uniform 64-bit numbers, such as hashes of
    the tuples; a tuple that is sent again must have the same salt. If grids are `judged`, the columns of one
    are its first cells, the left ones, and the others its right ones.

    What an engine needs to evaluate it: `arrays` gives the channel of a key that is whole, and for a spread
    one the complement of its place in `counts`, `starts`, `across` and `column_starts`, which say how many
    cells and columns it has and where they begin. `cells` are channels; `cell_columns` are the columns of
    cells; and a column has `heights` cells from `firsts` on.

    >>> spread = JoinSpread(
    ...     np.array([7], np.uint64), np.array([4]), np.array([2]), np.arange(4, dtype=np.int32), Ring(4))
    >>> hashes, salts = np.array([7, 8], np.uint64), np.array([2**63, 0], np.uint64)
    >>> spread.left(hashes, salts).channels.tolist(), spread.right(hashes, salts).channels.tolist()
    ([2, 3, 2], [1, 3, 2])
    """

    keys: Hashes
    sizes: Numbers
    columns: Numbers
    targets: Channels
    ring: Ring
    judged: bool = False

    def __post_init__(self) -> None:
        if (
            not len(self.keys) == len(self.sizes) == len(self.columns)
            or (self.sizes < 1).any()
            or self.sizes.sum() != len(self.targets)
        ):
            raise BadRouting(
                f"{len(self.keys)} keys have {len(self.sizes)} sizes and {len(self.columns)} columns over "
                f"{len(self.targets)} channels; give each key a size, its columns and `size` channels"
            )
        if len(np.unique(self.keys)) != len(self.keys):
            raise BadRouting(f"one of the {len(self.keys)} keys occurs twice; give each key once")
        if (self.columns < 1).any() or (self.columns > self.sizes).any() or not self._distinct():
            raise BadRouting(
                f"a key's grid has a channel twice, one beyond the {self.channels} that there are, or more "
                "columns than channels; give each cell of a grid another channel"
            )
        if self.judged and (self.across == self.counts).any():
            raise BadRouting("a judged grid has only left cells; give it fewer columns than channels")

    @property
    def channels(self) -> int:
        """How many channels there are."""
        return self.ring.channels

    @cached_property
    def arrays(self) -> RouteArrays:
        """Channels of whole keys, and complements of places for spread ones."""
        routes = self.targets[np.cumsum(self.sizes) - self.sizes].astype(np.int32)
        routes[self._spread] = ~np.arange(len(self._spread), dtype=np.int32)
        return route_arrays(self.keys, routes, self.ring.cells, self.channels)

    @cached_property
    def counts(self) -> Numbers:
        """How many cells every spread key has."""
        return self.sizes[self._spread]

    @cached_property
    def starts(self) -> Numbers:
        """Where the cells of every spread key begin."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def across(self) -> Numbers:
        """How many columns every spread key has."""
        return self.columns[self._spread]

    @cached_property
    def column_starts(self) -> Numbers:
        """Where the columns of every spread key begin."""
        return np.cumsum(self.across) - self.across

    @cached_property
    def cells(self) -> Channels:
        """The channel of every cell of the spread keys."""
        return self.targets[np.repeat(self.sizes > 1, self.sizes)]

    @cached_property
    def heights(self) -> Numbers:
        """How many cells every column has: rounded up in the first columns of a key, down in the rest."""
        number = np.arange(int(self.across.sum())) - np.repeat(self.column_starts, self.across)
        least, more = np.divmod(self.counts, self.across)
        return np.repeat(least, self.across) + (number < np.repeat(more, self.across))

    @cached_property
    def firsts(self) -> Numbers:
        """The first cell of every column."""
        return np.cumsum(self.heights) - self.heights

    @cached_property
    def cell_columns(self) -> Numbers:
        """The column of every cell."""
        return np.repeat(np.arange(len(self.heights)), self.heights)

    def left(self, hashes: Hashes, salts: Hashes) -> Copies:
        """The copies of left tuples: to all channels of the column that the salt falls into."""
        routes, hot, place = self._routes(hashes)
        if self.judged:
            # One left cell, and all right ones.
            first, columns = self.starts[place], self.across[place]
            copies = self.counts[place] - columns + 1
            cells = _runs(first + columns - 1, copies)
            cells[np.cumsum(copies) - copies] = first + _scaled(salts[hot], columns)
            return _spread_out(routes, hot, copies, self.cells[cells])
        # A column is as wide as it has cells: the cell that a salt falls into tells its column.
        column = self.cell_columns[self.starts[place] + _scaled(salts[hot], self.counts[place])]
        copies = self.heights[column]
        return _spread_out(routes, hot, copies, self.cells[_runs(self.firsts[column], copies)])

    def right(self, hashes: Hashes, salts: Hashes) -> Copies:
        """The copies of right tuples: to one channel of every column."""
        routes, hot, place = self._routes(hashes)
        if self.judged:
            # All left cells, and one right one.
            first, copies = self.starts[place], self.across[place] + 1
            cells = _runs(first, copies)
            cells[np.cumsum(copies) - 1] += _scaled(salts[hot], self.counts[place] - copies + 1)
            return _spread_out(routes, hot, copies, self.cells[cells])
        copies = self.across[place]
        column = _runs(self.column_starts[place], copies)
        row = _scaled(np.repeat(salts[hot], copies), self.heights[column])
        return _spread_out(routes, hot, copies, self.cells[self.firsts[column] + row])

    def _routes(self, hashes: Hashes) -> tuple[Channels, Numbers, Numbers]:
        routes = self.arrays.route(hashes)
        hot = np.flatnonzero(routes < 0)
        return routes, hot, ~routes[hot].astype(np.int64)

    def _distinct(self) -> bool:
        if not len(self.targets):
            return True
        owner = np.repeat(np.arange(len(self.keys)), self.sizes)
        inside = 0 <= self.targets.min() <= self.targets.max() < self.channels
        return bool(inside) and len(np.unique(owner * self.channels + self.targets)) == len(owner)

    @cached_property
    def _spread(self) -> Numbers:
        return np.flatnonzero(self.sizes > 1)


def _scaled(salts: Hashes, sizes: Numbers) -> Numbers:
    """The part of the range of salts that each one falls into, of `sizes` equal parts."""
    parts: Numbers = (((salts >> _HALF) * sizes.view(np.uint64)) >> _HALF).view(np.int64)
    return parts


def _runs(firsts: Numbers, lengths: Numbers) -> Numbers:
    """Consecutive numbers from each first one, as many as its length."""
    before = np.cumsum(lengths) - lengths
    numbers: Numbers = np.arange(int(lengths.sum())) + np.repeat(firsts - before, lengths)
    return numbers


def _spread_out(routes: Channels, hot: Numbers, copies: Numbers, channels: Channels) -> Copies:
    """Copies of all tuples: one each of the whole keys, and those given of the hot ones."""
    times = np.ones(len(routes), np.int64)
    times[hot] = copies
    rows = np.repeat(np.arange(len(routes)), times)
    spread = routes[rows]
    spread[spread < 0] = channels
    return Copies(rows, spread)
