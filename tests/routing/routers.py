"""Every router that the contract suite checks, as functions from a number of channels to a router."""

import numpy as np

from penstock.routing import HashPair, Ring, RoundRobin, SubKeys, plan_panes, spread_hot_keys
from penstock.routing.balanced import balanced
from penstock.routing.frequencies import Frequencies
from penstock.routing.readjust import readjust
from penstock.routing.redistribute import redistribute
from penstock.routing.scan import scan
from penstock.routing.threshold import Goal
from penstock_lab.algorithms import UniformHash

HOT = np.random.default_rng(5).integers(0, 2**64, 300, dtype=np.uint64)


def hash_pair(channels):
    return HashPair(HOT, (np.arange(len(HOT)) % channels).astype(np.int32), Ring(channels))


class Dealt:
    """A split that takes a running number of tuples, here simply their order."""

    def __init__(self, split):
        self.split, self.channels = split, split.channels

    def route(self, hashes):
        return self.split.route(hashes, np.arange(len(hashes)))


class DealtPanes(Dealt):
    def route(self, hashes):
        return super().route((hashes % np.uint64(200)).view(np.int64))


def sub_keys(channels):
    return Dealt(SubKeys(HOT, np.arange(len(HOT)) % 5 + 1, Ring(channels)))


def rate_panes(channels):
    return DealtPanes(plan_panes(50, np.random.default_rng(6).integers(0, 3, (100, channels)).astype(float)))


class OneCopy(Dealt):
    """The left side of a join that may copy its right side only: each tuple goes to one channel."""

    def route(self, hashes):
        return self.split.left(hashes, np.random.default_rng(9).permutation(hashes)).channels


def join_spread(channels):
    rates = 1 / np.arange(1, 301)
    return OneCopy(spread_hot_keys(HOT, rates, rates, Ring(channels), "right"))


def constructed(construct):
    """A hash pair that a partitioning grew one channel at a time from a skewed stream."""
    known = Frequencies(HOT, 0.9 * (1 / np.arange(1, 301)) / (1 / np.arange(1, 301)).sum())

    def router(channels):
        pair = HashPair(HOT[:0], np.zeros(0, np.int32), Ring(1))
        for count in sorted({1, 2, 3, channels - 1, channels} & set(range(1, channels + 1))):
            pair = construct(pair, known, count, Goal(domain=100_000))
        return pair

    return router


# Their route depends on the key alone, and they export arrays.
KEYED = {
    "ring": Ring,
    "uniform": UniformHash,
    "hash pair": hash_pair,
    "scan": constructed(scan),
    "redist": constructed(redistribute),
    "readj": constructed(readjust),
    "balanced": constructed(balanced),
    "empty hash pair": lambda channels: HashPair(HOT[:0], np.zeros(0, np.int32), Ring(channels)),
}
# Those of them that move keys to a new channel only, when one is added.
CONSISTENT = ["ring", "empty hash pair"]
ROUTERS = KEYED | {
    "round robin": RoundRobin,
    "sub-keys": sub_keys,
    "rate-aware panes": rate_panes,
    "join spread": join_spread,
}
