"""Every router that the contract suite checks, as functions from a number of channels to a router."""

import numpy as np

from penstock.routing import HashPair, Ring, RoundRobin, UniformHash

HOT = np.random.default_rng(5).integers(0, 2**64, 300, dtype=np.uint64)


def hash_pair(channels):
    return HashPair(HOT, (np.arange(len(HOT)) % channels).astype(np.int32), Ring(channels))


# Their route depends on the key alone, and they export arrays.
KEYED = {
    "ring": Ring,
    "uniform": UniformHash,
    "hash pair": hash_pair,
    "empty hash pair": lambda channels: HashPair(HOT[:0], np.zeros(0, np.int32), Ring(channels)),
}
# Those of them that move keys to a new channel only, when one is added.
CONSISTENT = ["ring", "empty hash pair"]
ROUTERS = KEYED | {"round robin": RoundRobin}
