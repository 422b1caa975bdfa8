"""How long it takes to construct a partitioning ([003] Fig. 12 to 14), against the promised times."""

import time
from collections.abc import Mapping

import numpy as np

from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.partitionings import REGISTRY, next_router
from penstock.routing.ring import Ring
from penstock.routing.scan import scan
from penstock.routing.threshold import Goal, counter_threshold, table_threshold
from penstock.sketches.splitmix import splitmix64
from penstock_lab.bench.timing import Measured, best_seconds
from penstock_lab.reports import Check, Value, say
from penstock_lab.workloads import zipf_shares

__all__ = ["construction"]

SOURCE = "promised for one core"
_PAPER = {("readj", 0.1): 0.05, ("readj", 0.008): 10.0, ("redist", 0.008): 0.5}
_CEILINGS = {
    ("scan", 0.1): 0.005,
    ("readj", 0.1): 0.02,
    ("balanced", 0.1): 0.02,
    ("readj", 0.008): 1.0,
    ("redist", 0.008): 0.1,
}


def construction(seed: int, repeats: int) -> Measured:
    """The default setting, a small sigma, and scan with a thousand channels."""
    say("construction")
    rows: list[Mapping[str, Value]] = []
    checks = []
    for sigma in (0.1, 0.008):
        for name in (name for name, each in REGISTRY.items() if each.next is not None):
            seconds, keys = _seconds(name, Goal(sigma=sigma), seed, min(repeats, 5))
            rows.append(_row(f"{name}, N = 10, sigma = {sigma}", keys, seconds, _PAPER.get((name, sigma))))
            if (name, sigma) in _CEILINGS:
                limit = _CEILINGS[name, sigma]
                checks.append(Check(f"{name}, sigma = {sigma}, seconds", seconds, SOURCE, ceiling=limit))
    seconds, keys = _many_channels(seed)
    rows.append(_row("scan, N = 1,000", keys, seconds, None))
    checks.append(Check(f"scan, N = 1,000, {keys:,} keys, seconds", seconds, SOURCE, ceiling=1.0))
    return Measured(tuple(rows), tuple(checks))


def _row(case: str, keys: int, seconds: float, paper: float | None) -> Mapping[str, Value]:
    return {
        "engine": "penstock",
        "case": f"construct: {case}",
        "items": keys,
        "cpu_s": round(seconds, 6),
        "paper_s": paper,
    }


def _seconds(name: str, goal: Goal, seed: int, repeats: int) -> tuple[float, int]:
    """The best time of the step from 9 to 10 channels, and the keys in its table."""
    known = _known(goal.domain, 1.0, seed).at_least(0.1 * counter_threshold(goal, 10))
    if name != "balanced":
        known = known.at_least(counter_threshold(goal, 10))
    pair = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), Ring(1, seed=seed))
    for count in range(2, 10):
        pair = next_router(name, pair, known, count, goal)
    keys = len(next_router(name, pair, known, 10, goal).keys)
    return best_seconds(lambda: next_router(name, pair, known, 10, goal), repeats, time.process_time), keys


def _many_channels(seed: int) -> tuple[float, int]:
    channels, wanted = 1000, 20_000
    known = _known(10**6, 0.6, seed).at_least(0.0)
    known = Frequencies(known.hashes[:wanted], known.shares[:wanted])
    least = float(known.shares[-1])
    sigma = Goal().sigma * least / table_threshold(Goal(), channels, known.shares)
    goal = Goal(sigma=sigma * (1 - 1e-9))
    ring = Ring(channels - 1, seed=seed, buckets=1 << 20)
    before = HashPair(np.empty(0, np.uint64), np.empty(0, np.int32), ring)
    before.route(known.hashes[:1])
    keys = len(scan(before, known, channels, goal).keys)
    return best_seconds(lambda: scan(before, known, channels, goal), 2, time.process_time), keys


def _known(domain: int, skew: float, seed: int) -> Frequencies:
    ranks = np.arange(min(domain, 50_000), dtype=np.uint64)
    return Frequencies(splitmix64(ranks, seed + (1 << 40)), zipf_shares(domain, skew)[: len(ranks)])
