"""The skew policy: evens the load of every stage with a key at a constant number of channels ([003] §4.5).

For each stage it smooths the load of each resource, asks whether most over least exceeds the resource's
tolerance by more than chance and lasts, predicts what an epoch would gain from another router, and moves when
the gain over the time that the imbalance has lasted exceeds the price of the move.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.control.observation import Observation, StageChannels
from penstock.control.rescale import Rescale
from penstock.control.ruling import Decided
from penstock.control.skew.grids import wanted_grids
from penstock.control.skew.layout import Keys, Layout
from penstock.control.skew.move_price import MovePrice
from penstock.control.skew.placement import Placement, Scene, place
from penstock.control.skew.split_keys import SplitKeys
from penstock.control.skew.stage_watch import COLD, LONGEST, StageWatch
from penstock.distribution.distribution import Change
from penstock.routing import LLL, HashPair, Spread
from penstock.shown import shown_bytes, shown_seconds

__all__ = ["SkewPolicy", "SkewSettings"]

_SAVING = 0.95
"""Smaller grids are chosen if an epoch would take at most this part of its time with the largest ones."""


@dataclass(frozen=True)
class SkewSettings:
    """What a replay may try: other tolerances than those of the run (`alpha`; None: as observed)."""

    alpha: float | None = None


@dataclass
class SkewPolicy:
    """Moves hot keys and cells, splits hot keys, and puts those of joins on grids.

    `find` gives a router by its name.
    """

    find: Callable[[str], HashPair]
    settings: SkewSettings = field(default_factory=SkewSettings)
    _watches: dict[int, StageWatch] = field(default_factory=dict, init=False)
    _splits: dict[int, SplitKeys] = field(default_factory=dict, init=False)
    _price: MovePrice = field(default_factory=MovePrice, init=False)
    _told: list[StageChannels] = field(default_factory=list, init=False)
    _slots: int = field(default=1, init=False)

    def observe(self, seen: Observation) -> None:
        """Take in an epoch: the loads of stages that worked in it, and what moved."""
        self._slots, self._told = seen.slots, []
        for given in seen.stages:
            if given.moved is not None:
                self._price.observe(given.moved)
            if not given.rescalable or not given.router or len(given.channels) == 1:
                continue
            stage = self._tolerant(given)
            telling = self._watches.setdefault(stage.stage, StageWatch()).observe(stage)
            if stage.splits and telling:
                self._splits.setdefault(stage.stage, SplitKeys()).observe(stage)
            if telling:
                self._told.append(stage)

    def decide(self, now: float) -> Sequence[Decided]:  # noqa: ARG002 -- the shape of every policy
        """What should change, at most one thing for each stage."""
        told, self._told = self._told, []
        found = [self._split(stage) or self._moved(stage) for stage in told]
        return [each for each in found if each is not None]

    def to_json(self) -> dict[str, Any]:
        """What it remembers of each stage, and the prices it has learnt."""
        return {
            "watches": {str(stage): watch.to_json() for stage, watch in self._watches.items()},
            "splits": {str(stage): split.to_json() for stage, split in self._splits.items()},
            "price": self._price.to_json(),
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._watches, self._splits = {}, {}
        for stage, each in value["watches"].items():
            self._watches.setdefault(int(stage), StageWatch()).resume(each)
        for stage, each in value["splits"].items():
            self._splits.setdefault(int(stage), SplitKeys()).resume(each)
        self._price.resume(value["price"])

    def _tolerant(self, stage: StageChannels) -> StageChannels:
        """The stage with the tolerances of the settings."""
        if self.settings.alpha is None:
            return stage
        alpha = (self.settings.alpha,) * 3
        resources = None if stage.resources is None else replace(stage.resources, tolerances=alpha)
        return replace(stage, tolerated=alpha, resources=resources)

    def _split(self, stage: StageChannels) -> Change | None:
        if not stage.splits:
            return None
        split, router = self._splits[stage.stage], self.find(stage.router)
        wanted = split.decide(stage, router)
        if wanted == stage.sub_keys:
            return None
        ratio = split.imbalance(stage, router)
        numbers = {"busiest": ratio, "keys": 0 if wanted is None else len(wanted.keys)}
        if wanted is None:
            reason = f"keys are whole again: so the busiest channel has {ratio:.2f} times the mean"
        else:
            reason = (
                f"split: the busiest channel has {ratio:.2f} times the mean with whole keys; "
                f"{wanted.words(len(stage.channels))}"
            )
        shown = "keys whole" if wanted is None else "sub-keys"
        return Change(stage.stage, "sub-keys", wanted, reason[:_LONGEST_REASON], numbers, shown=shown)

    def _moved(self, stage: StageChannels) -> Rescale | None:
        watch = self._watches[stage.stage]
        uneven, cold = watch.uneven(stage.tolerated), watch.cold >= COLD
        if not (uneven or cold) or watch.rests:
            return None
        scene = self._scene(stage, watch)
        epochs = watch.horizon if uneven else min(watch.cold, LONGEST)
        least = self._price.of(0)
        if not cold and (most := scene.best_gain()) * epochs <= least:
            watch.wait_for(most, least)
            return None
        placement = place(scene, _spreads(stage, scene), epochs)
        if placement is None:
            watch.wait_longer()
            return None
        if placement.gain * epochs <= placement.price:
            watch.wait_for(placement.gain, placement.price)
            return None
        watch.expect(placement.busiest)
        watch.wait_longer()
        return _request(stage, watch, placement, epochs)

    def _scene(self, stage: StageChannels, watch: StageWatch) -> Scene:
        split = () if stage.sub_keys is None else tuple(each.hash for each in stage.sub_keys.keys)
        known = stage.known.frequencies.without(np.array(split, np.int64).view(np.uint64))
        return Scene(
            layout=Layout(self.find(stage.router), stage.spread or Spread()).settled,
            keys=Keys(known, max(stage.domain, len(known) + 1), _left_parts(stage)),
            resources=stage.resources or LLL,
            sigma=stage.sigma,
            load=watch.time.mean,
            seconds=watch.seconds,
            rows=float(sum(each.rows or each.tuples for each in stage.channels)),
            state=np.array([each.state_bytes for each in stage.channels], np.float64),
            slots=self._slots,
            price=self._price,
            splittable=_spreadable(stage),
        )


def _spreadable(stage: StageChannels) -> bool:
    return stage.copied != "neither" and bool(stage.known.sides[0])


def _spreads(stage: StageChannels, scene: Scene) -> list[Spread]:
    """The grids as they are, and the best of those that the keys call for."""
    present = scene.layout.spread
    if not _spreadable(stage):
        return [present]
    first, *others = wanted_grids(stage, scene.layout, scene.keys)
    best = min(others, key=scene.ideal_with, default=first)
    # Fewer copies are worth it only where they save time: larger grids leave smaller pieces to be evened.
    wanted = best if scene.ideal_with(best) < _SAVING * scene.ideal_with(first) else first
    return [present] if wanted.grids == present.grids else [present, wanted]


def _left_parts(stage: StageChannels) -> dict[int, float]:
    """The part of each key's tuples that are of the left side."""
    if not _spreadable(stage):
        return {}
    one, other = stage.known.rates
    return {
        key: left * one / max(left * one + right * other, 1e-300)
        for key, left, right in zip(stage.known.hashes, *stage.known.sides, strict=True)
    }


