"""Windows over runs of neighbouring partials without gaps, about three merges for each partial.

The partials of each key are cut into blocks as long as a window. With the merge of every block up to each of
its partials (prefix) and from each of them on (suffix),

    window  =  suffix from its first partial  ⊕  prefix up to its last

since a window crosses at most one edge of blocks. Nothing is subtracted, order is kept, and all keys advance
together: one vectorised merge for each place in a block (van Herk, Gil and Werman).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.aggregates.merges import Lanes, Merge, take

__all__ = ["Runs", "merged_runs"]

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Runs:
    """Windows as runs of partials: the key of each, its first and its last partial, both included.

    `places` count the partials of each key from 0, one after another. A run is of one key, and either `span`
    long or shorter and from place 0 on.
    """

    key: Places
    first: Places
    last: Places
    places: Places
    span: int


def merged_runs(merge: Merge, lanes: Lanes, runs: Runs) -> Lanes:
    """The merge of the partials of each run."""
    places, span = runs.places, runs.span
    offset = places % span
    order = np.argsort(offset, kind="stable")
    ends = np.cumsum(np.bincount(offset, minlength=1))
    steps = [order[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    prefix = tuple(lane.copy() for lane in lanes)
    for at in steps[1:]:
        _put(prefix, at, _combined(merge, take(prefix, at - 1), take(prefix, at)))
    found = take(prefix, runs.last)
    crossing = np.flatnonzero(places[runs.first] // span != places[runs.last] // span)
    if not len(crossing):
        return found
    suffix = tuple(lane.copy() for lane in lanes)
    goes_on = np.append(places[1:] == places[:-1] + 1, False)
    for each in reversed(steps[: span - 1]):
        at = each[goes_on[each]]
        _put(suffix, at, _combined(merge, take(suffix, at), take(suffix, at + 1)))
    _put(found, crossing, _combined(merge, take(suffix, runs.first[crossing]), take(found, crossing)))
    return found


def _combined(merge: Merge, left: Lanes, right: Lanes) -> Lanes:
    """Both are copies, so the right one may hold the result."""
    merge.combine(left, right, right)
    return right


def _put(lanes: Lanes, at: Places, values: Any) -> None:
    for lane, value in zip(lanes, values, strict=True):
        lane[at] = value
