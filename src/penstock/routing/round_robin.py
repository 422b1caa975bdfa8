"""Round robin: each channel gets the same number of tuples, regardless of their content.

The baseline of [001] §5 for stateless work. It looks at the order of tuples, not at their keys,
so it has no exported arrays and cannot serve keyed state.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from penstock.errors import BadRouting
from penstock.routing.router import Channels, Hashes

__all__ = ["RoundRobin"]


@dataclass(frozen=True)
class RoundRobin:
    """Sends tuples to `channels` channels in turn, starting with channel `first`.

    >>> deal = RoundRobin(3)
    >>> deal.route(np.zeros(4, np.uint64)).tolist()
    [0, 1, 2, 0]
    >>> deal.after(4).route(np.zeros(4, np.uint64)).tolist()
    [1, 2, 0, 1]
    """

    channels: int
    first: int = 0

    def __post_init__(self) -> None:
        if self.channels < 1:
            raise BadRouting(f"channels is {self.channels}; give at least 1")
        if not 0 <= self.first < self.channels:
            raise BadRouting(f"first is {self.first}; give 0 to {self.channels - 1}")

    def route(self, hashes: Hashes) -> Channels:
        """The channel of every tuple, by its place in the array."""
        return ((np.arange(len(hashes)) + self.first) % self.channels).astype(np.int32)

    def after(self, tuples: int) -> Self:
        """The router that continues after this number of tuples."""
        return replace(self, first=(self.first + tuples) % self.channels)