_LONGEST_REASON = 1000


def _request(stage: StageChannels, watch: StageWatch, placement: Placement, epochs: int) -> Rescale:
    uneven = watch.uneven(stage.tolerated)
    what, ratio = uneven or ("time", watch.time.most_over_least)
    lasted = watch.lasted if uneven else watch.cold
    cause = f"{what} of the busiest channel was {ratio:.2f} times that of the idlest for {lasted} epochs"
    if uneven is None:
        cause = f"a key on a grid has not been hot for {lasted} epochs"
    gain = placement.gain * epochs
    moved = f"{_grids_words(stage, placement.layout)}moving {shown_bytes(placement.bytes)}"
    reason = (
        f"{cause}; {moved} costs {shown_seconds(placement.price)} and saves "
        f"{shown_seconds(placement.gain)} an epoch, {shown_seconds(gain)} over the next {epochs}"
    )
    numbers = {
        "imbalance": ratio,
        "busiest": watch.time.busiest,
        "predicted": placement.busiest,
        "lasted": lasted,
        "horizon": epochs,
        "bytes": placement.bytes,
        "price": placement.price,
        "gain": gain,
    }
    changed = placement.layout.spread.grids != (stage.spread or Spread()).grids
    return Rescale(
        stage.stage,
        len(stage.channels),
        reason=reason,
        router=placement.layout.router,
        spread=placement.layout.spread if changed else None,
        numbers=numbers,
    )


def _grids_words(stage: StageChannels, layout: Layout) -> str:
    """Which keys get or lose a grid, in a few words."""
    then, now = (stage.spread or Spread()).grids, layout.spread.grids
    more, less = len(now.keys() - then.keys()), len(then.keys() - now.keys())
    words = [f"{more} more keys on grids" if more else "", f"{less} keys whole again" if less else ""]
    return "".join(f"{each}; " for each in words if each)
