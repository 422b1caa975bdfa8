"""What scan, redist and readj start from: tracked keys, their homes, the cost so far ([003] §4.2).

Costs are whole numbers of a small unit, so sums of them are exact in any order of the terms. Utilities are
rounded, and the last bit of a power or a logarithm depends on the processor. Utilities that differ by less
than `CLOSE` therefore count as equal, and a rule that does not look at them breaks the tie.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.balance import Penalty
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.ring import Ring
from penstock.routing.router import Channels, Costs
from penstock.routing.threshold import Goal, table_threshold

__all__ = ["CLOSE", "UTILITIES", "Adaptation", "Utility", "adaptation", "utility"]

# Relative. Rounding errors are about 1e-15, and true differences of estimated frequencies far above both.
CLOSE = 1e-9
# The costs of all keys together have this many bits: fine against any error of a count, and far from 2**53.
_BITS = 40


# The five ways to weigh imbalance against migration, lower is better ([003] §4.3). Each takes the balance
# penalty and the migration penalty, as floats or as arrays that broadcast.
Utility = Callable[[Any, Any], Any]

UTILITIES: Mapping[str, Utility] = {
    "A": lambda balance, migration: balance + 0 * migration,
    "APM": lambda balance, migration: balance + migration,
    "APLM": lambda balance, migration: balance + np.log1p(migration),
    "ATM": lambda balance, migration: balance * (1 + migration),
    "ATLM": lambda balance, migration: balance * (1 + np.log1p(migration)),
}


def utility(name: str) -> Utility:
    """The utility of this name.

    >>> utility("APM")(0.5, 0.25)
    0.75
    >>> utility("ATM")(0.5, 1.0)
    1.0
    """
    if name not in UTILITIES:
        raise BadRouting(f"no utility {name!r}; give one of {', '.join(UTILITIES)}")
    return UTILITIES[name]


@dataclass(frozen=True)
class Adaptation:
    """One change from a hash pair to its successor, before any tracked key has its place.

    `homes` are the channels of the tracked keys under the predecessor, and may name channels that go away.
    `loads` has a row for each growth of the penalty; it and `state` are whole numbers. `carried` is the state
    that moves in any case, since its keys fall back to the ring, and `ideal` is one channel's fair
    share of tracked state.
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
        """The successor, by the faster of two ways to place keys where each has a single load."""
        if self.channels == 1:
            return self.pair(np.zeros(len(self.tracked), np.int32))
        place = by_one_load if len(self.loads) == 1 else by_all_loads
        return self.pair(place(self, utility))

    def pair(self, targets: Channels) -> HashPair:
        """The successor with the tracked keys on these channels."""
        return HashPair(self.tracked.hashes, targets.astype(np.int32), self.ring)


Place = Callable[[Adaptation, Utility], Channels]


def adaptation(before: HashPair, known: Frequencies, channels: int, goal: Goal) -> Adaptation:
    """Choose the keys to track on `channels` channels, and look up where they are now."""
    if channels < 1:
        raise BadRouting(f"channels is {channels}; give 1 or more")
    old = before.ring
    ring = Ring(channels, replicas=old.replicas, buckets=old.buckets, seed=old.seed)
    penalty = Penalty.of(goal.resources, max(channels, 2))
    tracked = known.at_least(table_threshold(goal, channels, known.shares))
    if not penalty.growths:
        # Not even a key that has every tuple weighs more than another.
        tracked = tracked.at_least(np.inf)
    dropped = np.setdiff1d(before.keys, tracked.hashes)
    # A key that is not even counted any more is too rare to matter here.
    rarer = known.of(dropped)
    all_state = _whole(goal.resources.state.costs(np.concatenate([tracked.shares, rarer])))
    state, dropped_state = all_state[: len(tracked)], all_state[len(tracked) :]
    falls = before.route(dropped) != ring.route(dropped)
    return Adaptation(
        tracked=tracked,
        homes=before.route(tracked.hashes),
        state=state,
        loads=np.array([_whole(growth.costs(tracked.shares)) for growth in penalty.growths]),
        penalty=penalty,
        carried=float(dropped_state[falls].sum()),
        ideal=float(state.sum() + dropped_state.sum()) / channels,
        ring=ring,
    )


def _whole(costs: Costs) -> Costs:
    """The same costs in a unit so small that rounding them to whole numbers changes nothing that matters."""
    unit = _BITS - int(np.frexp(costs.sum())[1])
    whole: Costs = np.rint(np.ldexp(costs, unit))
    return whole
