"""Associative merges over whole arrays of cells.

A merge works on lanes: parallel arrays that together hold one partial per cell. Every merge has
an identity, can scatter many rows into cells and can combine two blocks of cells element by
element; nothing is ever subtracted, so float sums keep their accuracy and any associative
function fits. `tests/aggregates` tests the merge of every aggregate.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "Elementwise",
    "Lanes",
    "Merge",
    "Optional",
    "Pooled",
    "StatePool",
    "group",
    "scattered_sum",
    "take",
    "weighted_mean",
]

Array = NDArray[Any]
Lanes = tuple[Array, ...]


class Merge(Protocol):
    """How the partials of one kind are combined."""

    def identity(self, cells: int) -> Lanes:
        """Lanes that change nothing they are combined with."""
        ...

    def scatter(self, cells: int, at: Array, rows: Lanes) -> Lanes:
        """Combine row i into cell `at[i]`, in row order; untouched cells hold the identity."""
        ...

    def combine(self, left: Lanes, right: Lanes, out: Lanes) -> None:
        """Write left ⊕ right, element by element, into `out`, which may be one of the two."""
        ...


@dataclass(frozen=True)
class Elementwise:
    """Every lane is folded by one numpy ufunc: sum, min, max, bitwise and logical merges."""

    ufunc: np.ufunc
    start: Any
    dtypes: tuple[np.dtype[Any], ...]

    def identity(self, cells: int) -> Lanes:
        """Every cell at the ufunc's neutral value."""
        return tuple(np.full(cells, self.start, dtype) for dtype in self.dtypes)

    def scatter(self, cells: int, at: Array, rows: Lanes) -> Lanes:
        """One pass over the rows; float sums take the faster bincount."""
        if self.ufunc is np.add and self.dtypes == (np.dtype(np.float64),):
            return (scattered_sum(cells, at, rows[0]),)
        lanes = self.identity(cells)
        # numpy warns of NaN; here it is a value like others, the largest.
        with np.errstate(invalid="ignore"):
            for lane, row in zip(lanes, rows, strict=True):
                self.ufunc.at(lane, at, row)
        return lanes

    def combine(self, left: Lanes, right: Lanes, out: Lanes) -> None:
        """One vectorised call per lane."""
        with np.errstate(invalid="ignore"):
            for one, other, target in zip(left, right, out, strict=True):
                self.ufunc(one, other, out=target)


@dataclass(frozen=True)
class Optional:
    """A merge whose partials may be absent: the last lane says which cells hold a value.

    Absent rows carry the identity of the inner merge, so they need no special case.
    """

    inner: Merge

    def identity(self, cells: int) -> Lanes:
        """Nothing present."""
        return (*self.inner.identity(cells), np.zeros(cells, np.bool_))

    def scatter(self, cells: int, at: Array, rows: Lanes) -> Lanes:
        """A cell is present when one of its rows is."""
        present = np.zeros(cells, np.bool_)
        present[at[rows[-1]]] = True
        return (*self.inner.scatter(cells, at, rows[:-1]), present)

    def combine(self, left: Lanes, right: Lanes, out: Lanes) -> None:
        """Present when either side is."""
        self.inner.combine(left[:-1], right[:-1], out[:-1])
        np.logical_or(left[-1], right[-1], out=out[-1])


class StatePool(Protocol):
    """A growing store of opaque states that a cell refers to by number."""

    def merge(self, left: Array, right: Array) -> Array:
        """Merge states pairwise and return the numbers of the results."""
        ...


@dataclass(frozen=True)
class Pooled:
    """Opaque states (sketches, user-defined aggregates): a cell holds a number into a pool, or -1.

    Only pairs in which both sides are present reach the pool, all of one step in a single call.
    """

    pool: StatePool

    def identity(self, cells: int) -> Lanes:
        """No state."""
        return (np.full(cells, -1, np.int64),)

    def scatter(self, cells: int, at: Array, rows: Lanes) -> Lanes:
        """Neighbours of one cell are merged in rounds, halving the rows each time, in row order."""
        present = rows[0] >= 0
        order = np.argsort(at[present], kind="stable")
        cell, state = at[present][order], rows[0][present][order]
        while True:
            first = np.flatnonzero(np.r_[True, cell[1:] != cell[:-1]]) if len(cell) else np.empty(0, np.int64)
            if len(first) == len(cell):
                break
            place = np.arange(len(cell)) - np.repeat(first, np.diff(np.r_[first, len(cell)]))
            left = np.flatnonzero((place % 2 == 0) & np.r_[cell[1:] == cell[:-1], False])
            state[left] = self.pool.merge(state[left], state[left + 1])
            keep = np.ones(len(cell), np.bool_)
            keep[left + 1] = False
            cell, state = cell[keep], state[keep]
        (lane,) = self.identity(cells)
        lane[cell] = state
        return (lane,)

    def combine(self, left: Lanes, right: Lanes, out: Lanes) -> None:
        """Merge where both are present, else take the one that is."""
        one, other = np.broadcast_arrays(left[0], right[0])
        both = (one >= 0) & (other >= 0)
        result = np.maximum(one, other)
        if both.any():
            result[both] = self.pool.merge(one[both], other[both])
        np.copyto(out[0], result)


def scattered_sum(cells: int, at: Array, values: Array) -> Array:
    """The sum of the values of each cell, in doubles."""
    # Of no rows numpy makes integers.
    return np.bincount(at, weights=values, minlength=cells).astype(np.float64, copy=False)


def weighted_mean(cells: int, at: Array, weights: Array, values: Array, total: Array) -> Array:
    """The mean of the values of each cell; `total` is the weight of each.

    It is taken of distances from one value of the cell, so the mean of equal values is exactly that value.
    """
    held = weights > 0
    origin = np.zeros(cells)
    origin[at[held]] = values[held]
    apart = scattered_sum(cells, at, np.where(held, weights * (values - origin[at]), 0.0))
    return origin + np.divide(apart, total, out=np.zeros(cells), where=total > 0)


def take(lanes: Lanes, at: Array) -> Lanes:
    """The given cells of every lane."""
    return tuple(lane[at] for lane in lanes)


def group(cells: Array) -> tuple[Array, Array]:
    """The distinct cells, ascending, and for every row the place of its cell among them."""
    low = int(cells.min()) if len(cells) else 0
    reach = int(cells.max()) - low + 1 if len(cells) else 0
    if reach > 8 * len(cells) + 1024:
        distinct, place = np.unique(cells, return_inverse=True)
        return distinct, place
    seen = np.zeros(reach, np.bool_)
    seen[cells - low] = True
    distinct = np.flatnonzero(seen)
    rank = np.empty(reach, np.int64)
    rank[distinct] = np.arange(len(distinct))
    return distinct + low, rank[cells - low]
