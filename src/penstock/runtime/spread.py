"""Which keys of a join are spread over grids of channels, as a manifest holds it."""

from dataclasses import dataclass

import numpy as np

from penstock.routing import JoinSpread, Ring

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

    def router(self, channels: int) -> JoinSpread:
        """The router over so many channels."""
        return JoinSpread(
            np.array(self.keys, np.int64).view(np.uint64),
            np.array(self.sizes, np.int64),
            np.array(self.columns, np.int64),
            np.array(self.targets, np.int32),
            Ring(channels),
        )
