"""What every router is: a pure function from key hashes to channels that any engine can evaluate."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Channels", "Costs", "Hashes", "Moves", "Router", "moves", "relative_migration"]

Hashes = NDArray[np.uint64]
Channels = NDArray[np.int32]
Costs = NDArray[np.float64]


class Router(Protocol):
    """Routes each key hash to one of `channels` channels, always the same one."""

    @property
    def channels(self) -> int:
        """How many channels there are; a route is at least 0 and less than this."""
        ...

    def route(self, hashes: Hashes) -> Channels:
        """The channel of every hash, in O(1) each."""
        ...


@dataclass(frozen=True)
class Moves:
    """The keys whose channel changes from one router to its successor, and what their state costs to move."""

    hashes: Hashes
    sources: Channels
    targets: Channels
    cost: float


def moves(before: Router, after: Router, hashes: Hashes, costs: Costs) -> Moves:
    """Which of these keys move when `after` takes over from `before`; `costs` is each key's state.

    Costs one route of every hash under each router.
    """
    sources, targets = before.route(hashes), after.route(hashes)
    moved = sources != targets
    return Moves(hashes[moved], sources[moved], targets[moved], float(costs[moved].sum()))


def relative_migration(before: Router, after: Router, hashes: Hashes, state: Costs) -> float:
    """State that moves over the mean state of a channel under `after` ([003] Eq. 9-12).

    `state` is what each key has; 1 is one channel's fair share.
    """
    return moves(before, after, hashes, state).cost * after.channels / float(state.sum())
