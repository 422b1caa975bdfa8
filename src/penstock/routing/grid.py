"""The grid of a Cartesian product: each pair of a left and a right tuple meets in exactly one channel.

The pairs are a square, left tuples along one side and right tuples along the other, and the square is cut
into N rectangles of equal area for any N: every channel forms 1/N of all pairs. A tuple goes to about
sqrt(N) channels. For N = M * M this is the grid of [002] §III.D.2, M rows and M columns. Any grid is
exact for inner joins; `join_grid` says which are exact for outer ones.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.router import Channels, Hashes

__all__ = ["Copies", "Grid", "grid_for"]

_HALF = np.uint64(32)


@dataclass(frozen=True)
class Copies:
    """Which tuples go where: tuple `rows[i]` to channel `channels[i]`, a tuple's copies one after another."""

    rows: NDArray[np.int64]
    channels: Channels


@dataclass(frozen=True)
class Grid:
    """N channels in columns, N / `columns` in each: rounded up in the first ones, down in the rest.

    A column with r channels is r/N wide and each of its channels 1/r high, so all areas are exactly 1/N,
    for any hashes that are uniform; a channel holds r/N of the left and 1/r of the right tuples. A left
    tuple goes to all channels of its column, a right tuple to one channel of every column.

    >>> grid = Grid(7, columns=3)
    >>> grid.heights
    (3, 2, 2)
    >>> grid.left(np.array([0], np.uint64)).channels.tolist()
    [0, 1, 2]
    >>> grid.right(np.array([2**63], np.uint64)).channels.tolist()
    [1, 4, 6]
    """

    channels: int
    columns: int

    def __post_init__(self) -> None:
        if not 1 <= self.columns <= self.channels < 1 << 20:
            raise BadRouting(
                f"a grid has {self.columns} columns and {self.channels} channels; "
                "give at least 1 column, at least one channel for each, and fewer than 2**20 channels"
            )

    @property
    def heights(self) -> tuple[int, ...]:
        """How many channels each column has."""
        least, more = divmod(self.channels, self.columns)
        return (least + 1,) * more + (least,) * (self.columns - more)

    @property
    def left_copies(self) -> float:
        """To how many channels a left tuple goes, on average; at most N / columns rounded up."""
        return sum(height * height for height in self.heights) / self.channels

    @property
    def right_copies(self) -> int:
        """To how many channels every right tuple goes."""
        return self.columns

    def left(self, hashes: Hashes) -> Copies:
        """The copies of left tuples."""
        # The width of a column is a multiple of 1/N: the N-th part that a hash falls into tells its column.
        part = (((hashes >> _HALF) * np.uint64(self.channels)) >> _HALF).view(np.int64)
        column = np.repeat(np.arange(self.columns), self._heights)[part]
        copies = self._heights[column]
        rows = np.repeat(np.arange(len(hashes)), copies)
        first = np.cumsum(copies) - copies
        channels = np.arange(len(rows)) + np.repeat(self._first[column] - first, copies)
        return Copies(rows, channels.astype(np.int32))

    def right(self, hashes: Hashes) -> Copies:
        """The copies of right tuples."""
        row = (((hashes >> _HALF)[:, None] * self._heights.view(np.uint64)[None, :]) >> _HALF).view(np.int64)
        channels = (row + self._first[None, :]).reshape(-1)
        return Copies(np.repeat(np.arange(len(hashes)), self.columns), channels.astype(np.int32))

    @cached_property
    def _heights(self) -> NDArray[np.int64]:
        return np.array(self.heights, np.int64)

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """The first channel of each column."""
        return np.cumsum(self._heights) - self._heights


def grid_for(channels: int, left: float = 1.0, right: float = 1.0) -> Grid:
    """The grid with the fewest copies for streams of these rates; of equal ones, that with fewer columns.

    >>> grid_for(16).heights, grid_for(13).heights, grid_for(16, left=4.0).heights
    ((4, 4, 4, 4), (4, 3, 3, 3), (2, 2, 2, 2, 2, 2, 2, 2))
    """
    if not (left >= 0 and right >= 0 and 0 < left + right < float("inf")):
        raise BadRouting(f"rates are {left} and {right}; give finite rates of 0 or more, not both 0")
    if channels < 1:
        raise BadRouting(f"channels is {channels}; give at least 1")
    columns = np.arange(1, channels + 1)
    least, more = np.divmod(channels, columns)
    # All costs times the number of channels: whole numbers where the rates are, so that equals are equal.
    left_copies = more * (least + 1) ** 2 + (columns - more) * least**2
    return Grid(channels, int(np.argmin(left * left_copies + right * (columns * channels))) + 1)
