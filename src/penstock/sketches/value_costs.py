"""What rows cost by their value, in processor time and in wall time: the pair of [001] §5.2 on both clocks.

One count-min matrix has how often each value occurred, two others what it cost altogether. Sketches of
channels are merged, and old ones fade, so one sketch knows what all channels have learnt lately, whatever
their number.
"""

import zlib
from dataclasses import dataclass, field
from math import sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.sketches.count_min import CountMin
from penstock.sketches.mean_cost import MeanCost
from penstock.sketches.wire import pack, unpack

__all__ = ["ValueCosts"]

_EPSILON, _DELTA = 0.001, 0.05
_LEAST_CPU = 0.5
"""If the processor was busy for a smaller part of the time, the function waits for something else."""
_LEAST_ROWS = 1e-6
"""A cell that has faded to fewer rows is empty."""

Hashes = NDArray[np.uint64]
Floats = NDArray[np.float64]


def _matrix() -> CountMin:
    return CountMin(_EPSILON, _DELTA)


@dataclass(eq=False)
class ValueCosts:
    """Rows and seconds by the hash of a value, in matrices of three rows and 2,719 columns.

    >>> costs = ValueCosts()
    >>> costs.update(np.array([5, 9], np.uint64), np.array([2.0, 1.0]), np.array([6.0, 10.0]), np.zeros(2))
    >>> costs.means.means(np.array([5, 9], np.uint64)).tolist(), costs.clock
    ([3.0, 10.0], 'wall')
    """

    rows: CountMin = field(default_factory=_matrix)
    wall: CountMin = field(default_factory=_matrix)
    cpu: CountMin = field(default_factory=_matrix)

    def update(self, hashes: Hashes, rows: Floats, wall: Floats, cpu: Floats) -> None:
        """Take in, for each value, so many rows that took so many seconds together."""
        self.rows.update(hashes, rows)
        self.wall.update(hashes, wall)
        self.cpu.update(hashes, cpu)

    @property
    def clock(self) -> str:
        """The clock that tells the cost: cpu, or wall if the function mostly waits.

        Time of the processor is what a row costs however many others share it.
        """
        return "cpu" if self.cpu.total >= _LEAST_CPU * self.wall.total else "wall"

    @property
    def means(self) -> MeanCost:
        """The two sketches that tell the mean cost of each value."""
        return MeanCost.of(self.rows, self.cpu if self.clock == "cpu" else self.wall)

    @property
    def mean(self) -> float:
        """The mean cost of a row in seconds."""
        means = self.means
        return means.costs.total / means.counts.total if means.counts.total else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of what rows cost over its mean; values that share cells make it smaller.

        >>> costs = ValueCosts()
        >>> costs.update(np.array([5, 9], np.uint64), np.ones(2), np.array([1.0, 3.0]), np.zeros(2))
        >>> costs.deviation
        0.5
        """
        mean = self.mean
        if not mean:
            return 0.0
        means = self.means
        ratios, weights = means.ratios(), means.counts.matrix
        # The row in which values are best told apart.
        square = float(((ratios - mean) ** 2 * weights).sum(axis=1).max()) / means.counts.total
        return sqrt(square) / mean

    def merge(self, other: "ValueCosts") -> None:
        """Take in all that another one has seen."""
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine.merge(theirs)

    def fade(self, kept: float) -> None:
        """Let all that it has seen count only as this part of it."""
        for each in self.parts:
            each.fade(kept)
        # Before the costs of a cell underflow, which would make its values free.
        gone = self.rows.matrix < _LEAST_ROWS
        for each in self.parts:
            each.matrix[gone] = 0.0

    def drift(self, other: "ValueCosts") -> float:
        """How far rows cost something else than another one says, as a part of what they cost.

        Equation 14 of [001] weighs every cell alike. Here rows count: a value that is new and rare changes
        little, and of a value that the other one has not seen it says the mean.
        """
        if not other.rows.total:
            return float("inf")
        ours, theirs, rows = self.means.ratios(), other.means.ratios(), self.rows.matrix
        theirs = np.where(other.rows.matrix > 0, theirs, other.mean)
        total = float((rows * ours).sum())
        return float((rows * np.abs(ours - theirs)).sum()) / total if total else 0.0

    def to_bytes(self) -> bytes:
        """A form to send or to store; equal ones have equal bytes."""
        parts = [np.frombuffer(each.to_bytes(), np.uint8) for each in self.parts]
        return zlib.compress(pack("value-costs", {}, parts), 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote."""
        _, parts = unpack("value-costs", zlib.decompress(data))
        return cls(*(CountMin.from_bytes(each.tobytes()) for each in parts))

    @property
    def parts(self) -> tuple[CountMin, CountMin, CountMin]:
        """Its three matrices."""
        return self.rows, self.wall, self.cpu
