"""Lossy counting over about the last W items, by x counters that take turns.

A counter starts every W/(x-1) items and sees everything from then on; the oldest one is in use until it
has W + W/(x-1) items, and then starts again. So the counter in use always has between W and
(1 + 1/(x-1)) * W items, except for the first W of the stream: with three counters W to 3/2 * W
([003] §4.1.2 and Fig. 2). Memory and time are those of x counters.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.sketches.counted import Counted
from penstock.sketches.lossy_counting import LossyCounting
from penstock.sketches.runs import Runs
from penstock.sketches.wire import pack, unpack

__all__ = ["SlidingCounting"]


class SlidingCounting:
    """Counts of hashed items among the most recent ones; `window` is rounded up to a multiple of x - 1.

    Windows of two streams do not line up: what can be merged are the counters in use, `current`.

    >>> sliding = SlidingCounting(epsilon=0.1, window=10)
    >>> sliding.update(np.array([1] * 15 + [2] * 12, np.uint64))
    >>> sliding.current.total, sliding.items().hashes.tolist(), sliding.items().counts.tolist()
    (12, [2], [12.0])
    """

    def __init__(self, epsilon: float, window: int, counters: int = 3) -> None:
        if counters < 2:
            raise BadRouting(f"counters is {counters}; give 2 or more: one is in use while another is built")
        if window < counters - 1:
            raise BadRouting(
                f"window is {window}; give at least {counters - 1} items for {counters} counters"
            )
        self.step = -(-window // (counters - 1))
        self.window = self.step * (counters - 1)
        self.epsilon = epsilon
        self._counters = [LossyCounting(epsilon)]  # oldest first
        self._most = counters

    @property
    def current(self) -> LossyCounting:
        """The counter in use: the oldest one."""
        return self._counters[0]

    def update(self, items: NDArray[np.uint64] | Runs) -> None:
        """Take in items, in their order."""
        while len(items):
            if self._counters[-1].total == self.step:
                self._counters = [*self._counters, LossyCounting(self.epsilon)][-self._most :]
            room = self.step - self._counters[-1].total
            part = items[:room]
            for counter in self._counters:
                counter.update(part)
            items = items[room:]

    def items(self) -> Counted:
        """Everything that the counter in use has in memory."""
        return self.current.items()

    def frequent(self, support: float) -> Counted:
        """All recent items with a share of at least `support`, some of at least `support` - `epsilon`."""
        return self.current.frequent(support)

    def to_bytes(self) -> bytes:
        """A form to send or to store."""
        numbers = {"epsilon": self.epsilon, "window": self.window, "counters": self._most}
        parts = [np.frombuffer(counter.to_bytes(), np.uint8) for counter in self._counters]
        return pack("sliding-counting", numbers, parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The counters that `to_bytes` wrote."""
        numbers, parts = unpack("sliding-counting", data)
        sliding = cls(numbers["epsilon"], numbers["window"], numbers["counters"])
        sliding._counters = [LossyCounting.from_bytes(part.tobytes()) for part in parts]
        return sliding
