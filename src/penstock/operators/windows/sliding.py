"""Closing many overlapping windows at once from shared partials.

A run of neighbouring windows has a common core, a left fringe that leaves it step by step and a
right fringe that enters it. With the fringes cut into strides,

    window i  =  suffix of the left fringe from i  ⊕  core  ⊕  prefix of the right fringe up to i

so n windows over k keys cost about 3·n·k merges whatever the overlap, nothing is subtracted, and
only order and associativity are asked of the merge (panes: 004 §2.4). Cumulating windows of one round
have a core and a right fringe alone. Windows that do not overlap need one grouping. A run holds only
keys that appear in it, and a key that appears is in at least one of its windows, so sparse keys stay cheap.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.aggregates.merges import Lanes, Merge, group, take
from penstock.routing.pane_windows import CumulatingPanes, PaneWindows, SlidingPanes
from penstock.state.pane_nodes import Extent

__all__ = ["Closed", "Partials", "close_windows", "extents"]

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

    def by_pane(self) -> "Partials":
        """The rows in the order of panes, in which a merge that does not commute has to get them."""
        return self.at(np.argsort(self.pane, kind="stable"))


@dataclass(frozen=True)
class Closed:
    """Finished windows: the window and the key of each result row, and its lanes per merge."""

    window: Array
    key: Array
    lanes: tuple[Lanes, ...]


def extents(windows: PaneWindows, closing: range) -> tuple[Extent, Extent]:
    """The panes of the windows that close, and those that all of them share."""
    if not closing:
        return Extent(0, 0), Extent(0, 0)
    first, last = closing.start, closing.stop - 1
    whole = Extent(windows.start(first), windows.end(last))
    return whole, Extent(windows.start(last), windows.end(first))


def close_windows(
    windows: PaneWindows, first: int, end: int, rows: Partials, merges: tuple[Merge, ...]
) -> Iterator[Closed]:
    """Results of the windows from `first` up to but not including `end` that hold a tuple.

    `rows` may hold panes outside these windows; they are ignored. Coarser rows (nodes of several
    panes) may stand in for panes that all of the windows hold.
    """
    if not len(rows.pane):
        return
    if not windows.overlapping:
        yield from _apart(windows, first, end, rows, merges)
        return
    present = np.unique(rows.pane)
    window = first
    while window < end:
        place = int(np.searchsorted(present, windows.start(window)))
        if place == len(present):
            return
        window = max(window, windows.first_with(int(present[place])))
        count = min(_run(windows, window), end - window)
        if count > 0:
            yield from _close_run(windows, window, count, rows, merges)
        window += count


def _run(windows: PaneWindows, first: int) -> int:
    """The number of windows from `first` on that have a core in common."""
    if isinstance(windows, CumulatingPanes):
        return windows.steps - first % windows.steps
    assert isinstance(windows, SlidingPanes)
    return windows.span // windows.stride + 1


def _apart(
    windows: PaneWindows, first: int, end: int, rows: Partials, merges: tuple[Merge, ...]
) -> Iterator[Closed]:
    """Windows that do not overlap: one grouping and no fringes."""
    window = windows.last_with(rows.pane)
    inside = (window >= first) & (window < end)
    if windows.gaps:
        inside &= rows.pane < windows.end(window)
    mine = np.flatnonzero(inside)
    if not len(mine):
        return
    keys = int(rows.key[mine].max()) + 1
    cells, at = group((window[mine] - first) * keys + rows.key[mine])
    lanes = tuple(
        merge.scatter(len(cells), at, take(row, mine)) for merge, row in zip(merges, rows.lanes, strict=True)
    )
    yield Closed(cells // keys + first, cells % keys, lanes)


def _close_run(
    windows: PaneWindows, first: int, count: int, rows: Partials, merges: tuple[Merge, ...]
) -> Iterator[Closed]:
    mine = np.flatnonzero((rows.pane >= windows.start(first)) & (rows.pane < windows.end(first + count - 1)))
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
        yield _close_tile(windows, first, count, rows.at(chosen), local, keys[low : low + tile], merges)


def _close_tile(  # noqa: PLR0913, PLR0917 - the seven are one run's coordinates
    windows: PaneWindows,
    first: int,
    count: int,
    rows: Partials,
    local: Array,
    keys: Array,
    merges: tuple[Merge, ...],
) -> Closed:
    """Close `count` windows for the given keys; `local` is each row's place among them."""
    width = len(keys)
    core_from, core_to = windows.start(first + count - 1), windows.end(first)
    left, right = rows.pane < core_from, rows.pane >= core_to
    # Strides of the left fringe, then the core, then strides of the right fringe. A pane of the left fringe
    # belongs to the last window that holds it, one of the right fringe to the first.
    block = np.where(
        left,
        windows.last_with(rows.pane) - first,
        np.where(right, count - 1 + windows.first_with(rows.pane) - first, count - 1),
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
