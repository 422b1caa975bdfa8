"""Timeouts put among the rows of their keys: one fires where a key had no row for so long in event time.

A timeout is known from the rows alone, so all of an epoch are found at once, without asking the function.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.keyed.events import Events, Horizon
from penstock.keyed.processor import NO_TIMER

__all__ = ["with_timeouts"]


def with_timeouts(
    events: Events, timers: NDArray[np.int64], timeout: int, horizon: Horizon
) -> tuple[Events, NDArray[np.int64]]:
    """The rows of keys with the timeouts that fire among them, and each key's timer after all.

    `timers` are those before. A timeout fires in front of a row of the same time. Each row moves its key's
    timer on, never back.

    >>> rows = Events(np.array([0, 1]), np.array([0, 0]), np.array([10, 30]))
    >>> found, after = with_timeouts(rows, np.array([NO_TIMER]), 5, Horizon(32))
    >>> found.times.tolist(), found.fired.tolist(), after.tolist()
    ([10, 15, 30], [False, True, False], [35])
    """
    keys = np.arange(len(timers))
    start, end = np.searchsorted(events.groups, keys), np.searchsorted(events.groups, keys, "right")
    limit = NO_TIMER - 1 if horizon.ended else horizon.frontier
    upcoming = np.where(start < end, _at(events.times, start), NO_TIMER)
    early = timers <= np.minimum(limit, upcoming)
    # A timer that has not fired is not moved back by a row that is older than the last one.
    standing = np.where(early | (timers == NO_TIMER), -NO_TIMER, timers)
    moved = np.maximum(events.times + timeout, standing[events.groups])
    late = moved <= np.minimum(limit, events.following(NO_TIMER))
    after = np.where(early, NO_TIMER, timers)
    with_rows = start < end
    last = end[with_rows] - 1
    after[with_rows] = np.where(late[last], NO_TIMER, moved[last])
    at = np.flatnonzero(late)
    found = events.firing(
        np.concatenate([start[early], at + 1]),
        np.concatenate([keys[early], events.groups[at]]),
        np.concatenate([timers[early], moved[at]]),
    )
    return found, after


def _at(values: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    return values[np.minimum(places, len(values) - 1)] if len(values) else np.zeros(len(places), np.int64)
