"""The smallest batch that keeps the delay within its bound, else that with the least backlog ([004] §2.3).

A larger batch copies fewer tuples, but answers later and leaves channels without work. Window sizes are in
tuples here. Equation 1 is read as the cost of one tuple, so the updates of a batch are divided by its tuples
like the openings and closings are; printed, it counts B(B+1)/2·s + w - s updates. In truth every window takes
each of its w tuples once, B·w updates, and that count is the one that agrees with the throughputs measured in
Figure 7b, so it is the default. With it the backlog f(B) falls with every B, so that only a limit keeps it
from growing: a batch that is longer than (w - s) / ((N - 1)·s) windows leaves some of N channels idle.

The bound of Equation 3 is a latency, and f(B)·T a number of tuples. What waits after T takes
f(B)·T·Cost(B) / (1 - H) seconds, and that is compared with the bound.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.window_shape import WindowShape

__all__ = [
    "BatchChoice",
    "BatchModel",
    "TupleCosts",
    "busy_limit",
    "channel_copies",
    "choose_batch",
    "exact_updates",
    "partition_copies",
    "printed_updates",
]

Batches = NDArray[np.int64]
Figures = NDArray[np.float64]


@dataclass(frozen=True)
class TupleCosts:
    """Seconds: to update one window, to open and close one, and for all else that a tuple needs."""

    update: float
    open_close: float
    other: float


def exact_updates(shape: WindowShape, batches: Batches) -> Figures:
    """Window updates of a batch, counted: each of B windows takes each of its w tuples.

    >>> exact_updates(WindowShape(3, 1), np.array([1, 3])).tolist()
    [3.0, 9.0]
    """
    return (batches * shape.size).astype(np.float64)


def printed_updates(shape: WindowShape, batches: Batches) -> Figures:
    """Window updates of a batch as in Equation 1: slide by slide one window more, then the last alone.

    >>> printed_updates(WindowShape(3, 1), np.array([1, 3])).tolist()
    [3.0, 8.0]
    """
    return batches * (batches + 1) / 2 * shape.slide + (shape.size - shape.slide)


def partition_copies(shape: WindowShape, batches: Batches, channels: int) -> Figures:
    """Copies of a tuple if each batch that holds it gets one, as in the paper; those of one channel too."""
    del channels
    return (shape.size + (batches - 1) * shape.slide) / (batches * shape.slide)


def channel_copies(shape: WindowShape, batches: Batches, channels: int) -> Figures:
    """Copies of a tuple if each channel that computes one of its windows gets one.

    >>> channel_copies(WindowShape(100, 1), np.array([1, 33, 99]), 4).tolist()
    [4.0, 4.0, 2.0]
    """
    return np.minimum(partition_copies(shape, batches, channels), channels)


def busy_limit(shape: WindowShape, channels: int) -> int:
    """The longest batch with which a tuple still has a window on every channel, at least 1.

    >>> busy_limit(WindowShape(100, 1), 4)
    33
    """
    return max(1, (shape.size - shape.slide) // (max(channels - 1, 1) * shape.slide))


@dataclass(frozen=True)
class BatchModel:
    """What a batch size does to a channel at `rate` tuples/s into the split over `channels` channels."""

    shape: WindowShape
    costs: TupleCosts
    rate: float
    channels: int
    headroom: float = 0.1
    updates: Callable[[WindowShape, Batches], Figures] = exact_updates
    copies: Callable[[WindowShape, Batches, int], Figures] = partition_copies

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.channels > 0 and 0 <= self.headroom < 1):
            raise BadRouting(
                f"a batch model with rate {self.rate}, channels {self.channels}, headroom {self.headroom}; "
                "give rate and channels above 0, and headroom of at least 0 and below 1"
            )

    def cost(self, batches: Batches) -> Figures:
        """Seconds that a channel spends on one tuple that it receives (Equation 1)."""
        # What is received for a batch: all of its tuples, or fewer where one copy serves several batches.
        tuples = self.copies(self.shape, batches, self.channels) * batches * self.shape.slide
        windows = self.updates(self.shape, batches) * self.costs.update + batches * self.costs.open_close
        return windows / tuples + self.costs.other

    def input_rate(self, batches: Batches) -> Figures:
        """Tuples/s that each channel receives, copies included (Equation 2)."""
        return self.rate / self.channels * self.copies(self.shape, batches, self.channels)

    def excess(self, batches: Batches) -> Figures:
        """Tuples/s by which the input of a channel exceeds its capacity: f(B) of the paper."""
        return self.input_rate(batches) - (1 - self.headroom) / self.cost(batches)

    def delay(self, batches: Batches, period: float) -> Figures:
        """Seconds that the backlog of a period takes; below 0 there is none (Equation 3, in seconds)."""
        return self.excess(batches) * period * self.cost(batches) / (1 - self.headroom)

    def throughput(self, batches: Batches) -> Figures:
        """The highest rate into the split that all channels together sustain."""
        return self.rate * (1 - self.headroom) / (self.cost(batches) * self.input_rate(batches))


@dataclass(frozen=True)
class BatchChoice:
    """The batch size, whether it keeps the bound, its f(B) in tuples/s, and the delay after a period in s."""

    batch: int
    within_bound: bool
    excess: float
    delay: float


def choose_batch(model: BatchModel, *, period: float, bound: float, limit: int | None = None) -> BatchChoice:
    """The batch size for the next `period` seconds, of at most `limit` windows (Equation 3).

    Of all sizes with a delay below `bound` seconds the smallest, since it answers first; else that of the
    least f(B), the smallest of equals. The limit is `busy_limit`, if none is given.

    >>> model = BatchModel(WindowShape(100, 1), TupleCosts(1.8e-6, 0.0, 23e-6), rate=8_000, channels=4)
    >>> choice = choose_batch(model, period=10, bound=0.1)
    >>> choice.batch, choice.within_bound
    (10, True)
    """
    most = busy_limit(model.shape, model.channels) if limit is None else limit
    if most < 1:
        raise BadRouting(f"batches of at most {most} windows; give a limit of at least 1")
    sizes = np.arange(1, most + 1)
    excess, delay = model.excess(sizes), model.delay(sizes, period)
    within = delay < bound
    # Rounding must not make a larger batch the least where all are equal.
    least = excess <= excess.min() + 1e-9 * np.abs(excess).max()
    at = int((within if within.any() else least).argmax())
    return BatchChoice(at + 1, bool(within.any()), float(excess[at]), float(delay[at]))
