"""What a key costs by its frequency, c₀ + c₁f + c₂f², learnt from the measured load of channels.

A channel's load follows the number of its keys, of its tuples and of its pairs, and a part follows from no
key at all. How much of each there is comes from least squares over the last epochs. Layouts that are even
tell nothing of it, so what uneven ones told is forgotten slowly; until then the operator's own growth stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Growth

__all__ = ["CostCurve", "CurveFit"]

Floats = NDArray[np.float64]

_KEPT = 0.97
"""What an epoch counts after each further one."""
_PRIOR, _FLAT = 0.05, 0.1
"""How many channels of an epoch the operator's own growth counts as, and what part is flat by it."""


@dataclass(frozen=True)
class CostCurve:
    """The parts of all load that follow from the number of keys, of tuples, of pairs, and from none of these.

    >>> CostCurve({Growth.LINEAR: 0.75, Growth.QUADRATIC: 0.2}).flat
    0.05
    """

    parts: Mapping[Growth, float]

    @property
    def flat(self) -> float:
        """The part of the load that every channel has, whatever its keys."""
        return round(1.0 - sum(self.parts.values()), 9)

    def load(self, shares: Mapping[Growth, Floats]) -> Floats:
        """The load of each channel relative to the mean, if it has these shares; without the flat part."""
        return sum(
            (part * len(shares[growth]) * shares[growth] for growth, part in self.parts.items()),
            start=np.zeros(len(next(iter(shares.values())))),
        )


@dataclass
class CurveFit:
    """Learns a curve from relative loads of channels, epoch after epoch.

    >>> fit, shares = CurveFit(), {Growth.LINEAR: np.array([0.5, 0.3, 0.2])}
    >>> fit.observe(np.array([1.3, 0.94, 0.76]), shares)
    >>> found = fit.curve(Growth.LINEAR)
    >>> round(found.parts[Growth.LINEAR], 1), round(found.flat, 1)
    (0.7, 0.3)
    """

    _squares: Floats = field(default_factory=lambda: np.zeros((4, 4)))
    _products: Floats = field(default_factory=lambda: np.zeros(4))

    def observe(self, relative: Floats, shares: Mapping[Growth, Floats]) -> None:
        """Take in an epoch: the load of each channel over the mean, and its share of keys, tuples, pairs."""
        columns = np.zeros((len(relative), 4))
        columns[:, 0] = 1.0
        for growth in Growth:
            if growth in shares:
                columns[:, 1 + growth] = shares[growth] * len(relative)
        self._squares = _KEPT * self._squares + columns.T @ columns
        self._products = _KEPT * self._products + columns.T @ relative

    def curve(self, said: Growth) -> CostCurve:
        """The curve; `said` is the growth that the operator names."""
        prior = np.zeros(4)
        prior[0], prior[1 + said] = _FLAT, 1 - _FLAT
        squares = self._squares + _PRIOR * np.eye(4)
        parts = _not_negative(squares, self._products + _PRIOR * prior)
        parts /= max(float(parts.sum()), 1e-9)
        return CostCurve({growth: float(parts[1 + growth]) for growth in Growth if parts[1 + growth] > 0})

    def to_json(self) -> dict[str, Any]:
        """The sums that it fits."""
        return {"squares": self._squares.tolist(), "products": self._products.tolist()}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._squares, self._products = np.array(value["squares"]), np.array(value["products"])


def _not_negative(squares: Floats, products: Floats) -> Floats:
    """The least squares solution without negative parts; all 15 sets of columns are tried."""
    best, least = np.zeros(len(products)), 0.0
    for size in range(1, len(products) + 1):
        for chosen in map(list, combinations(range(len(products)), size)):
            found = np.linalg.solve(squares[np.ix_(chosen, chosen)], products[chosen])
            error = -float(found @ products[chosen])
            if found.min() >= 0 and error < least - 1e-12:
                best, least = np.zeros(len(products)), error
                best[chosen] = found
    return best
