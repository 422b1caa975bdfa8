"""Moves whole units (table keys, heavy cells) from rich channels to poor ones, no farther than to a level.

No move leaves the giver below the level or lifts the taker above it, so state that has moved does not move
again. Greedy: the richest channel gives its largest unit that fits.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["fair_level", "feed", "part"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def feed(  # noqa: PLR0913 -- each is one number of the rule
    costs: Floats,
    places: Ints,
    channels: int,
    *,
    base: Floats | None = None,
    level: float,
    cap: float = np.inf,
) -> Ints:
    """New places of units with these costs; a place of `channels` or more is a channel that goes away.

    `base` is a load that cannot move: it makes no channel a giver, but it fills a taker. Takers stop at
    `cap` if that is below the level.

    >>> feed(np.array([5.0, 3.0, 2.0, 1.0]), np.array([0, 0, 1, 1]), 3, level=4.0).tolist()
    [0, 2, 1, 1]
    """
    places = places.copy()
    base = np.zeros(channels) if base is None else base
    load = np.bincount(places, costs, channels)[:channels].astype(np.float64)
    going = np.flatnonzero(places >= channels)
    for unit in going[np.argsort(-costs[going], kind="stable")]:
        places[unit] = (load + base).argmin()
        load[places[unit]] += costs[unit]
    giving = np.ones(channels, bool)
    while True:
        excess = np.where(giving, load - level, -np.inf)
        giver, taker = int(excess.argmax()), int((load + base).argmin())
        # The margin lets a unit through that fits exactly.
        room = min(excess[giver], min(level, cap) - load[taker] - base[taker]) * (1 + 1e-9)
        if room <= 0:
            return places
        mine = np.flatnonzero(places == giver)
        fitting = mine[costs[mine] <= room]
        if not len(fitting):
            giving[giver] = False
            continue
        unit = fitting[costs[fitting].argmax()]
        places[unit] = taker
        load[giver] -= costs[unit]
        load[taker] += costs[unit]


def part(costs: Floats, places: Ints, channels: int, base: Floats | None = None) -> Ints:
    """New places of units, the heaviest first: each stays if it fits below the mean, else goes to the least.

    So two heavy units of a channel part even if no channel has room for one of them: it gets the room of
    lighter ones, which come later. `base` is a load that cannot move.

    >>> part(np.array([5.0, 5.0, 3.0, 3.0, 2.0]), np.array([0, 0, 1, 2, 0]), 3).tolist()
    [0, 1, 2, 2, 0]
    """
    places = places.copy()
    fixed = np.zeros(channels) if base is None else base
    load = fixed.copy()
    mean = float(costs.sum() + load.sum()) / channels * (1 + 1e-9)
    for unit in np.argsort(-costs, kind="stable"):
        home, lowest = int(places[unit]), int(load.argmin())
        # What is above the mean alone is no reason to go: it would be so everywhere.
        alone = costs[unit] > mean and load[home] == fixed[home]
        stays = alone or load[home] + costs[unit] <= mean
        places[unit] = home if stays else lowest
        load[places[unit]] += costs[unit]
    return places


def fair_level(costs: Floats, channels: int) -> float:
    """The mean load of channels, without those that one key alone lifts above the mean of the others.

    >>> fair_level(np.array([5.0, 1.0, 1.0, 1.0]), 4)
    1.0
    """
    total = float(costs.sum())
    for cost in np.sort(costs)[::-1].tolist():
        if channels == 1 or cost <= total / channels:
            break
        total -= cost
        channels -= 1
    return total / channels
