"""Splits frequent keys into sub-keys that are placed on the ring like keys of their own ([000] §4.1).

The guarantees: the tuples of a key take its sub-keys in turn; the first sub-key is the key itself and the
others keep their places for any number of parts, so a key that becomes hot leaves one part where it was,
and a new channel moves no more than the ring does. A tuple costs one lookup more than by the ring alone, and
three more if its key is split.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.arrays import RouteArrays, route_arrays
from penstock.routing.ring import Ring
from penstock.routing.router import Channels, Costs, Hashes
from penstock.sketches.splitmix import splitmix64

__all__ = ["Parts", "SubKeys", "split_hot_keys", "sub_key"]

Parts = NDArray[np.int64]


def sub_key(keys: Hashes, part: Parts) -> Hashes:
    """The hash of each key's sub-key with this number, counted from 0; number 0 is the key itself.

    >>> key = np.array([7, 7], np.uint64)
    >>> [hex(each) for each in sub_key(key, np.array([0, 1])).tolist()]
    ['0x7', '0x7a1f74a83d0e2a5a']
    """
    numbered = splitmix64(keys ^ splitmix64(part.astype(np.uint64)))
    return np.where(part == 0, keys, numbered)


@dataclass(frozen=True, eq=False)
class SubKeys:
    """Routes each of `keys` over the number of sub-keys in `parts`, and all other hashes by the ring.

    What an engine needs to evaluate the route: `arrays` gives the channel of a key that is whole, and for a
    split one the bitwise complement of its place in `starts` and `counts`; the channels of its sub-keys are
    the `counts` entries of `targets` that begin at `starts`.

    >>> router = SubKeys(np.array([5], np.uint64), np.array([3]), Ring(4))
    >>> router.targets.tolist()
    [2, 2, 0]
    >>> router.route(np.array([5, 5, 5, 5, 6], np.uint64), np.arange(5)).tolist()
    [2, 2, 0, 2, 2]
    """

    keys: Hashes
    parts: Parts
    ring: Ring

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.parts):
            raise BadRouting(
                f"{len(self.keys)} keys have {len(self.parts)} numbers of parts; give one for each key"
            )
        if len(np.unique(self.keys)) != len(self.keys):
            raise BadRouting(
                f"a key occurs twice among the {len(self.keys)} keys to split; give each key once"
            )
        if len(self.parts) and self.parts.min() < 1:
            raise BadRouting(f"a key has {self.parts.min()} parts; give at least 1, which leaves it whole")

    @property
    def channels(self) -> int:
        """How many channels there are."""
        return self.ring.channels

    @cached_property
    def arrays(self) -> RouteArrays:
        """Channels of whole keys, and complements of places for split ones."""
        places = ~np.arange(len(self._split), dtype=np.int32)
        return route_arrays(self.keys[self._split], places, self.ring.cells, self.channels)

    @cached_property
    def counts(self) -> Parts:
        """The number of sub-keys of every split key."""
        return self.parts[self._split].astype(np.int64)

    @cached_property
    def starts(self) -> Parts:
        """Where the channels of every split key begin in `targets`."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def sub_keys(self) -> Hashes:
        """The hashes of all sub-keys of the split keys, in the order of `targets`."""
        numbers = np.arange(int(self.counts.sum())) - np.repeat(self.starts, self.counts)
        return sub_key(np.repeat(self.keys[self._split], self.counts), numbers)

    @cached_property
    def targets(self) -> Channels:
        """The channel of every sub-key, by the ring."""
        return self.ring.route(self.sub_keys)

    def route(self, hashes: Hashes, sequence: NDArray[np.int64]) -> Channels:
        """The channel of every tuple, from the hash of its key and its running number.

        If the number counts the tuples of a key, its sub-keys get equal parts, to one tuple. A number that
        counts all tuples, such as a row's position in its partition, is cheaper and as good on average.
        """
        routes = self.arrays.route(hashes)
        hot = np.flatnonzero(routes < 0)
        places = ~routes[hot]
        turn = sequence[hot] % self.counts[places]
        routes[hot] = self.targets[self.starts[places] + turn]
        return routes

    @cached_property
    def _split(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.parts > 1)


def split_hot_keys(keys: Hashes, frequencies: Costs, ring: Ring, *, grain: int = 128) -> SubKeys:
    """Sub-keys in proportion to the frequency: `grain` of them make the fair share of one channel.

    `frequencies` are the shares of these keys in all tuples, together at most 1. A key rarer than
    1 / (`grain` · channels) stays whole; all sub-keys together are at most `grain` · channels, and one more
    for each key. They fall on the ring at random, so what the hot keys add to a channel deviates by about
    1 / sqrt(`grain`) of its share: 9 % by default. A finer grain costs larger arrays, and partial results
    of one key in more channels.

    >>> hot = split_hot_keys(np.array([1, 2], np.uint64), np.array([0.5, 0.1]), Ring(4), grain=4)
    >>> hot.parts.tolist()
    [8, 2]
    """
    if grain < 1:
        raise BadRouting(f"grain is {grain}; give at least 1 sub-key for a channel's share")
    total = float(frequencies.sum())
    if not (np.isfinite(total) and (frequencies >= 0).all() and total <= 1 + 1e-9):
        raise BadRouting(
            f"frequencies add up to {total}; give each key's share of all tuples; together they are at most 1"
        )
    parts = np.ceil(frequencies * (grain * ring.channels)).astype(np.int64)
    return SubKeys(keys, np.maximum(parts, 1), ring)
