"""Windows whose results are delivered more than once: early while they are open, corrected for some time.

Nothing is kept of what was delivered. Partials that went into delivered results and partials that did not are
apart, so the old result of a window is formed again from the first, and the new one from both. A group whose
result differs gets a row that retracts the old one and a row with the new one. Doubles may differ in their
last digits from what was delivered, where partials were merged in another order since.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.aggregates.merges import Merge, take
from penstock.operators.windows.sliding import Closed, Partials, close_windows
from penstock.routing.pane_windows import PaneWindows
from penstock.state.keys import same_keys

__all__ = ["INSERT", "RETRACT", "UPDATE", "Revised", "replaced", "revised", "touched"]

INSERT, RETRACT, UPDATE = "insert", "retract", "update"

# More ranges of windows than this are closed as one, which costs windows that nothing has touched.
_MOST_RANGES = 16


@dataclass(frozen=True)
class Revised:
    """Groups that have no result yet; and old and new values of those that have one, row by row."""

    added: Closed
    old: Closed
    new: Closed


def touched(
    windows: PaneWindows, panes: NDArray[np.int64], first: int | None, end: int | None
) -> list[range]:
    """Ranges of windows from `first` up to but not including `end` that hold one of these panes.

    >>> from penstock.routing.pane_windows import SlidingPanes
    >>> touched(SlidingPanes(3, 1), np.array([4, 20, 5]), 3, None)
    [range(3, 6), range(18, 21)]
    """
    starts, stops = windows.first_with(panes), windows.last_with(panes) + 1
    starts = starts if first is None else np.maximum(starts, first)
    stops = stops if end is None else np.minimum(stops, end)
    held = starts < stops
    if not held.any():
        return []
    pairs = sorted(set(zip(starts[held].tolist(), stops[held].tolist(), strict=True)))
    found: list[range] = []
    for start, stop in pairs:
        if found and start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, stop))
        else:
            found.append(range(start, stop))
    if len(found) > _MOST_RANGES or not windows.overlapping:
        return [range(found[0].start, found[-1].stop)]
    return found


def revised(
    windows: PaneWindows, numbers: range, old: Partials, new: Partials, merges: tuple[Merge, ...]
) -> Revised | None:
    """The groups of these windows to which `new` partials have added something since the `old` ones.

    `new` holds all of `old`. Merge 0 counts tuples, by which touched groups are told.
    """
    after = _together(list(close_windows(windows, numbers.start, numbers.stop, new, merges)))
    if after is None:
        return None
    before = _together(list(close_windows(windows, numbers.start, numbers.stop, old, merges)))
    every = np.arange(len(after.window))
    if before is None:
        return Revised(after, _some(after, every[:0]), _some(after, every[:0]))
    width = int(max(after.key.max(), before.key.max())) + 1
    cells = [(each.window - numbers.start) * width + each.key for each in (after, before)]
    order = np.argsort(cells[0], kind="stable")
    place = order[np.searchsorted(cells[0], cells[1], sorter=order)]
    known = np.zeros(len(every), np.bool_)
    known[place] = True
    grown = np.flatnonzero(after.lanes[0][0][place] != before.lanes[0][0])
    return Revised(_some(after, every[~known]), _some(before, grown), _some(after, place[grown]))


def replaced(old: Any, new: Any, apart: Collection[str]) -> Any:
    """The rows of two tables of results that differ in a column that is not `apart`, each old before its new.

    Nulls are equal to each other, and so are NaNs.
    """
    same = np.ones(old.num_rows, np.bool_)
    for name in old.column_names:
        if name in apart:
            continue
        left, right = old[name], new[name]
        if pa.types.is_nested(left.type):
            both = zip(left.to_pylist(), right.to_pylist(), strict=True)
            same &= np.fromiter((repr(one) == repr(other) for one, other in both), np.bool_, len(same))
        else:
            same &= same_keys(pa.table([left], ["c"]), pa.table([right], ["c"]))
    at = np.flatnonzero(~same)
    pairs = np.stack([at, at + old.num_rows], axis=1).reshape(-1)
    return pa.concat_tables([old, new]).take(pa.array(pairs))


def _some(closed: Closed, at: NDArray[np.int64]) -> Closed:
    return Closed(closed.window[at], closed.key[at], tuple(take(lanes, at) for lanes in closed.lanes))


def _together(parts: Sequence[Closed]) -> Closed | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    lanes = tuple(
        tuple(np.concatenate(lane) for lane in zip(*merge, strict=True))
        for merge in zip(*(each.lanes for each in parts), strict=True)
    )
    return Closed(
        np.concatenate([each.window for each in parts]), np.concatenate([each.key for each in parts]), lanes
    )
