"""What the rows of each stream cost a gate: its batches as a line over its rows, and the bytes of a row.

A client that sends often sends as many batches for few rows as for many; one that sends when a batch is full
sends more batches for more rows. So a stream's batches are a line over its rows, fitted to its last periods
with fading weights. A stream of which nothing is known is like all others together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.control.admission.capacity import Price
from penstock.control.admission.cluster import Floats

__all__ = ["Costs", "StreamCosts"]

_FADING = 0.8
_SURE = 0.01
"""Rates have to vary by about a tenth before a slope is believed."""
_USUAL = (10.0, 0.0, 100.0)
"""Batches a second, more of them for each row, and bytes of a row, where nothing was ever measured."""


@dataclass(frozen=True)
class Costs:
    """The work of a row of each stream, and that of its batches, however few rows are in them.

    A stream sends no more batches than rows, so the second part vanishes with the rate.

    >>> Costs(np.array([0.001]), np.array([0.1])).work(np.array([0.0])).tolist()
    [0.0]
    >>> Costs(np.array([0.001]), np.array([0.1])).work(np.array([[99.0, 999.0]])).round(3).tolist()
    [[0.198, 1.099]]
    """

    row: Floats
    fixed: Floats

    def work(self, rates: Floats) -> Floats:
        """The work of streams at these rates; the first axis is that of the streams."""
        shape = (-1, *[1] * (rates.ndim - 1))
        found: Floats = rates * (self.row.reshape(shape) + self.fixed.reshape(shape) / (1 + rates))
        return found


@dataclass
class StreamCosts:
    """Sums of rows, batches and bytes of each stream, by its place; see the top of this file."""

    _places: dict[str, int] = field(default_factory=dict)
    _sums: Floats = field(default_factory=lambda: np.zeros((0, 6)))

    def observe(self, streams: Sequence[str], rows: Floats, batches: Floats, bytes_: Floats) -> None:
        """Counts a second of a period; others than these streams are forgotten."""
        sums = np.zeros((len(streams), 6))
        known = [(place, self._places[each]) for place, each in enumerate(streams) if each in self._places]
        if known:
            now, then = np.array(known).T
            sums[now] = self._sums[then]
        some = rows > 0
        news = np.column_stack([np.ones(len(rows)), rows, batches, rows**2, rows * batches, bytes_])
        sums[some] = _FADING * sums[some] + news[some]
        self._places, self._sums = {each: place for place, each in enumerate(streams)}, sums

    def costs(self, streams: Sequence[str], price: Price) -> Costs:
        """What streams cost at this price."""
        count, rows, *_, bytes_ = everyone = self._sums.sum(axis=0)
        usual = (*_line(everyone[None])[0], bytes_ / rows) if count and rows else _USUAL
        found = np.tile(np.array(usual, np.float64), (len(streams), 1))
        places = np.array([self._places.get(each, -1) for each in streams], np.int64)
        known = places >= 0
        known[known] = self._sums[places[known], 0] > 0
        own = self._sums[places[known]]
        found[known] = np.column_stack([_line(own), own[:, 5] / own[:, 1]])
        batches, slope, width = found.T
        return Costs(price.batch * slope + price.byte * width + price.row, price.batch * batches)


def _line(sums: Floats) -> Floats:
    """Batches a second at no rows, and more of them for each row, neither below 0."""
    count, rows, batches, squares, products, _ = sums.T
    mean, height = rows / count, batches / count
    spread, common = squares / count - mean**2, products / count - mean * height
    slope = np.clip(common / (spread + _SURE * mean**2), 0.0, height / mean)
    return np.column_stack([height - slope * mean, slope])
