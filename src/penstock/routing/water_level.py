"""How high load stands when it is poured onto channels that are filled to different heights already."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["water_level"]


def water_level(heights: NDArray[np.float64], volume: float) -> float:
    """The common level of all channels that the volume reaches; higher ones stay dry.

    >>> water_level(np.array([1.0, 2.0, 9.0]), 3.0)
    3.0
    """
    order = np.sort(heights)
    levels = (volume + np.cumsum(order)) / np.arange(1, len(order) + 1)
    # The mean with the k lowest channels is the level if it covers the k-th of them.
    return float(levels[np.flatnonzero(levels >= order)[-1]])
