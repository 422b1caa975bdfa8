"""What a layout costs: the one objective of a run, in seconds of an epoch.

The channels of a stage are done when a list schedule on the task slots is, and no sooner than the cores that
there are can do the work. Processor time has a price of its own, so that a layout that copies rows or starts
more tasks has to be faster for it.
"""

from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np
from numpy.typing import NDArray

__all__ = ["CPU_PRICE", "NUMBERS", "TASK_CPU", "Objective", "makespan"]

Floats = NDArray[np.float64]

CPU_PRICE = 0.1
"""What a second of the processor is worth: ten of them are worth one second of waiting."""

_DRIVER, _TASK, TASK_CPU = 0.001, 0.003, 0.005
"""What a channel costs however few rows it has, in seconds: of the driver for each, of its slot, and of the
processor. Measured with 2 and with 8 channels on two cores: 11 ms and 27 ms of the processor more."""

_MOST_BEGINNINGS = 16

NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256)
"""The numbers of channels that policies try, and as many as there are slots."""


@dataclass(frozen=True)
class Objective:
    """Task slots, the cores behind them, and the price of a second of the processor."""

    slots: int = 1
    cores: float = 1.0
    cpu_price: float = CPU_PRICE

    def seconds(self, busy: Floats, cpu: float) -> float:
        """How long channels take that are busy for so long, and need the processor for so long together.

        >>> Objective(slots=8, cores=2).seconds(np.full(8, 1.0), cpu=0.8)  # they wait for something else
        1.011
        >>> Objective(slots=8, cores=2).seconds(np.full(8, 1.0), cpu=8.0)
        4.028
        """
        channels = len(busy)
        work = max(makespan(busy + _TASK, self.slots), (cpu + channels * TASK_CPU) / self.cores)
        return round(_DRIVER * channels + work, 9)

    def cost(self, busy: Floats, cpu: float) -> float:
        """The seconds of a stage in an epoch, with its processor time at its price."""
        return self.seconds(busy, cpu) + self.cpu_price * (cpu + len(busy) * TASK_CPU)


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
    return sum(_scheduled(given[begin:] + given[:begin], slots) for begin in begins) / len(begins)


def _scheduled(seconds: list[float], slots: int) -> float:
    free = seconds[:slots]
    heapify(free)
    for each in seconds[slots:]:
        heapreplace(free, free[0] + each)
    return max(free)
