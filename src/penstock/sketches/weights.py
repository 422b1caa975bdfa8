"""Checks weights: one for each item, finite and not negative, since sketches only add."""

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting

__all__ = ["check_weights"]


def check_weights(items: int, weights: NDArray[np.float64] | None) -> None:
    """Refuse weights that would make a sketch useless; None means a weight of 1 for each item."""
    if weights is None:
        return
    if len(weights) != items:
        raise BadRouting(f"{items} hashes have {len(weights)} weights; give one weight for each hash")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise BadRouting("a weight is negative or not finite; give weights of 0 or more")
