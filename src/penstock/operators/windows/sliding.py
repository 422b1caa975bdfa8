"""Closing many overlapping windows at once from shared partials.

A run of neighbouring windows has a common core, a left fringe that leaves it step by step and a
right fringe that enters it. With the fringes cut into strides,

    window i  =  suffix of the left fringe from i  ⊕  core  ⊕  prefix of the right fringe up to i

so n windows over k keys cost about 3·n·k merges whatever the overlap, nothing is subtracted, and
only order and associativity are asked of the merge (panes: 004 §2.4). A run holds only keys that
appear in it, and a key that appears is in at least one of its windows, so sparse keys stay cheap.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.aggregates.merges import Lanes, Merge, group, take
from penstock.routing.window_shape import WindowShape

__all__ = ["Closed", "Partials", "close_windows"]

Array = NDArray[Any]

# Bounds the memory of one run: cells of a block, 8 bytes a lane.
_CELLS = 1 << 21


@dataclass(frozen=True)
class Partials:
    """Rows of partials: where each lies on the pane axis, its key's number and its lanes per merge.

    Merge 0 counts tuples, by which empty windows are told from present ones.
    """

    pane: Array
    key: Array
    lanes: tuple[Lanes, ...]

    def at(self, index: Array | slice) -> "Partials":
        """Some of the rows."""
        lanes = tuple(tuple(lane[index] for lane in merge) for merge in self.lanes)
        return Partials(self.pane[index], self.key[index], lanes)


@dataclass(frozen=True)
class Closed:
    """Finished windows: the window and the key of each result row, and its lanes per merge."""

    window: Array
    key: Array
    lanes: tuple[Lanes, ...]


def close_windows(
    shape: WindowShape, first: int, end: int, rows: Partials, merges: tuple[Merge, ...]
) -> Iterator[Closed]:
    """Results of the windows from `first` up to but not including `end` that hold a tuple.

    `rows` may hold panes outside these windows; they are ignored. Coarser rows (nodes of several
    panes) may stand in for panes that all of the windows hold, as long as `first` … `end` is one run.
    """
    if not len(rows.pane):
        return
    if shape.tumbling:
        yield from _tumble(first, end, rows, merges)
        return
    present = np.unique(rows.pane)
    longest = shape.span // shape.stride + 1
    window = first
    while window < end:
        place = int(np.searchsorted(present, shape.kept_from(window)))
        if place == len(present):
            return
        window = max(window, shape.first_window_with(int(present[place])))
        count = min(longest, end - window)
        if count > 0:
            yield from _close_run(shape, window, count, rows, merges)
        window += count


def _tumble(first: int, end: int, rows: Partials, merges: tuple[Merge, ...]) -> Iterator[Closed]:
    """Windows that do not overlap are panes: one grouping and no fringes."""
    mine = np.flatnonzero((rows.pane >= first) & (rows.pane < end))
    if not len(mine):
        return
    keys = int(rows.key[mine].max()) + 1
    cells, at = group((rows.pane[mine] - first) * keys + rows.key[mine])
    lanes = tuple(
        merge.scatter(len(cells), at, take(row, mine)) for merge, row in zip(merges, rows.lanes, strict=True)
    )
    yield Closed(cells // keys + first, cells % keys, lanes)


def _close_run(
    shape: WindowShape, first: int, count: int, rows: Partials, merges: tuple[Merge, ...]
) -> Iterator[Closed]:
    start = shape.kept_from(first)
    mine = np.flatnonzero(
        (rows.pane >= start) & (rows.pane < start + (count - 1) * shape.stride + shape.span)
    )
    if not len(mine):
        return
    keys, at = group(rows.key[mine])
    tile = max(1, _CELLS // count)
    for low in range(0, len(keys), tile):
        if len(keys) <= tile:
            chosen, local = mine, at
        else:
            here = (at >= low) & (at < low + tile)
            chosen, local = mine[here], at[here] - low
        yield _close_tile(shape, first, count, rows.at(chosen), local, keys[low : low + tile], merges)


def _close_tile(  # noqa: PLR0913, PLR0917 - the seven are one run's coordinates
    shape: WindowShape,
    first: int,
    count: int,
    rows: Partials,
    local: Array,
    keys: Array,
    merges: tuple[Merge, ...],
) -> Closed:
    """Close `count` windows for the given keys; `local` is each row's place among them."""
    width = len(keys)
    start = shape.kept_from(first)
    core_from, core_to = start + (count - 1) * shape.stride, start + shape.span
    left, right = rows.pane < core_from, rows.pane >= core_to
    # Strides of the left fringe, then the core, then strides of the right fringe.
    block = np.where(
        left,
        (rows.pane - start) // shape.stride,
        np.where(right, count + (rows.pane - core_to) // shape.stride, count - 1),
    )
    at = block * width + local
    lanes = tuple(
        _slide(merge, count, width, merge.scatter((2 * count - 1) * width, at, row))
        for merge, row in zip(merges, rows.lanes, strict=True)
    )
    tuples = lanes[0][0]
    held = np.flatnonzero(tuples)
    if len(held) == count * width:
        window = np.repeat(np.arange(first, first + count), width)
        return Closed(window, np.tile(keys, count), lanes)
    row = held // width
    return Closed(row + first, keys[held - row * width], tuple(take(lane, held) for lane in lanes))


def _slide(merge: Merge, count: int, width: int, cells: Lanes) -> Lanes:
    """From strides and core to windows: the first `count` blocks become the results, in place."""
    blocks = tuple(lane.reshape(2 * count - 1, width) for lane in cells)

    def block(number: int) -> Lanes:
        return tuple(lane[number] for lane in blocks)

    # Blocks 0 … count-2 are the left fringe and block count-1 the core, so the suffixes that start
    # in the fringe run through the core by themselves.
    for number in range(count - 2, -1, -1):
        merge.combine(block(number), block(number + 1), block(number))
    for number in range(count + 1, 2 * count - 1):
        merge.combine(block(number - 1), block(number), block(number))
    if count > 1:
        windows = tuple(lane[1:count] for lane in blocks)
        merge.combine(windows, tuple(lane[count:] for lane in blocks), windows)
    return tuple(lane[:count].reshape(-1) for lane in blocks)
