"""The smallest batch that keeps the backlog within its bound, else that with the least backlog ([004] §2.3).

A larger batch copies fewer tuples but answers later and updates more windows a tuple. Window sizes
are in tuples here. Equation 1 is read as the cost of one tuple, so the updates of a batch are
divided by its tuples like the openings and closings are; printed, it counts B(B+1)/2·s + w - s
updates. In truth every window takes each of its w tuples once, B·w updates, and that count is the
one that agrees with the throughputs measured in Figure 7b, so it is the default.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.window_shape import WindowShape

__all__ = ["BatchChoice", "BatchModel", "TupleCosts", "choose_batch", "exact_updates", "printed_updates"]

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


@dataclass(frozen=True)
class BatchModel:
    """What a batch size does to a channel at `rate` tuples/s into the split over `channels` channels."""

    shape: WindowShape
    costs: TupleCosts
    rate: float
    channels: int
    headroom: float = 0.1
    updates: Callable[[WindowShape, Batches], Figures] = exact_updates

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.channels > 0 and 0 <= self.headroom < 1):
            raise BadRouting(
                f"a batch model with rate {self.rate}, channels {self.channels}, headroom {self.headroom}; "
                "give rate and channels above 0, and headroom of at least 0 and below 1"
            )

    def cost(self, batches: Batches) -> Figures:
        """Seconds that a channel spends on one tuple that it receives (Equation 1)."""
        tuples = self.shape.size + (batches - 1) * self.shape.slide
        windows = self.updates(self.shape, batches) * self.costs.update + batches * self.costs.open_close
        return windows / tuples + self.costs.other

    def input_rate(self, batches: Batches) -> Figures:
        """Tuples/s that each channel receives, copies included (Equation 2)."""
        tuples = self.shape.size + (batches - 1) * self.shape.slide
        return self.rate / self.channels * tuples / (batches * self.shape.slide)

    def excess(self, batches: Batches) -> Figures:
        """Tuples/s by which the input of a channel exceeds its capacity: f(B) of the paper."""
        return self.input_rate(batches) - (1 - self.headroom) / self.cost(batches)

    def throughput(self, batches: Batches) -> Figures:
        """The highest rate into the split that all channels together sustain."""
        return self.rate * (1 - self.headroom) / (self.cost(batches) * self.input_rate(batches))


@dataclass(frozen=True)
class BatchChoice:
    """The batch size, whether it keeps the bound, and its f(B) in tuples/s."""

    batch: int
    within_bound: bool
    excess: float


def choose_batch(model: BatchModel, *, period: float, bound: float, limit: int = 4_096) -> BatchChoice:
    """The batch size for the next `period` seconds, of at most `limit` windows (Equation 3).

    The bound takes the place of L_max in the paper: it is compared with f(B)·period, the tuples that
    wait at a channel when the period ends. Of all sizes within it the smallest answers first.

    >>> model = BatchModel(WindowShape(100, 1), TupleCosts(1.8e-6, 0.0, 23e-6), rate=8_000, channels=4)
    >>> choice = choose_batch(model, period=10, bound=100)
    >>> choice.batch, choice.within_bound
    (10, True)
    """
    if limit < 1:
        raise BadRouting(f"batches of at most {limit} windows; give a limit of at least 1")
    excess = model.excess(np.arange(1, limit + 1))
    within = excess * period < bound
    at = int(within.argmax()) if within.any() else int(excess.argmin())
    return BatchChoice(at + 1, bool(within.any()), float(excess[at]))
