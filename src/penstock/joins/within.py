"""Spans of rows with equal keys whose times are at most a distance apart: |l.t - r.t| <= w.

Sort and binary search: O((n + m) log m + pairs), whatever the skew; a hash join on the key alone forms
every pair of a hot key before it looks at the time.
"""

import numpy as np

from penstock.joins.numbering import Numbers
from penstock.joins.spans import Rows, Spans

__all__ = ["Timed", "near"]

_MOST = 1 << 62


class Timed:
    """Rows of one side: their places in its table, the numbers of their keys, and their times."""

    def __init__(self, rows: Rows, key: Numbers, time: Rows) -> None:
        """Leave out rows without a number."""
        held = np.flatnonzero(key >= 0)
        self.rows, self.key, self.time = rows[held], key[held], time[held]

    def between(self, low: int, high: int) -> "Timed":
        """The rows of some times, both ends included."""
        at = np.flatnonzero((self.time >= low) & (self.time <= high))
        return Timed(self.rows[at], self.key[at], self.time[at])


def near(probe: Timed, build: Timed, distance: int) -> Spans | None:
    """For each probing row the rows of equal key within the distance, or None if there are no pairs."""
    if not len(probe.rows):
        return None
    build = build.between(int(probe.time.min()) - distance, int(probe.time.max()) + distance)
    if not len(build.rows):
        return None
    at, low, high = _codes(probe, build, distance)
    order, probing = np.argsort(at), np.argsort(low)
    at = at[order]
    # Ascending probes walk through memory in one direction.
    first = np.searchsorted(at, low[probing], side="left")
    last = np.searchsorted(at, high[probing], side="right")
    hits = np.flatnonzero(last > first)
    return Spans(probe.rows[probing[hits]], build.rows[order], first[hits], last[hits])


def _codes(probe: Timed, build: Timed, distance: int) -> tuple[Rows, Rows, Rows]:
    """(key, time) as one number: of the built rows, and of both ends of what a probing row looks for."""
    start = min(int(probe.time.min()), int(build.time.min()))
    reach = max(int(probe.time.max()), int(build.time.max())) - start
    # Keys are so far apart that no search leaves its key.
    stride = reach + distance + 1
    if (max(int(probe.key.max()), int(build.key.max())) + 2) * stride < _MOST:
        middle = probe.key * stride + (probe.time - start)
        return build.key * stride + (build.time - start), middle - distance, middle + distance
    times = np.unique(build.time)
    stride = len(times) + 1
    low = np.searchsorted(times, probe.time - distance, side="left")
    high = np.searchsorted(times, probe.time + distance, side="right") - 1
    place = np.searchsorted(times, build.time)
    return build.key * stride + place, probe.key * stride + low, probe.key * stride + high
