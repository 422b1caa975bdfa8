"""What scan, redist and readj start from: tracked keys, their homes, the cost so far (003, section 4.2)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.balance import Penalty
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.ring import Ring
from penstock.routing.router import Channels, Costs
from penstock.routing.threshold import Goal, table_threshold
from penstock.routing.utilities import Utility

__all__ = ["Adaptation", "adaptation"]


@dataclass(frozen=True)
class Adaptation:
    """One change from a hash pair to its successor, before any tracked key has its place.

    `homes` are the channels of the tracked keys under the predecessor, and may name channels that go.
    `loads` has a row for each growth of the penalty. `carried` is the state that moves whatever is decided,
    since its keys fall back to the ring, and `ideal` is one channel's fair share of tracked state.
    """

    tracked: Frequencies
    homes: Channels
    state: Costs
    loads: NDArray[np.float64]
    penalty: Penalty
    carried: float
    ideal: float
    ring: Ring

    @property
    def channels(self) -> int:
        """How many channels the successor has."""
        return self.ring.channels

    def placed(self, by_one_load: "Place", by_all_loads: "Place", utility: Utility) -> HashPair:
        """The successor by one of two ways to place keys: where keys have one load each there is a faster."""
        if self.channels == 1:
            return self.pair(np.zeros(len(self.tracked), np.int32))
        place = by_one_load if len(self.loads) == 1 else by_all_loads
        return self.pair(place(self, utility))

    def pair(self, targets: Channels) -> HashPair:
        """The successor that places the tracked keys so."""
        return HashPair(self.tracked.hashes, targets.astype(np.int32), self.ring)


Place = Callable[[Adaptation, Utility], Channels]


def adaptation(before: HashPair, known: Frequencies, channels: int, goal: Goal) -> Adaptation:
    """Choose the keys to track on `channels` channels, and look up where they are now."""
    if channels < 1:
        raise BadRouting(f"channels is {channels}; give 1 or more")
    old = before.ring
    ring = Ring(channels, replicas=old.replicas, buckets=old.buckets, seed=old.seed)
    tracked = known.at_least(table_threshold(goal, channels, known.shares))
    state = goal.resources.state.costs(tracked.shares)
    dropped = np.setdiff1d(before.keys, tracked.hashes)
    # A key that is not even counted any more is too rare to matter here.
    dropped_state = goal.resources.state.costs(known.of(dropped))
    falls = before.route(dropped) != ring.route(dropped)
    penalty = Penalty.of(goal.resources, channels) if channels > 1 else Penalty.of(goal.resources, 2)
    return Adaptation(
        tracked=tracked,
        homes=before.route(tracked.hashes),
        state=state,
        loads=np.array([growth.costs(tracked.shares) for growth in penalty.growths]),
        penalty=penalty,
        carried=float(dropped_state[falls].sum()),
        ideal=float(state.sum() + dropped_state.sum()) / channels,
        ring=ring,
    )
