"""How a slice of a stream falls on channels: the real routers say, and chance is that of the real count.

Every split hands on exactly the tuples it is given, times the copies that it makes (load balancers: 002,
sections III.C and III.D). Keys are routed once, and how many of a slice's tuples have a key of which
channel is drawn. A grid routes up to 4,096 hashes a side and slice; beyond that each stands for several,
which makes the imbalance of very fast streams look larger than it is, never smaller.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadSimulation
from penstock.routing import Grid, RoundRobin, Router, grid_for
from penstock.routing.router import Hashes
from penstock.sketches.splitmix import splitmix64

__all__ = ["Amounts", "Dealt", "Gridded", "Keyed", "Split", "key_hashes"]

Amounts = NDArray[np.float64]

_SAMPLE = 4_096
# A window is routed once a run, so it can be looked at more closely.
_WINDOW_SAMPLE = 1 << 17


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
        """The tuples that each channel gets of windows with so many tuples on either side."""
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
        return rounds + _amounts(router.route(np.zeros(_size(rest, _SAMPLE), np.uint64)), rest, self)

    def held(self, tuples: float, rng: np.random.Generator) -> tuple[Amounts, Amounts]:
        """Refused: what is dealt in turn cannot be joined."""
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
        count = max(int(np.ceil(tuples)), 1)
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
        left, right = self._sides(tuples / 2, rng, _SAMPLE)
        whole: Amounts = left + right
        return whole

    def held(self, tuples: float, rng: np.random.Generator) -> tuple[Amounts, Amounts]:
        """A column's part of the left window and a row's part of the right one."""
        return self._sides(tuples, rng, _WINDOW_SAMPLE)

    def _sides(self, tuples: float, rng: np.random.Generator, most: int) -> tuple[Amounts, Amounts]:
        count = _size(tuples, most)
        left, right = rng.integers(0, 1 << 64, (2, count), dtype=np.uint64)
        found = self.grid.left(left).channels, self.grid.right(right).channels
        one, other = (np.bincount(each, minlength=self.channels) for each in found)
        return _weighed(one, tuples / count), _weighed(other, tuples / count)


def key_hashes(keys: int, seed: int = 0) -> Hashes:
    """Hashes of so many keys."""
    return splitmix64(np.arange(keys, dtype=np.uint64), seed)


def _size(tuples: float, most: int) -> int:
    return int(min(max(np.ceil(tuples), 1), most))


def _amounts(routes: NDArray[np.int32], tuples: float, split: Split) -> Amounts:
    return _weighed(np.bincount(routes, minlength=split.channels), tuples / len(routes))


def _weighed(counts: NDArray[np.int64], weight: float) -> Amounts:
    return counts.astype(np.float64) * np.float64(weight)
