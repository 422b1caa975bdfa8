"""The events of keys in event order: rows, and the timers and timeouts that fire between them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.operators.process.processor import NO_TIMER

__all__ = ["Events", "Horizon", "Places", "with_timeouts"]

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Horizon:
    """How far timers fire: up to `frontier`; once all input has `ended`, each key's timer fires once more."""

    frontier: int
    ended: bool = False


@dataclass(frozen=True, eq=False)
class Events:
    """Events by key, then time: the row of each (-1 if a timer fires), the number of its key, its time."""

    rows: Places
    groups: Places
    times: Places

    @property
    def fired(self) -> NDArray[np.bool_]:
        """Which events are timers."""
        return self.rows < 0

    @property
    def ends(self) -> NDArray[np.bool_]:
        """Which events are the last of their keys."""
        return np.append(self.groups[1:] != self.groups[:-1], np.ones(min(1, len(self.groups)), np.bool_))

    def following(self, after_all: int) -> Places:
        """The time of the next event of the same key; `after_all` where there is none."""
        return np.where(self.ends, after_all, np.append(self.times[1:], after_all)[: len(self.times)])

    def firing(self, places: Places, groups: Places, times: Places) -> "Events":
        """These events with timers inserted, each before the event at the given place."""
        if not len(places):
            return self
        order = np.lexsort((times, groups))
        places = places[order]
        return Events(
            np.insert(self.rows, places, -1),
            np.insert(self.groups, places, groups[order]),
            np.insert(self.times, places, times[order]),
        )

    def of(self, chosen: NDArray[np.bool_]) -> "Events":
        """The events of the chosen keys, which get new numbers from 0."""
        mask = chosen[self.groups]
        numbers = np.cumsum(chosen) - 1
        return Events(self.rows[mask], numbers[self.groups[mask]], self.times[mask])


def with_timeouts(events: Events, timers: Places, timeout: int, horizon: Horizon) -> tuple[Events, Places]:
    """The events with the timeouts that fire among them, and the timer of each key afterwards.

    `timers` are the timers before these events. A timeout fires before a row of the same time. A row moves
    the timer of its key forward, never back. The rows alone determine the timeouts, so all timeouts of an
    epoch are found at once, without calling the function.

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
    # A row that is older than the last one does not move a waiting timer back.
    position = np.where(early | (timers == NO_TIMER), -NO_TIMER, timers)
    moved = np.maximum(events.times + timeout, position[events.groups])
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


def _at(values: NDArray[Any], places: Places) -> NDArray[Any]:
    return values[np.minimum(places, len(values) - 1)] if len(values) else np.zeros(len(places), np.int64)
