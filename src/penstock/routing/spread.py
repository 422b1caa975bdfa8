"""Which keys of a join are spread over grids of channels, as a manifest holds it."""

from dataclasses import dataclass

import numpy as np

from penstock.routing.hash_pair import HashPair
from penstock.routing.join_spread import JoinSpread

__all__ = ["Spread"]


@dataclass(frozen=True)
class Spread:
    """The hot keys of a join and their grids, as they are written down; without keys there are none."""

    keys: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, value: dict[str, list[int]]) -> "Spread":
        """What plain values stand for."""
        return cls(**{name: tuple(each) for name, each in value.items()})

    @classmethod
    def of(cls, router: JoinSpread) -> "Spread":
        """The keys of a router, if it spreads any of them over several channels.

        >>> from penstock.routing.ring import Ring
        >>> two = np.array([2]), np.array([1])
        >>> Spread.of(JoinSpread(np.array([7], np.uint64), *two, np.array([0, 3], np.int32), Ring(4)))
        Spread(keys=(7,), sizes=(2,), columns=(1,), targets=(0, 3))
        """
        if not (router.sizes > 1).any():
            return cls()
        return cls(
            tuple(router.keys.view(np.int64).tolist()),
            tuple(router.sizes.tolist()),
            tuple(router.columns.tolist()),
            tuple(router.targets.tolist()),
        )

    @property
    def grids(self) -> dict[int, tuple[int, tuple[int, ...]]]:
        """The keys that lie on grids: the number of columns of each, and the channels of its cells.

        >>> Spread((5, 7), (1, 2), (1, 1), (3, 0, 3)).grids
        {7: (1, (0, 3))}
        """
        found, start = {}, 0
        for key, size, across in zip(self.keys, self.sizes, self.columns, strict=True):
            if size > 1:
                found[key] = across, self.targets[start : start + size]
            start += size
        return found

    def router(self, pair: HashPair, *, judged: bool = False) -> JoinSpread:
        """The router that has all other keys where the pair has them; grids may be `judged`."""
        keys = np.array(self.keys, np.int64).view(np.uint64)
        others = np.flatnonzero(~np.isin(pair.keys, keys))
        whole = np.ones(len(others), np.int64)
        return JoinSpread(
            np.concatenate([keys, pair.keys[others]]),
            np.concatenate([np.array(self.sizes, np.int64), whole]),
            np.concatenate([np.array(self.columns, np.int64), whole]),
            np.concatenate([np.array(self.targets, np.int32), pair.targets[others].astype(np.int32)]),
            pair.ring,
            judged,
        )

    def settled(self, pair: HashPair) -> HashPair:
        """The pair with the keys that are placed here but not spread in its table."""
        keys = np.array(self.keys, np.int64).view(np.uint64)
        sizes = np.array(self.sizes, np.int64)
        whole = np.flatnonzero(sizes == 1)
        others = np.flatnonzero(~np.isin(pair.keys, keys))
        targets = np.array(self.targets, np.int32)[(np.cumsum(sizes) - sizes)[whole]]
        return HashPair(
            np.concatenate([keys[whole], pair.keys[others]]),
            np.concatenate([targets, pair.targets[others].astype(np.int32)]),
            pair.ring,
        )

    def fitting(self, channels: int) -> "Spread":
        """The keys that are spread over grids within so many channels."""
        fit = {key: grid for key, grid in self.grids.items() if max(grid[1]) < channels}
        return Spread(
            tuple(fit),
            tuple(len(cells) for _, cells in fit.values()),
            tuple(across for across, _ in fit.values()),
            tuple(cell for _, cells in fit.values() for cell in cells),
        )
