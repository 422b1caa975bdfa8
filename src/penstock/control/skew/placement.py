"""Plans where the keys of a stage go on as many channels, and what that gains and costs, in seconds.

Nothing is planned without a gain: what a plan promises is the difference of two predictions of the same
model, of an epoch under the present router and under the next.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.control.skew.explained import Explained, explain_load
from penstock.control.skew.layout import Keys, Layout, change, least_busiest
from penstock.control.skew.makespan import makespan
from penstock.control.skew.move_price import MovePrice
from penstock.control.skew.stage_watch import SECONDS_A_ROW
from penstock.routing import Goal, Growth, HashPair, Resources, Spread, balanced

__all__ = ["Placement", "Scene", "place"]

Floats = NDArray[np.float64]

STATE_RENT = 0.01
"""What state above a fair share costs in an epoch, as a part of what it costs to move it: a channel with too
much state is worth a move if that lasts for about a hundred epochs, even if no time is lost by it."""
_LITTLE, _EVEN = 0.03, 1.08
"""A plan that holds every resource to its tolerance may gain less than the best one by the first part, and
leave the busiest channel above the mean by that or up to the second."""


@dataclass(frozen=True)
class Scene:
    """What there is to plan from: the stage as it is, its keys, its measured load and prices.

    `load` is relative, `seconds` the busy time and `rows` the rows of all channels in an epoch, `state` the
    bytes of each channel. `splittable` says that a hot key may be spread over a grid.
    """

    layout: Layout
    keys: Keys
    resources: Resources
    sigma: float
    load: Floats
    seconds: float
    rows: float
    state: Floats
    slots: int
    price: MovePrice
    splittable: bool = False

    @cached_property
    def cause(self) -> Explained:
        """How the load of a key grows with its frequency."""
        shares: Mapping[Growth, Floats] = {
            growth: change(self.layout, self.layout, self.keys, growth).before for growth in Growth
        }
        return explain_load(self.load, shares, self.resources.computation)

    def cost(self, load: Floats, state: Floats) -> float:
        """Seconds of an epoch with these loads: its makespan, and the rent of uneven state."""
        each = load * (self.seconds / len(load))
        uneven = float(state.max() - state.mean())
        return makespan(each, self.slots) + STATE_RENT * self.price.per_byte * uneven

    def best_gain(self) -> float:
        """The seconds of an epoch that the best partitioning there can be would save."""
        ideal = np.ones(len(self.load))
        if not self.splittable:
            ideal = 1 + self.cause.slope * (least_busiest(self.keys, self.cause.growth, len(ideal)) - 1)
        even = np.full(len(self.state), self.state.mean())
        return self.cost(self.load, self.state) - self.cost(ideal, even)

    def ideal_with(self, spread: Spread) -> float:
        """Seconds of an epoch with these grids if all other load lay as evenly beside them as it can."""
        total = {growth: self._total(self.layout.spread, growth) for growth in self.cause.slopes}
        beside = Layout(self.layout.router, spread)
        grids = self.cause.changed(
            {growth: beside.on_grids(self.keys, growth) / every for growth, every in total.items()}
        )
        whole = sum(
            slope * len(self.load) * self.keys.cost(growth, spread) / total[growth]
            for growth, slope in self.cause.slopes.items()
        )
        even = np.full(len(self.state), self.state.mean())
        return self.cost(np.maximum(1.0 - self.cause.slope + _filled(grids, whole), 0.0), even)

    def _total(self, spread: Spread, growth: Growth) -> float:
        on_grids = Layout(self.layout.router, spread).on_grids(self.keys, growth)
        return max(self.keys.cost(growth, spread) + float(on_grids.sum()), 1e-300)

    def placed(self, after: Layout) -> "Placement":
        """What another layout gains and costs."""
        work = {growth: change(self.layout, after, self.keys, growth) for growth in self.cause.slopes}
        kept = change(self.layout, after, self.keys, self.resources.state)
        more = {growth: each.after - each.before for growth, each in work.items()}
        load = np.maximum(self.load + self.cause.changed(more), 0.0)
        total = float(self.state.sum())
        state = np.maximum(self.state + total * (kept.after - kept.before), 0.0)
        moved = float((self.state * kept.leaving).sum()) + total * kept.spread
        gain = self.cost(self.load, self.state) - self.cost(load, state) - self._copying(after)
        return Placement(after, gain, moved, self.price.of(moved), float(load.max()))

    def _copying(self, after: Layout) -> float:
        """What more copies of rows cost where the load itself does not tell it."""
        if Growth.LINEAR in self.cause.slopes or after.spread == self.layout.spread:
            return 0.0
        sent = change(self.layout, after, self.keys, Growth.LINEAR)
        more = float(sent.after.sum() - sent.before.sum()) * self.rows
        return more * SECONDS_A_ROW / min(self.slots, len(self.load))


@dataclass(frozen=True)
class Placement:
    """A layout, the seconds that it gains in an epoch, the bytes that move for it and their price in seconds.

    `busiest` is the predicted load of the busiest channel over the mean.
    """

    layout: Layout
    gain: float
    bytes: float
    price: float
    busiest: float


def place(scene: Scene, spreads: Sequence[Spread], epochs: int) -> Placement | None:
    """The layout that gains the most over so many epochs after its price; None if none gains anything.

    `spreads` are the grids that may be in force with it.
    """
    layouts = [
        Layout(router, spread)
        for spread in spreads
        for router in [scene.layout.router, *_routers(scene, spread)]
    ]
    found = [scene.placed(each) for each in layouts if each != scene.layout]
    gaining = [each for each in found if each.gain > 0]
    if not gaining:
        return None
    best = max(gaining, key=lambda each: each.gain * epochs - each.price)
    most = best.gain * epochs - best.price
    # The first goals hold every resource to its tolerance, so they may be a little worse.
    even = max(_EVEN, (1 + _LITTLE) * best.busiest)
    good = [each for each in gaining if each.gain * epochs - each.price >= most - _LITTLE * abs(most)]
    return next((each for each in good if each.busiest <= even), best)


def _filled(loads: Floats, more: float) -> Floats:
    """These loads with more on the idlest channels, as on the ground of a vessel that is filled.

    >>> _filled(np.array([3.0, 1.0, 0.0]), 2.0).tolist()
    [3.0, 1.5, 1.5]
    """
    rising = np.sort(loads)
    levels = (more + np.cumsum(rising)) / np.arange(1, len(rising) + 1)
    # The last channel that the level covers.
    covered = int(np.flatnonzero(levels >= rising)[-1])
    filled: Floats = np.maximum(loads, levels[covered])
    return filled


def _routers(scene: Scene, spread: Spread) -> Iterator[HashPair]:
    """Routers for whole keys next to these grids: one for each goal."""
    router = scene.layout.router
    known, part = scene.keys.whole(spread)
    beside = Layout(router, spread)
    base = {growth: beside.on_grids(scene.keys, growth) / part**growth for growth in Growth}
    for goal in _goals(scene):
        after = balanced(router, known, router.channels, goal, base)
        if after is not router:
            yield after


def _goals(scene: Scene) -> Iterator[Goal]:
    """As measured and as the operator says, and one that evens time alone, whatever becomes of the others."""
    said, growth, time = scene.resources, scene.cause.growth, scene.resources.tolerances[1]
    # Of two growths the steeper one: rows are evened anyway.
    measured = replace(said, computation=max(scene.cause.slopes))
    for resources in dict.fromkeys([measured, said, Resources(growth, growth, growth, (time, time, time))]):
        yield Goal(resources=resources, sigma=scene.sigma, domain=scene.keys.domain)
