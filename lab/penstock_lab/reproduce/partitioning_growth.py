"""How partitionings are measured ([003] §5.1): channels are added one at a time, from 1 up to N.

In these experiments "readj" is the paper's Algorithm 4 as it is printed, and "readjust" is Penstock's own
search, which a run takes under the name "readj".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from penstock.routing.balance import Balance, balance, loads
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.partitionings import REGISTRY, Next
from penstock.routing.resources import Growth
from penstock.routing.ring import Ring
from penstock.routing.router import Costs, Router
from penstock.routing.threshold import Goal, counter_threshold
from penstock_lab.algorithms import UniformHash, readj
from penstock_lab.reproduce.zipf_keys import Population, zipf_keys

__all__ = [
    "ALGORITHMS",
    "CONSTRUCTORS",
    "Case",
    "Measured",
    "counted",
    "measure",
    "measure_growth",
    "pairs",
    "population",
]

_OWN = {name: each.next for name, each in REGISTRY.items() if each.next is not None}
CONSTRUCTORS: Mapping[str, Next] = {**_OWN, "readj": readj, "readjust": _OWN["readj"]}
ALGORITHMS = ("balanced", "uniform", "consistent", "scan", "redist", "readj", "readjust")

# A lossy counter with an error of a tenth of the threshold holds keys down to that ([003] §4.1.2).
_COUNTED = 0.1
_POSITIONS = 1 << 20


@dataclass(frozen=True)
class Case:
    """One run: the goal, the skew of the keys, the channels to grow to, the seeds of keys and of the ring."""

    goal: Goal
    skew: float
    channels: int
    seed: int
    ring: int


@dataclass(frozen=True)
class Measured:
    """Imbalance and migration of the last step of growth, and the size of the table."""

    balance: Balance
    migration: float
    table: int


def measure(case: Case, algorithm: str) -> Measured:
    """The figures at `case.channels` channels."""
    return measure_growth(case, algorithm, (case.channels,))[case.channels]


def measure_growth(case: Case, algorithm: str, at: tuple[int, ...]) -> dict[int, Measured]:
    """The figures at each of these numbers of channels, on the way to the last of them."""
    if algorithm == "uniform":
        return {channels: _uniform(case.goal, case.skew, channels) for channels in at}
    keys = population(case.goal.domain, case.skew, case.seed)
    resources = case.goal.resources
    return {
        after.channels: Measured(
            keys.balance(after, resources),
            keys.migration(before, after, resources),
            len(after.keys) if isinstance(after, HashPair) else 0,
        )
        for before, after in _growth(case, algorithm, at)
        if after.channels in at
    }


def pairs(case: Case, algorithm: str) -> Iterator[tuple[HashPair, HashPair]]:
    """Each hash pair with its successor, from 1 channel to `case.channels`."""
    keys = population(case.goal.domain, case.skew, case.seed)
    pair = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(1, seed=case.ring))
    for channels in range(2, case.channels + 1):
        known = counted(keys, case.goal, channels, algorithm)
        successor = CONSTRUCTORS[algorithm](pair, known, channels, case.goal)
        yield pair, successor
        pair = successor


def counted(keys: Population, goal: Goal, channels: int, algorithm: str) -> Frequencies:
    """The keys that an algorithm gets: those above the threshold, or all that the counter holds."""
    part = _COUNTED if algorithm == "balanced" else 1.0
    return keys.named.at_least(part * counter_threshold(goal, channels))


def _growth(case: Case, algorithm: str, at: tuple[int, ...]) -> Iterator[tuple[Router, Router]]:
    if algorithm == "consistent":
        for count in at:
            yield Ring(count - 1, seed=case.ring), Ring(count, seed=case.ring)
    else:
        yield from pairs(replace(case, channels=max(at)), algorithm)


@cache
def _uniform(goal: Goal, skew: float, channels: int) -> Measured:
    """The uniform hash as the paper's figures imply it: the key's number modulo N, so that no run differs.

    Only that gives its migration (22 times ideal at N = 32 instead of 31, falling with smaller domains), as
    the most frequent keys then have low numbers and stay.
    """
    routers = [UniformHash(count, buckets=_POSITIONS) for count in (channels - 1, channels)]
    load: dict[Growth, Costs] = {growth: np.zeros(channels) for growth in Growth}
    moved = 0.0
    for start in range(0, goal.domain, _POSITIONS):
        numbers = np.arange(min(_POSITIONS, goal.domain - start), dtype=np.uint64)
        frequencies = (start + 1.0 + numbers.astype(np.float64)) ** -skew
        before, after = (router.route(numbers << np.uint64(44)) for router in routers)
        for growth in Growth:
            load[growth] += loads(after, growth.costs(frequencies), channels)
        moved += float(goal.resources.state.costs(frequencies)[before != after].sum())
    total = float(load[goal.resources.state].sum())
    return Measured(balance(goal.resources, load), moved * channels / total, 0)


@cache
def population(domain: int, skew: float, seed: int) -> Population:
    """The keys of one run, made once."""
    return zipf_keys(domain, skew, seed)
