"""Candidate pairs as spans: each probing row with a run of neighbours in an order of the other side.

Every bound has this shape, so a pair costs nothing until it is formed, and pairs are formed in blocks:
memory does not grow with the number of pairs, however hot a key is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "Rows", "Spans", "joined"]

Rows = NDArray[np.int64]

# Pairs that are materialised at once: 16 bytes each, and the columns of the result.
BLOCK = 1 << 18


@dataclass(frozen=True)
class Spans:
    """Row `probe[i]` of one side may match rows `order[low[i]:high[i]]` of the other.

    >>> spans = Spans(np.array([7, 8]), np.array([4, 2, 9]), np.array([0, 1]), np.array([2, 3]))
    >>> [(probe.tolist(), build.tolist()) for probe, build in spans.blocks(3)]
    [([7, 7, 8], [4, 2, 2]), ([8], [9])]
    """

    probe: Rows
    order: Rows
    low: Rows
    high: Rows

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return int((self.high - self.low).sum())

    @property
    def area(self) -> int:
        """How many pairs all probes form with all that any of them spans."""
        return len(self.probe) * int(self.high.max() - self.low.min()) if len(self.probe) else 0

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[Rows, Rows]]:
        """All pairs, at most `size` at once; a block may begin and end inside of a span."""
        counts = self.high - self.low
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, total, size):
            stop = min(start + size, total)
            first = int(np.searchsorted(ends, start, side="right"))
            last = int(np.searchsorted(ends, stop, side="left")) + 1
            begins = ends[first:last] - counts[first:last]
            taken = np.minimum(ends[first:last], stop) - np.maximum(begins, start)
            place = np.arange(start, stop) + np.repeat(self.low[first:last] - begins, taken)
            yield np.repeat(self.probe[first:last], taken), self.order[place]

    def part(self, first: int, last: int) -> "Spans":
        """The spans of some neighbouring probes."""
        return Spans(self.probe[first:last], self.order, self.low[first:last], self.high[first:last])

    def spanning(self, low: Rows | int, high: Rows | int) -> "Spans":
        """The same probes with other ends."""
        ends = np.empty((2, len(self.probe)), np.int64)
        ends[0], ends[1] = low, high
        return Spans(self.probe, self.order, ends[0], ends[1])


def joined(parts: list[Spans]) -> Spans:
    """Spans over one order, put together."""
    low = np.concatenate([part.low for part in parts])
    high = np.concatenate([part.high for part in parts])
    return Spans(np.concatenate([part.probe for part in parts]), parts[0].order, low, high)
