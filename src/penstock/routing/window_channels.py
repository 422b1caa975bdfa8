"""Each window is computed on one channel, and every tuple reaches all channels of its windows ([004] §2.3).

Window j is computed on channel ⌊j / B⌋ mod N, in batches of B neighbours; with B = 1 that is window
partitioning ([004] §2.2). The size of batches may change at the boundary of a batch: windows before it stay
in batches of the earlier size, and those from it on are counted in batches of the new one. So no window
changes its channel while tuples of it are on their way, and no state has to move.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.router import Channels
from penstock.routing.window_ids import Ids, Instants, window_range
from penstock.routing.window_shape import WindowShape

__all__ = ["Batches", "WindowChannels"]


@dataclass(frozen=True)
class Batches:
    """Batches of `size` windows from window `start` on; windows before it are in those of `earlier`.

    >>> Batches(2).changed(3, beyond=6)
    Batches(size=3, start=8, earlier=Batches(size=2, start=0, earlier=None))
    """

    size: int
    start: int = 0
    earlier: "Batches | None" = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise BadRouting(f"a batch of {self.size} windows; give at least 1")

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Batches":
        """What plain values stand for."""
        earlier = value["earlier"]
        return cls(value["size"], value["start"], None if earlier is None else cls.from_json(earlier))

    def changed(self, size: int, beyond: int) -> "Batches":
        """Batches of another size from the first boundary after window `beyond` on."""
        boundary = self.start + (-(-(beyond + 1 - self.start) // self.size)) * self.size
        return Batches(size, boundary, self)

    def settled(self, first: int) -> "Batches":
        """The same, where nothing needs a window before `first` any more."""
        return Batches(self.size, self.start) if self.earlier is not None and first >= self.start else self


@dataclass(frozen=True)
class WindowChannels:
    """Which of `channels` channels computes each window of a shape.

    >>> by_twos = WindowChannels(WindowShape(3, 1), Batches(2), channels=3)
    >>> by_twos.of(np.arange(7)).tolist()
    [0, 0, 1, 1, 2, 2, 0]
    >>> rows, channels = by_twos.deliveries(np.array([4, 5]))  # in windows 2 to 4, and 3 to 5
    >>> rows.tolist(), channels.tolist()
    ([0, 0, 1, 1], [1, 2, 1, 2])
    """

    shape: WindowShape
    batches: Batches
    channels: int

    def __post_init__(self) -> None:
        if self.channels < 1:
            raise BadRouting(f"windows on {self.channels} channels; give at least 1")

    def of(self, windows: Ids) -> Channels:
        """The channel that computes each window."""
        return _channels(self.batches, windows, self.channels)

    def last(self, times: Instants) -> Channels:
        """The channel of the last window that holds each tuple.

        A tuple is needed there longest, so where copies have to stand for their tuple, it is this one.
        """
        return self.of(window_range(self.shape, times)[1])

    def deliveries(self, times: Instants) -> tuple[NDArray[np.int64], Channels]:
        """Pairs of a tuple and a channel that computes one of its windows, each pair once."""
        first, last = window_range(self.shape, times)
        rows, channels = _deliveries(self.batches, first, last, self.channels)
        if self.batches.earlier is None:
            return rows, channels.astype(np.int32)
        # On both sides of a boundary a tuple may go to the same channel.
        pairs = np.unique(rows * self.channels + channels)
        return pairs // self.channels, (pairs % self.channels).astype(np.int32)


def _channels(batches: Batches, windows: Ids, channels: int) -> Channels:
    found = ((windows - batches.start) // batches.size % channels).astype(np.int32)
    if batches.earlier is None:
        return found
    return np.where(windows < batches.start, _channels(batches.earlier, windows, channels), found)


def _deliveries(
    batches: Batches, first: Ids, last: Ids, channels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    own = first if batches.earlier is None else np.maximum(first, batches.start)
    one, other = ((each - batches.start) // batches.size for each in (own, last))
    # Neighbouring batches lie on different channels, so the first N of a tuple visit each once.
    counts = np.where(last >= own, np.minimum(other - one + 1, channels), 0)
    rows = np.repeat(np.arange(len(first)), counts)
    steps = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = (one[rows] + steps) % channels
    if batches.earlier is None:
        return rows, found
    before = _deliveries(batches.earlier, first, np.minimum(last, batches.start - 1), channels)
    return np.concatenate([before[0], rows]), np.concatenate([before[1], found])
