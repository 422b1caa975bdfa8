"""What an epoch of a stage would take under another layout, and which layout is the best.

What a layout promises is the difference of two predictions of the same model, so what the model does not know
cancels out. A layout is worth what the one objective says: the time of the epoch, its processor time at its
price, and the price of the move.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.control.layout.cost_curve import CostCurve
from penstock.control.layout.key_loads import Keys, Places, least_busiest, loads, moved, on_grids
from penstock.control.layout.move_price import MovePrice
from penstock.control.objective import TASK_CPU, Objective
from penstock.control.proposal import Effect
from penstock.routing import Goal, Growth, HashPair, Resources, Spread, evened, next_router

__all__ = ["Prediction", "StageModel"]

Floats = NDArray[np.float64]

COPY_CPU = 1e-6
"""Seconds of the processor that a copy of a row takes on the map side and in the shuffle."""
_STATE = 0.02
"""The weight of state next to load: of two placements that take equally long the one with even state."""
_NEAR = 0.01
"""Of layouts within this part of the best the one that needs least of the processor, then moves least."""


@dataclass(frozen=True)
class Prediction:
    """An epoch of the stage under a layout: seconds, processor time, cost by the objective, and the move.

    `busiest` is the load of the busiest channel over the mean.
    """

    places: Places
    seconds: float
    cpu: float
    cost: float
    bytes: float = 0.0
    price: float = 0.0
    busiest: float = 1.0

    @property
    def channels(self) -> int:
        """The number of channels."""
        return self.places.router.channels

    def effect(self, now: "Prediction", lasted: int) -> Effect:
        """What it brings compared with the layout that there is."""
        return Effect(now.seconds - self.seconds, now.cpu - self.cpu, self.bytes, self.price, lasted)


@dataclass(frozen=True)
class StageModel:
    """The stage as it is: its layout, keys and curve, measured load, and the objective.

    `load` is relative; all channels together are `busy` seconds in an epoch, and `cpu` seconds on the
    processor, for so many `rows`. By chance the load of a channel may differ by `doubt`. `state` are the
    bytes of each channel. `splittable` says that a hot key may be spread over a grid; `partitioning` names a
    constructor that the user has chosen.
    """

    places: Places
    keys: Keys
    curve: CostCurve
    resources: Resources
    load: Floats
    busy: float
    cpu: float
    rows: float
    state: Floats
    objective: Objective
    price: MovePrice
    doubt: float = 0.0
    sigma: float = 0.1
    splittable: bool = False
    partitioning: str = "balanced"

    @cached_property
    def now(self) -> Prediction:
        """The layout that there is, as measured."""
        return self._told(self.places, self.load, self.cpu)

    def ideal(self, channels: int) -> float:
        """The cost of an epoch on so many channels if load were as even as it can be; cheap to tell."""
        even = np.ones(channels)
        if not self.splittable and channels > 1:
            costs = self._key_costs(self.keys.known.shares)
            even = self.curve.flat + (1 - self.curve.flat) * least_busiest(
                costs, self._unknown_cost, channels
            )
        return self._told(self.places, even, self.cpu).cost

    def best(self, channels: Sequence[int], spreads: Sequence[Spread]) -> Prediction:
        """The best layout on one of these numbers of channels with some of these grids, that of now too."""
        found = [self.predicted(each) for each in self._candidates(channels, spreads)]
        if len(self.load) in channels:
            found.append(self.now)
        least = min(each.cost for each in found)
        near = [each for each in found if each.cost <= (1 + _NEAR) * least]
        return min(near, key=lambda each: (round(each.cpu, 3), each.bytes, each.cost))

    def predicted(self, after: Places) -> Prediction:
        """What another layout takes and what the move to it costs."""
        same = after.router.channels == len(self.load)
        shares = {
            growth: loads(after, self.keys, growth) / self._totals[growth] for growth in self.curve.parts
        }
        load = self.curve.load(shares) + self.curve.flat
        if same:
            # What the curve does not explain of the present load stays where it is.
            load = np.maximum(self.load + load - self.curve.load(self._shares) - self.curve.flat, 0.0)
        sent = float(loads(after, self.keys, Growth.LINEAR).sum())
        copied = self.rows * (sent / self._totals[Growth.LINEAR] - 1.0) * COPY_CPU
        # More load in all, by copies, costs the processor as it costs time.
        told = self._told(after, load, self.cpu * float(load.mean()) + copied)
        leaving, gridded = moved(self.places, after, self.keys, self.resources.state)
        total = float(self.state.sum())
        size = float((self.state * leaving).sum()) + total * gridded
        return replace(told, bytes=size, price=self.price.of(size))

    def _told(self, places: Places, load: Floats, cpu: float) -> Prediction:
        channels = len(load)
        busy = load * (self.busy / channels)
        return Prediction(
            places,
            self.objective.seconds(busy, cpu),
            cpu + channels * TASK_CPU,
            self.objective.cost(busy, cpu),
            busiest=float(load.max() / max(float(load.mean()), 1e-300)),
        )

    def _candidates(self, channels: Sequence[int], spreads: Sequence[Spread]) -> Iterator[Places]:
        for number in channels:
            for spread in dict.fromkeys(each.fitting(number) for each in spreads):
                if number == len(self.load) and spread.grids != self.places.spread.grids:
                    yield Places(self.places.router, spread)
                router = self._router(number, spread)
                if router is not None:
                    yield Places(router, spread)

    def _router(self, channels: int, spread: Spread) -> HashPair | None:
        """A router for whole keys next to these grids; None if the user's choice knows no other."""
        before = self.places.router
        known, part = self.keys.whole(spread)
        if self.partitioning != "balanced":
            if channels == before.channels and self.partitioning in {"uniform", "consistent"}:
                return None
            goal = Goal(resources=self.resources, sigma=self.sigma, domain=self.keys.domain)
            return next_router(self.partitioning, before, known, channels, goal)
        base = sum(
            (
                weight * on_grids(spread, channels, self.keys, growth) / self._totals[growth]
                for growth, weight in self._weights.items()
            ),
            start=np.zeros(channels),
        )

        if channels == before.channels:
            # What the curve does not explain stays in its channel, so less is placed there.
            base += (self._unexplained - self._unexplained.min()) / channels

        def cost(shares: Floats) -> Floats:
            return self._key_costs(shares * part)

        rest = max(self.keys.domain - len(known), 1)
        spare = part * max(1.0 - float(known.shares.sum()), 0.0) / rest
        unknown = rest * float(self._key_costs(np.array([spare]))[0])
        return evened(before, known, channels, cost, unknown, base)

    @cached_property
    def _unexplained(self) -> Floats:
        """What the curve does not explain of each channel's load, as far as it is more than chance."""
        apart = self.load - self.curve.load(self._shares)
        apart -= apart.mean()
        found: Floats = np.sign(apart) * np.maximum(np.abs(apart) - self.doubt, 0.0)
        return found

    @cached_property
    def _weights(self) -> dict[Growth, float]:
        """What counts in a placement: load as the curve has it, and a little of state."""
        found = {growth: self.curve.parts.get(growth, 0.0) for growth in Growth}
        found[self.resources.state] += _STATE
        return found

    def _key_costs(self, shares: Floats) -> Floats:
        """What keys of these shares of all tuples cost, as parts of what all keys cost."""
        found = np.zeros(len(shares))
        for growth, weight in self._weights.items():
            found += weight * growth.costs(shares) / self._totals[growth]
        return found

    @cached_property
    def _unknown_cost(self) -> float:
        known = self.keys.known
        rest = max(self.keys.domain - len(known), 1)
        share = max(1.0 - float(known.shares.sum()), 0.0) / rest
        return rest * float(self._key_costs(np.array([share]))[0])

    @cached_property
    def _totals(self) -> dict[Growth, float]:
        """All load of each growth; the same as the sum over channels, and far cheaper."""
        spread, channels = self.places.spread, self.places.router.channels
        return {
            growth: max(
                self.keys.cost(growth, spread) + float(on_grids(spread, channels, self.keys, growth).sum()),
                1e-300,
            )
            for growth in Growth
        }

    @cached_property
    def _shares(self) -> dict[Growth, Floats]:
        return {
            growth: loads(self.places, self.keys, growth) / self._totals[growth]
            for growth in self.curve.parts
        }
