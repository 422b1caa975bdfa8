"""Where keys are: a router for whole keys, the grids of hot keys of a join, and the sub-keys of others."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.distribution.distribution import Files, Forming, Layout
from penstock.routing import HashPair, JoinSpread, Spread

__all__ = ["KeyLayout", "ring_flows"]


@dataclass(frozen=True, kw_only=True)
class KeyLayout(Layout):
    """A router by its name, and the one that it is a step to; `placed_by` says how that was made.

    `grids` are the hot keys on grids, None while nobody has looked for any.
    """

    router: str
    target: str
    placed_by: str = "balanced"
    grids: Spread | None = None

    kind: ClassVar[str] = "by key"

    @property
    def partitioning(self) -> str:
        """How the router was made."""
        return self.placed_by

    @property
    def files(self) -> tuple[str, ...]:
        """Both routers."""
        return (self.router, self.target)

    @property
    def spread(self) -> Spread:
        """The hot keys on grids, none if they are not known."""
        return self.grids or Spread()

    @property
    def places(self) -> tuple[str, int, Spread]:
        """All that says where state is."""
        return self.router, self.channels, self.spread

    def join_router(self, files: Files, *, judged: bool = False) -> JoinSpread:
        """The router of an equi-join; its grids may be `judged`."""
        return self.spread.router(files.find(self.router, HashPair), judged=judged)

    @classmethod
    def read(cls, value: dict[str, Any], forming: Forming | None) -> "KeyLayout":
        """From plain values."""
        grids = value.pop("grids")
        return cls(**value, forming=forming, grids=None if grids is None else Spread.from_json(grids))


def ring_flows(old: NDArray[Any], new: NDArray[Any]) -> dict[int, dict[int, float]]:
    """For each channel the channels that get cells of it, itself included, with the share of its cells."""
    size = max(len(old), len(new))
    old, new = (np.repeat(each, size // len(each)).astype(np.int64) for each in (old, new))
    targets = int(new.max()) + 1
    counts = np.bincount(old * targets + new)
    found: dict[int, dict[int, float]] = {}
    cells = np.bincount(old)
    for pair in np.flatnonzero(counts).tolist():
        source, target = divmod(pair, targets)
        found.setdefault(source, {})[target] = int(counts[pair]) / int(cells[source])
    return found
