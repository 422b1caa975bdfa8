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

    def router(self, pair: HashPair) -> JoinSpread:
        """The router that has all other keys where the pair has them."""
        keys = np.array(self.keys, np.int64).view(np.uint64)
        others = np.flatnonzero(~np.isin(pair.keys, keys))
        whole = np.ones(len(others), np.int64)
        return JoinSpread(
            np.concatenate([keys, pair.keys[others]]),
            np.concatenate([np.array(self.sizes, np.int64), whole]),
            np.concatenate([np.array(self.columns, np.int64), whole]),
            np.concatenate([np.array(self.targets, np.int32), pair.targets[others].astype(np.int32)]),
            pair.ring,
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
        keys, sizes, columns = [], [], []
        targets: list[int] = []
        start = 0
        for key, size, across in zip(self.keys, self.sizes, self.columns, strict=True):
            grid = self.targets[start : start + size]
            start += size
            if size > 1 and max(grid) < channels:
                keys.append(key)
                sizes.append(size)
                columns.append(across)
                targets += grid
        return Spread(tuple(keys), tuple(sizes), tuple(columns), tuple(targets))
