"""All pairs of two sets of rows, tile by tile: a tile and all that is computed of it stay in the cache."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.joins.operands import Fill
from penstock.joins.spans import Rows
from penstock.joins.terms import SideName

__all__ = ["Formed", "passing"]

# Numpy is slow on shorter runs than 4,096; a tile of this size has 128 KB in single precision.
_ACROSS, _SIZE = 8_192, 1 << 16


class _Tile:
    """A block of left rows by a block of right rows, the longer side of the whole along the second axis."""

    def __init__(self, *, right_across: bool) -> None:
        self._across_side: SideName = "r" if right_across else "l"
        self._memory: dict[tuple[type, int], NDArray[Any]] = {}
        self._cut: dict[tuple[type, int], NDArray[Any]] = {}
        self._down = self._across = slice(0, 0)

    def move(self, down: slice, across: slice) -> None:
        """Go to another place."""
        if self._down.stop - self._down.start != down.stop - down.start or self._across != across:
            self._cut.clear()
        self._down, self._across = down, across

    def pick(self, side: SideName, values: NDArray[Any]) -> Any:
        """The values of the tile's rows of one side, along their axis."""
        return values[None, self._across] if side == self._across_side else values[self._down, None]

    def buffer(self, slot: int) -> Any:
        """An array for numbers."""
        return self._shaped((np.float32, slot))

    def flags(self, slot: int) -> Any:
        """An array for truth values."""
        return self._shaped((np.bool_, slot))

    def _shaped(self, key: tuple[type, int]) -> Any:
        if key not in self._cut:
            memory = self._memory.setdefault(key, np.empty(_SIZE, key[0]))
            shape = self._down.stop - self._down.start, self._across.stop - self._across.start
            self._cut[key] = memory[: shape[0] * shape[1]].reshape(shape)
        return self._cut[key]


class Formed:
    """Pairs that are formed already, each given by the places of its rows."""

    def __init__(self, left: Rows, right: Rows) -> None:
        """Both have the same length."""
        self._places = {"l": left, "r": right}

    def pick(self, side: SideName, values: NDArray[Any]) -> Any:
        """The values of the pairs' rows of one side."""
        return values[self._places[side]]

    def buffer(self, _slot: int) -> Any:
        """A new array."""
        return None

    def flags(self, _slot: int) -> Any:
        """A new array."""
        return None


def passing(fill: Fill, left: int, right: int, most: int) -> Iterator[tuple[Rows, Rows]]:
    """Places of all pairs of so many left and right rows that pass, at most `most` at once.

    `most` is no less than a tile.
    """
    assert most >= _SIZE
    found: list[tuple[Rows, Rows]] = []
    count = 0
    for down, across in _passing_by_tile(fill, left, right):
        if count + len(down) > most:
            yield _together(found, right_across=right >= left)
            found, count = [], 0
        found.append((down, across))
        count += len(down)
    if found:
        yield _together(found, right_across=right >= left)


def _passing_by_tile(fill: Fill, left: int, right: int) -> Iterator[tuple[Rows, Rows]]:
    tile = _Tile(right_across=right >= left)
    wide, high = max(left, right), min(left, right)
    for start in range(0, wide, _ACROSS):
        across = slice(start, min(start + _ACROSS, wide))
        width = across.stop - start
        rows = max(1, _SIZE // width)
        for first in range(0, high, rows):
            tile.move(slice(first, min(first + rows, high)), across)
            places = fill(tile, 0).reshape(-1).nonzero()[0]
            if len(places):
                down = places // width
                yield down + first, places - down * width + start


def _together(found: list[tuple[Rows, Rows]], *, right_across: bool) -> tuple[Rows, Rows]:
    down = np.concatenate([each for each, _ in found])
    across = np.concatenate([each for _, each in found])
    return (down, across) if right_across else (across, down)
