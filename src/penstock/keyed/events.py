"""Events of keys in order: rows, and timers that fire between them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Events", "Horizon"]

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Horizon:
    """How far timers fire: up to `frontier`; where all input has `ended`, each key's one more time after."""

    frontier: int
    ended: bool = False


@dataclass(frozen=True, eq=False)
class Events:
    """By key, then time: the row of each event (-1: a timer fires), the number of its key, its time."""

    rows: Places
    groups: Places
    times: Places

    @property
    def fired(self) -> NDArray[np.bool_]:
        """Which are timers."""
        return self.rows < 0

    @property
    def ends(self) -> NDArray[np.bool_]:
        """Which are the last of their keys."""
        return np.append(self.groups[1:] != self.groups[:-1], np.ones(min(1, len(self.groups)), np.bool_))

    def following(self, after_all: int) -> Places:
        """The time of the next event of the same key; `after_all` where there is none."""
        return np.where(self.ends, after_all, np.append(self.times[1:], after_all)[: len(self.times)])

    def firing(self, places: Places, groups: Places, times: Places) -> "Events":
        """With timers put in, each in front of the event of the given place and after all before it."""
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
        """Those of the chosen keys, which are numbered anew."""
        mask = chosen[self.groups]
        numbers = np.cumsum(chosen) - 1
        return Events(self.rows[mask], numbers[self.groups[mask]], self.times[mask])
