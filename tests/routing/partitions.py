"""Plain definitions and small worlds with which the partitionings are compared."""

import math

import numpy as np

from penstock.routing import HashPair, Ring
from penstock.routing.adaptation import utility
from penstock.routing.frequencies import Frequencies
from penstock.routing.threshold import allowance
from penstock.sketches.splitmix import splitmix64


def zipf(count, skew, seed=0):
    """All of `count` keys with Zipf frequencies."""
    shares = np.arange(1, count + 1) ** -float(skew)
    return Frequencies(splitmix64(np.arange(count, dtype=np.uint64), seed), shares / shares.sum())


def start(channels=1, seed=0):
    return HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(channels, seed=seed))


def grown(construct, known, channels, goal, seed=0):
    pair = start(seed=seed)
    for count in range(2, channels + 1):
        pair = construct(pair, known, count, goal)
    return pair


def penalty(goal, shares, places, channels):
    """Eq. 19 and 20 as they stand, over keys that have a place; constant resources left out."""
    factors = []
    for growth, tolerance in zip(goal.resources.growths, goal.resources.tolerances, strict=True):
        if growth.value:
            load = [0.0] * channels
            for share, place in zip(shares, places, strict=True):
                load[place] += share**growth.value
            mean = sum(load) / channels
            factors.append((max(load) - min(load)) / (allowance(tolerance, channels) * mean))
    return math.prod(factors) ** (1 / len(factors)), None


def plain_scan(start, goal):
    """Algorithm 2, one placement after the other."""
    shares, homes = start.tracked.shares.tolist(), start.homes.tolist()
    value, moved, places = utility(goal.utility), start.carried, []
    for at, home in enumerate(homes):
        options = []
        for channel in range(start.channels):
            balance, _ = penalty(goal, shares[: at + 1], [*places, channel], start.channels)
            cost = (moved + start.state[at] * (channel != home)) / start.ideal
            options.append((value(balance, cost), channel != home, channel))
        places.append(_best(options, shares, places))
        moved += start.state[at] * (places[-1] != home)
    return places


def plain_redistribute(start, goal):
    """Algorithm 3, every key on every channel at each step."""
    shares, homes = start.tracked.shares.tolist(), start.homes.tolist()
    value, moved, placed = utility(goal.utility), start.carried, {}
    while len(placed) < len(shares):
        options = []
        for at, home in enumerate(homes):
            for channel in range(start.channels) if at not in placed else ():
                some = [*placed, at]
                places = [*placed.values(), channel]
                balance, _ = penalty(goal, [shares[key] for key in some], places, start.channels)
                cost = (moved + start.state[at] * (channel != home)) / start.ideal
                options.append((value(balance, cost) / shares[at], channel != home, at, channel))
        least = min(option[0] for option in options)
        close = [option for option in options if option[0] <= least * (1 + 1e-9)]
        first = min(option[2] for option in close)
        load = _loads([shares[key] for key in placed], list(placed.values()), start.channels)
        mine = [(o[1], load[o[3]], o[3]) for o in close if o[2] == first]
        placed[first] = min(mine)[2]
        moved += start.state[first] * (placed[first] != homes[first])
    return [placed[at] for at in range(len(shares))]


def _best(options, shares, places):
    least = min(option[0] for option in options)
    load = _loads(shares[: len(places)], places, len(options))
    close = [(moves, load[at], at) for value, moves, at in options if value <= least * (1 + 1e-9)]
    return min(close)[2]


def _loads(shares, places, channels):
    load = [0.0] * channels
    for share, place in zip(shares, places, strict=True):
        load[place] += share
    return load
