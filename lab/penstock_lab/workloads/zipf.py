"""Zipf frequencies, and draws from any frequencies."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw", "zipf_shares"]


def zipf_shares(keys: int, skew: float) -> NDArray[np.float64]:
    """The shares of `keys` keys; that of rank r, counted from 1, is in proportion to r ** -`skew`.

    >>> zipf_shares(2, 1.0).round(3).tolist()
    [0.667, 0.333]
    """
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -skew
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def draw(rng: np.random.Generator, shares: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Places among `shares`, each as often as its share says; costs a binary search each."""
    steps = shares.cumsum()
    # A sum that rounds to less than 1 must not leave a gap at the end.
    drawn = np.searchsorted(steps / steps[-1], rng.random(count), side="right")
    return drawn.astype(np.int64)
