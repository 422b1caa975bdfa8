"""Which growth of a key's cost with its frequency explains the measured load of the channels."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Growth

__all__ = ["Explained", "explain_load"]

Floats = NDArray[np.float64]

_FLAT = 0.02
"""Shares that differ by less than this, relative to the mean, explain nothing."""
_CLEARLY = 0.75
"""A growth explains the load if it leaves at most this part of the squared differences."""
_TOGETHER = 0.5
"""Two growths explain it together if they leave at most this part of what the better one leaves alone."""
_STEEPEST = 2.0
"""Above 1 where rows of rare keys cost less than others: in a join those find no partner."""


@dataclass(frozen=True)
class Explained:
    """By how much the load changes where the share of a growth changes by 1; the first one tells the most.

    The sum is less than 1 where each channel also has work that does not depend on keys, and more where rows
    of rare keys cost less than others. A join has two: its rows grow with the frequency of a key, its pairs
    with the square.
    """

    slopes: Mapping[Growth, float]

    @property
    def growth(self) -> Growth:
        """The growth that explains the most."""
        return next(iter(self.slopes))

    @property
    def slope(self) -> float:
        """The part of the load that depends on keys."""
        return sum(self.slopes.values())

    def changed(self, shares: Mapping[Growth, Floats]) -> Floats:
        """By how much the load of each channel changes if its shares change by these."""
        return sum(
            (slope * len(shares[growth]) * shares[growth] for growth, slope in self.slopes.items()),
            start=np.zeros(len(next(iter(shares.values())))),
        )


def explain_load(relative: Floats, shares: Mapping[Growth, Floats], otherwise: Growth) -> Explained:
    """The growth whose shares by channel fit measured relative loads best, in least squares; or two of them.

    `otherwise` is what the operator says; it stands if none fits clearly.

    >>> shares = {Growth.LINEAR: np.array([0.5, 0.3, 0.2]), Growth.CONSTANT: np.full(3, 1 / 3)}
    >>> found = explain_load(np.array([1.3, 0.95, 0.75]), shares, Growth.CONSTANT)
    >>> found.growth.name, round(found.slope, 2)
    ('LINEAR', 0.61)
    """
    load = relative - 1.0
    whole = float(load @ load)
    alone = shares.get(otherwise)
    best = Explained({otherwise: 0.0 if alone is None else _slope(load, _apart(alone))})
    least = _CLEARLY * whole
    telling = {growth: each for growth, share in shares.items() if _tells(each := _apart(share))}
    for growth, apart in telling.items():
        slope = _slope(load, apart)
        if (left := _left(load, slope * apart)) < least:
            best, least = Explained({growth: slope}), left
    for pair in combinations(telling, 2):
        apart = np.column_stack([telling[growth] for growth in pair])
        slopes = np.linalg.lstsq(apart, load, rcond=None)[0]
        if slopes.min() <= 0 or slopes.sum() > _STEEPEST:
            continue
        if _left(load, apart @ slopes) < _TOGETHER * least:
            told = slopes * apart.std(axis=0)
            order = np.argsort(-told, kind="stable").tolist()
            best = Explained({pair[each]: float(slopes[each]) for each in order})
            least = _left(load, apart @ slopes)
    return best


def _apart(share: Floats) -> Floats:
    apart: Floats = share * len(share) - 1.0
    return apart


def _tells(apart: Floats) -> bool:
    return float(apart @ apart) >= len(apart) * _FLAT**2


def _left(load: Floats, explained: Floats) -> float:
    rest = load - explained
    return float(rest @ rest)


def _slope(load: Floats, apart: Floats) -> float:
    if not _tells(apart):
        return 0.0
    return float(np.clip(float(load @ apart) / float(apart @ apart), 0.0, _STEEPEST))
