"""The bursty stream of [000] §6.4.1."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["bursty_rate"]


def bursty_rate(rng: np.random.Generator, seconds: int) -> NDArray[np.float64]:
    """Tuples in every second: 18 to 22 thousand, and with a probability of 0.1 five times as many."""
    calm = rng.uniform(18_000, 22_000, seconds)
    return np.where(rng.random(seconds) < 0.1, 5 * calm, calm)
