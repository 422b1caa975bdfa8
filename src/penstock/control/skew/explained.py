"""Which growth of a key's cost with its frequency explains the measured load of the channels."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Growth

__all__ = ["Explained", "explain_load"]

Floats = NDArray[np.float64]

_FLAT = 0.02
"""Shares that differ by less than this, relative to the mean, explain nothing."""
_CLEARLY = 0.75
"""A growth explains the load if it leaves at most this part of the squared differences."""
_STEEPEST = 1.5


@dataclass(frozen=True)
class Explained:
    """The growth, and by how much the load changes where the share of that growth changes by 1.

    Less than 1 where each channel also has work that does not depend on keys.
    """

    growth: Growth
    slope: float


def explain_load(relative: Floats, shares: Mapping[Growth, Floats], otherwise: Growth) -> Explained:
    """The growth whose shares by channel fit measured relative loads best, in least squares.

    `otherwise` is what the operator says; it stands if none fits clearly.

    >>> shares = {Growth.LINEAR: np.array([0.5, 0.3, 0.2]), Growth.CONSTANT: np.full(3, 1 / 3)}
    >>> found = explain_load(np.array([1.3, 0.95, 0.75]), shares, Growth.CONSTANT)
    >>> found.growth.name, round(found.slope, 2)
    ('LINEAR', 0.61)
    """
    load = relative - 1.0
    whole = float(load @ load)
    best, least = Explained(otherwise, _slope(load, shares.get(otherwise))), _CLEARLY * whole
    for growth, share in shares.items():
        slope = _slope(load, share)
        left = load - slope * (share * len(share) - 1.0)
        if float(left @ left) < least:
            best, least = Explained(growth, slope), float(left @ left)
    return best


def _slope(load: Floats, share: Floats | None) -> float:
    if share is None:
        return 0.0
    apart = share * len(share) - 1.0
    square = float(apart @ apart)
    if square < len(share) * _FLAT**2:
        return 0.0
    return float(np.clip(float(load @ apart) / square, 0.0, _STEEPEST))
