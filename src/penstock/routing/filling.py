"""How many ring cells each channel gets: the most even loads that a migration budget allows.

All cells here are equal. What a channel has in addition is fixed, so its load of every growth is
`fixed + share * total`. A box of least and greatest loads bounds the share of each channel, and the least
migration into a box has a closed form; many boxes are tried at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from penstock.routing.resources import Growth

__all__ = ["Filling", "fill", "water_level"]

Floats = NDArray[np.float64]

# Distances from the even load at which a box may end; fine near it, coarse far away.
_ALONE = (0.0, 0.004, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.35, 0.6)
_JOINT = (0.0, 0.01, 0.03, 0.08, 0.2, 0.5)


@dataclass(frozen=True)
class Filling:
    """The share of the cells for each channel, the fraction of all cells that moves, and the imbalance.

    `imbalance` is the sum over the three resources of log(most / least load), which orders as b does. `above`
    sums what each of them is above the log of its own tolerance.
    """

    shares: Floats
    moved: float
    imbalance: float
    above: float


def fill(  # noqa: PLR0913 -- what there is, what is wanted, and the limits
    fixed: dict[Growth, Floats],
    totals: dict[Growth, float],
    tolerances: Sequence[tuple[Growth, float]],
    shares: Floats,
    *,
    budget: float,
    held: float = 0.0,
) -> Filling:
    """The most even filling that moves at most `budget` of the cells, or as few more as possible.

    What a resource is above its tolerance counts `held` times more.

    `shares` are those that the channels have now, and sum to less than 1 if cells lost their channel.
    `tolerances` has the growth and the tolerated imbalance of every resource. Costs O(N) for each of some
    thousand boxes.
    """
    boxes = _boxes(fixed, totals, {growth for growth, _ in tolerances})
    filled = _nearest(boxes, shares)
    moved = np.maximum(filled - shares, 0).sum(axis=1)
    if shares.sum() > 1 - 1e-9 and budget > 0:
        # A box beyond the budget still shows the way: go as far towards it as the budget lasts.
        reach = budget / np.maximum(moved, budget)
        filled, moved = shares + (filled - shares) * reach[:, None], moved * reach
    imbalance, above = np.zeros(len(filled)), np.zeros(len(filled))
    with np.errstate(divide="ignore", invalid="ignore"):
        for growth, tolerance in tolerances:
            load = fixed[growth] + filled * totals[growth]
            ratio = np.log(load.max(axis=1) / load.min(axis=1))
            imbalance += ratio
            above += np.maximum(ratio - np.log(tolerance), 0.0)
    imbalance = np.where(np.isfinite(imbalance), imbalance, np.inf)
    weighed = imbalance + held * above if held else imbalance
    weighed = np.where(np.isfinite(weighed), weighed, np.inf)
    within = moved <= max(budget, float(moved.min())) + 1e-12
    goal = weighed[within].min()
    # Unknown keys add more than this margin, so it is better spent on fewer moves.
    good = np.flatnonzero(within & (weighed <= goal + 0.002))
    # Of boxes that differ by rounding alone take the first, so that the last bit does not decide.
    best = good[(moved[good] <= moved[good].min() + 1e-12).argmax()]
    return Filling(filled[best], float(moved[best]), float(imbalance[best]), float(above[best]))


def water_level(heights: NDArray[np.float64], volume: float) -> float:
    """The level of load poured onto channels that are filled to these heights; higher ones stay dry.

    >>> water_level(np.array([1.0, 2.0, 9.0]), 3.0)
    3.0
    """
    order = np.sort(heights)
    levels = (volume + np.cumsum(order)) / np.arange(1, len(order) + 1)
    # The mean with the k lowest channels is the level if it covers the k-th of them.
    return float(levels[np.flatnonzero(levels >= order)[-1]])


def _boxes(
    fixed: dict[Growth, Floats], totals: dict[Growth, float], growths: set[Growth]
) -> tuple[Floats, Floats]:
    """Least and greatest share of each channel in each box, one row a box; only boxes that can be filled."""
    channels = len(fixed[Growth.LINEAR])
    counted = Growth.CONSTANT in growths
    steps = _JOINT if counted else _ALONE
    level = water_level(fixed[Growth.LINEAR], totals[Growth.LINEAR])
    sides = [steps, (*steps, 1.0, np.inf)] + ([steps, (0.0, 0.02, 0.1, np.inf)] if counted else [])
    ends = np.array(list(product(*sides)))
    low, high = level * (1 - ends[:, :1]), level * (1 + ends[:, 1:2])
    least = np.maximum((low - fixed[Growth.LINEAR]) / totals[Growth.LINEAR], 0.0)
    most = np.maximum((high - fixed[Growth.LINEAR]) / totals[Growth.LINEAR], 0.0)
    if counted:
        number = totals[Growth.CONSTANT]
        even = (fixed[Growth.CONSTANT].sum() + number) / channels
        least = np.maximum(least, (even * (1 - ends[:, 2:3]) - fixed[Growth.CONSTANT]) / number)
        # A channel whose keys alone are above the linear bound still gets its least number of cells.
        most = np.maximum(most, (even * (1 - ends[:, 2:3]) - fixed[Growth.CONSTANT]) / number)
        most = np.minimum(most, (even * (1 + ends[:, 3:4]) - fixed[Growth.CONSTANT]) / number)
    most = np.minimum(most, 1.0)
    fits = (least.sum(axis=1) <= 1 + 1e-12) & (most.sum(axis=1) >= 1 - 1e-12) & (least <= most).all(axis=1)
    none, all_ = np.zeros((1, channels)), np.ones((1, channels))
    return np.concatenate([least[fits], none]), np.concatenate([most[fits], all_])


def _nearest(boxes: tuple[Floats, Floats], shares: Floats) -> Floats:
    """The shares in each box that need the fewest moves from the present ones."""
    least, most = boxes
    filled = np.clip(shares, least, most)
    missing = 1 - filled.sum(axis=1, keepdims=True)
    room = np.where(missing > 0, most - filled, filled - least)
    total = room.sum(axis=1, keepdims=True)
    even: Floats = filled + missing * room / np.where(total > 0, total, 1.0)
    return even
