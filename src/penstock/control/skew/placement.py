"""Plans where the keys of a stage go on as many channels, and what that gains and costs, in seconds.

Nothing is planned without a gain: what a plan promises is the difference of two predictions of the same
model, of an epoch under the present router and under the next.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.control.skew.channel_shares import Base, Change, change, least_busiest
from penstock.control.skew.explained import Explained, explain_load
from penstock.control.skew.makespan import makespan
from penstock.control.skew.move_price import MovePrice
from penstock.routing import Frequencies, Goal, Growth, HashPair, Resources, balanced

__all__ = ["Placement", "Scene", "place"]

Floats = NDArray[np.float64]

STATE_RENT = 0.01
"""What state above a fair share costs in an epoch, as a part of what it costs to move it: a channel with too
much state is worth a move if that lasts for about a hundred epochs, even if no time is lost by it."""
_LITTLE = 0.05


@dataclass(frozen=True)
class Scene:
    """What there is to plan from: the stage as it is, its keys, its measured load and prices.

    `known` are keys that are in one channel each, `base` what the others add to the channels. `load` is
    relative, `seconds` the busy time of all channels in an epoch, `state` the bytes of each channel.
    """

    router: HashPair
    known: Frequencies
    base: Base
    resources: Resources
    sigma: float
    domain: int
    load: Floats
    seconds: float
    state: Floats
    slots: int
    price: MovePrice

    def explained(self) -> Explained:
        """How the load of a key grows with its frequency."""
        shares: Mapping[Growth, Floats] = {
            growth: self._change(self.router, growth).before for growth in Growth
        }
        return explain_load(self.load, shares, self.resources.computation)

    def cost(self, load: Floats, state: Floats) -> float:
        """Seconds of an epoch with these loads: its makespan, and the rent of uneven state."""
        each = load * (self.seconds / len(load))
        uneven = float(state.max() - state.mean()) if len(state) else 0.0
        return makespan(each, self.slots) + STATE_RENT * self.price.per_byte * uneven

    def best_gain(self) -> float:
        """The seconds of an epoch that the best partitioning there can be would save."""
        cause = self.explained()
        ideal = least_busiest(self.known, cause.growth, self.domain, self.router.channels)
        even = np.full(len(self.state), self.state.mean()) if len(self.state) else self.state
        return self.cost(self.load, self.state) - self.cost(1 + cause.slope * (ideal - 1), even)

    def placed(self, after: HashPair, cause: Explained) -> "Placement":
        """What another router gains and costs."""
        work = self._change(after, cause.growth)
        kept = self._change(after, self.resources.state)
        size = len(self.load)
        load = np.maximum(self.load + cause.slope * size * (work.after - work.before), 0.0)
        state = np.maximum(self.state + self.state.sum() * (kept.after - kept.before), 0.0)
        moved = float((self.state * kept.leaving).sum())
        gain = self.cost(self.load, self.state) - self.cost(load, state)
        return Placement(after, gain, moved, self.price.of(moved), float(load.max()))

    def _change(self, after: HashPair, growth: Growth) -> Change:
        return change(self.router, after, self.known, growth, self.domain, self.base)


@dataclass(frozen=True)
class Placement:
    """A router, the seconds that it gains in an epoch, the bytes that move for it and their price in seconds.

    `busiest` is the predicted load of the busiest channel over the mean.
    """

    router: HashPair
    gain: float
    bytes: float
    price: float
    busiest: float


def place(scene: Scene, epochs: int) -> Placement | None:
    """The router that gains the most over so many epochs after its price; None if none gains anything."""
    cause = scene.explained()
    found = [
        scene.placed(after, cause)
        for goal in _goals(scene, cause)
        if (after := balanced(scene.router, scene.known, scene.router.channels, goal, scene.base))
        is not scene.router
    ]
    gaining = [each for each in found if each.gain > 0]
    most = max((each.gain * epochs - each.price for each in gaining), default=0.0)
    # The first goals hold every resource to its tolerance: the last one has to gain more than a little.
    good = (each for each in gaining if each.gain * epochs - each.price >= most - _LITTLE * abs(most))
    return next(good, None)


def _goals(scene: Scene, cause: Explained) -> Iterator[Goal]:
    """As measured and as the operator says, and one that evens time alone, whatever becomes of the others."""
    said, growth, time = scene.resources, cause.growth, scene.resources.tolerances[1]
    measured = replace(said, computation=growth)
    for resources in dict.fromkeys([measured, said, Resources(growth, growth, growth, (time, time, time))]):
        yield Goal(resources=resources, sigma=scene.sigma, domain=scene.domain)
