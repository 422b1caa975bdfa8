"""How a slice of a stream falls on channels: shares come from the real routers, counts are drawn at random.

Every split hands on exactly the tuples it is given, times the copies that it makes (the load
balancers of [002] §III.C and §III.D). A router always gives the same answer for a key, so it is asked once
for all keys. How many tuples of a slice fall on each channel is then drawn at random, in O(channels).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Copies, Grid, Hashes, RoundRobin, Router, grid_for
from penstock.sketches import splitmix64
from penstock_lab.errors import BadSimulation

__all__ = ["Amounts", "Dealt", "Gridded", "Keyed", "Split", "key_hashes"]

Amounts = NDArray[np.float64]

# Hashes that stand for all others: a channel's share of them is right to 1/4,096.
_HASHES = np.arange(4_096, dtype=np.uint64) << np.uint64(52)


class Split(Protocol):
    """Spreads tuples over channels."""

    @property
    def channels(self) -> int:
        """How many channels there are."""
        ...

    @property
    def copies(self) -> float:
        """To how many channels a tuple goes, on average."""
        ...

    def parts(self, tuples: float, rng: np.random.Generator) -> Amounts:
        """The tuples that each channel gets from a slice of both sides."""
        ...

    def held(self, tuples: float, rng: np.random.Generator) -> tuple[Amounts, Amounts]:
        """The tuples that each channel gets of windows with `tuples` tuples on either side."""
        ...


@dataclass(frozen=True)
class Dealt:
    """Round robin; the senders do not know of each other, so each slice begins at any channel.

    >>> Dealt(3).parts(6.0, np.random.default_rng(1)).tolist()
    [2.0, 2.0, 2.0]
    """

    channels: int

    @property
    def copies(self) -> float:
        """One."""
        return 1.0

    def parts(self, tuples: float, rng: np.random.Generator) -> Amounts:
        """The same for all, to a tuple."""
        rounds, rest = divmod(tuples, self.channels)
        router = RoundRobin(self.channels, int(rng.integers(self.channels)))
        routes = router.route(np.zeros(_whole(rest), np.uint64))
        return rounds + _weighed(np.bincount(routes, minlength=self.channels), rest / len(routes))

    def held(self, tuples: float, rng: np.random.Generator) -> tuple[Amounts, Amounts]:
        """Refused: tuples dealt in turn cannot be joined."""
        del rng
        raise BadSimulation(
            f"a window of {tuples} tuples is dealt in turn over {self.channels} channels; "
            "split a stage with a window by key or on a grid"
        )


@dataclass(frozen=True)
class Keyed:
    """By key: equally frequent keys with these hashes, through a router."""

    router: Router
    keys: Hashes

    @property
    def channels(self) -> int:
        """Those of the router."""
        return self.router.channels

    @property
    def copies(self) -> float:
        """One."""
        return 1.0

    def parts(self, tuples: float, rng: np.random.Generator) -> Amounts:
        """Keys drawn at random."""
        count = _whole(tuples)
        return _weighed(rng.multinomial(count, self._shares), tuples / count)

    def held(self, tuples: float, rng: np.random.Generator) -> tuple[Amounts, Amounts]:
        """Equal keys of both sides meet, so both follow the same router."""
        return self.parts(tuples, rng), self.parts(tuples, rng)

    @cached_property
    def _shares(self) -> Amounts:
        """The part of all keys at each channel: a router always says the same, so it is asked once."""
        return np.bincount(self.router.route(self.keys), minlength=self.channels) / len(self.keys)


@dataclass(frozen=True)
class Gridded:
    """The grid of a Cartesian product; half of the tuples come from either side.

    >>> Gridded(16).copies
    4.0
    """

    channels: int

    @cached_property
    def grid(self) -> Grid:
        """The grid with the fewest copies for two equal streams."""
        return grid_for(self.channels)

    @property
    def copies(self) -> float:
        """About the square root of the number of channels."""
        return (self.grid.left_copies + self.grid.right_copies) / 2

    def parts(self, tuples: float, rng: np.random.Generator) -> Amounts:
        """The copies of both sides."""
        left, right = self.held(tuples / 2, rng)
        whole: Amounts = left + right
        return whole

    def held(self, tuples: float, rng: np.random.Generator) -> tuple[Amounts, Amounts]:
        """A column's part of the left tuples and a row's part of the right ones."""
        left, right = self._patterns
        return left.parts(tuples, rng), right.parts(tuples, rng)

    @cached_property
    def _patterns(self) -> tuple["_Pattern", "_Pattern"]:
        left, right = self.grid.left(_HASHES), self.grid.right(_HASHES)
        return _Pattern.of(left, self.channels), _Pattern.of(right, self.channels)


@dataclass(frozen=True)
class _Pattern:
    """The sets of channels that tuples of one side are copied to, and how many tuples go to each set."""

    sets: NDArray[np.int64]
    shares: Amounts

    @classmethod
    def of(cls, copies: Copies, channels: int) -> "_Pattern":
        member = np.zeros((len(_HASHES), channels), np.int64)
        member[copies.rows, copies.channels] = 1
        sets, counts = np.unique(member, axis=0, return_counts=True)
        return cls(sets, counts / len(_HASHES))

    def parts(self, tuples: float, rng: np.random.Generator) -> Amounts:
        count = _whole(tuples)
        return _weighed(rng.multinomial(count, self.shares) @ self.sets, tuples / count)


def key_hashes(keys: int, seed: int = 0) -> Hashes:
    """Hashes of `count` keys."""
    return splitmix64(np.arange(keys, dtype=np.uint64), seed)


def _whole(tuples: float) -> int:
    """At least one, so that a fraction of a tuple goes somewhere."""
    return max(int(np.ceil(tuples)), 1)


def _weighed(counts: NDArray[np.int64], weight: float) -> Amounts:
    return counts.astype(np.float64) * np.float64(weight)
