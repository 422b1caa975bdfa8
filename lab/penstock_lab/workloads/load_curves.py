"""Load over time, second by second, as multiples of what one unit does: the two streams of [001] Fig. 11.

The paper draws them and gives no numbers. Ours begin and end at half of one unit. *Progressive* rises to six
units in five minutes, stays there for five, and falls. *Erratic* has two peaks of ten units for one or two
ticks of ten seconds, and then a last rise to six units for two minutes.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["LOAD_CURVES", "arrival_times", "erratic", "progressive"]

Floats = NDArray[np.float64]

BASE, PLATEAU, PEAK = 0.5, 6.0, 10.0


def progressive(rng: np.random.Generator) -> Floats:
    """1,200 seconds: rise, plateau, fall; when it begins differs by up to a minute."""
    start = int(rng.integers(120, 181))
    corners = [0, start, start + 120, start + 600, start + 840, 1200]
    return np.interp(np.arange(1200), corners, [BASE, BASE, PLATEAU, PLATEAU, BASE, BASE])


def erratic(rng: np.random.Generator) -> Floats:
    """1,200 seconds: two short peaks and a longer rise, at instants that differ."""
    curve = np.full(1200, BASE)
    for near in (200, 450):
        start = near + int(rng.integers(0, 60))
        curve[start : start + int(rng.integers(10, 21))] = PEAK
    last = 700 + int(rng.integers(0, 60))
    curve[last : last + 120] = PLATEAU
    return curve


LOAD_CURVES: Mapping[str, Callable[[np.random.Generator], Floats]] = {
    "progressive": progressive,
    "erratic": erratic,
}


def arrival_times(rng: np.random.Generator, rates: Floats) -> Floats:
    """Instants at random, with the rate of each second as their mean.

    >>> times = arrival_times(np.random.default_rng(1), np.array([0.0, 1000.0]))
    >>> bool(times.min() >= 1.0), 900 < len(times) < 1100
    (True, True)
    """
    counts = rng.poisson(rates)
    return np.sort(np.repeat(np.arange(len(rates)), counts) + rng.random(counts.sum()))
