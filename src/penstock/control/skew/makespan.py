"""How long the channels of an epoch take on a number of slots, by list scheduling."""

from heapq import heapify, heapreplace

import numpy as np
from numpy.typing import NDArray

__all__ = ["makespan"]

Floats = NDArray[np.float64]

_MOST_BEGINNINGS = 16


def makespan(seconds: Floats, slots: int) -> float:
    """The time until all channels are done, each started in turn as soon as a slot is free.

    Channels are started in order, but the order of the next epochs' work in them is anybody's guess, and a
    busy channel costs more the later it starts. So this is the mean over up to 16 channels to begin with.

    >>> makespan(np.array([1.0, 1.0, 2.0]), 4), makespan(np.array([1.0, 1.0, 2.0]), 1)
    (2.0, 4.0)
    >>> round(makespan(np.array([1.0, 1.0, 2.0]), 2), 3)  # 3 if the busy one starts last, else 2
    2.333
    """
    if slots >= len(seconds):
        return float(seconds.max(initial=0.0))
    if slots == 1:
        return float(seconds.sum())
    given = seconds.tolist()
    begins = sorted({place * len(given) // _MOST_BEGINNINGS for place in range(_MOST_BEGINNINGS)})
    return sum(_one(given[begin:] + given[:begin], slots) for begin in begins) / len(begins)


def _one(seconds: list[float], slots: int) -> float:
    free = seconds[:slots]
    heapify(free)
    for each in seconds[slots:]:
        heapreplace(free, free[0] + each)
    return max(free)
