"""The layout policy: how many channels a stage has, and where its keys lie ([003] §4.5, [002] §III.G).

For each stage it asks whether another number of channels, another router or other grids would make an epoch
better by the objective, by more than chance explains. If so, it plans, and proposes the best layout with what
that is predicted to bring and to cost. Where a total of channels was given, the numbers of all stages are
one proposal.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.control.layout.grids import wanted_grids
from penstock.control.layout.key_loads import Keys, Places, loads
from penstock.control.layout.move_price import MovePrice
from penstock.control.layout.split_keys import SplitKeys
from penstock.control.layout.stage_model import Prediction, StageModel
from penstock.control.layout.stage_watch import StageWatch
from penstock.control.objective import CPU_PRICE, NUMBERS, Objective
from penstock.control.observation import FirstGrids, Observation, StageChannels
from penstock.control.proposal import LONGEST, Effect, Proposal
from penstock.control.rescale import Rescale
from penstock.distribution.distribution import COUNTING, Change
from penstock.routing import LLL, Frequencies, Growth, HashPair, Spread, heavy_keys
from penstock.shown import shown_bytes, shown_seconds

__all__ = ["LayoutPolicy", "LayoutSettings"]

_LEAST_PART = 0.05
"""The part of an epoch's time that another layout has to be worth: noise feigns less."""
_NO_BETTER = f"no layout would be better by {_LEAST_PART:.0%} and more than chance"
_LONGEST_REASON = 1000
_EPOCHS_OF_PAIRS = 3
_AHEAD, _MOST_GROWTH = 10.0, 4.0
"""Seconds in which layouts are to fit what gates expect, and how many times the rows of now at most."""
_LONG = 0.1
"""Seconds of a channel in an epoch of which counting its keys takes less than a hundredth."""
_SHOWN, _MOST_HEAVY = 0.0005, 2
"""Seconds that a reason mentions, and keys above a fair share."""


@dataclass(frozen=True)
class LayoutSettings:
    """What may change, and the price of a second of the processor.

    A stage has `least` to `most` channels; None for as many as it was started with, or as there are slots.
    With a `total`, all stages together keep as many as they have.
    """

    least: int | None = None
    most: int | None = None
    total: bool = False
    cpu_price: float = CPU_PRICE


@dataclass
class LayoutPolicy:
    """Moves hot keys and cells, puts those of joins on grids, splits keys, and adds or takes away channels.

    `find` gives a router by its name.
    """

    find: Callable[[str], HashPair]
    settings: LayoutSettings = field(default_factory=LayoutSettings)
    _watches: dict[int, StageWatch] = field(default_factory=dict, init=False)
    _splits: dict[int, SplitKeys] = field(default_factory=dict, init=False)
    _price: MovePrice = field(default_factory=MovePrice, init=False)
    _told: list[StageChannels] = field(default_factory=list, init=False)
    _first: list[Proposal[Any]] = field(default_factory=list, init=False)
    _objective: Objective = field(default_factory=Objective, init=False)
    _uneven: int = field(default=0, init=False)
    """Epochs in a row in which a total would have been shared out better in another way."""

    def observe(self, seen: Observation) -> None:
        """Take in an epoch: the loads of stages that worked in it, and what moved."""
        self._objective = Objective(seen.slots, seen.cores, self.settings.cpu_price)
        self._told, self._first = [], []
        growth = min(max(seen.growth(_AHEAD), 1.0), _MOST_GROWTH)
        for stage in seen.stages:
            if stage.first_grids is not None:
                self._first.append(Proposal((), reason=_first_words(stage.stage, stage.first_grids)))
            if stage.moved is not None:
                self._price.observe(stage.moved)
            if not stage.rescalable or not stage.router:
                continue
            watch = self._watches.setdefault(stage.stage, StageWatch())
            watch.growth = growth
            if not watch.observe(stage):
                continue
            if watch.due and not watch.counting:
                watch.curve.observe(watch.load.mean, self._measured_shares(stage))
            if stage.splits:
                self._splits.setdefault(stage.stage, SplitKeys()).observe(stage)
            self._told.append(stage)

    def propose(self, now: float) -> Sequence[Proposal[Rescale | Change]]:  # noqa: ARG002 -- no clock needed
        """The best change of each stage, or why there is none."""
        told, self._told = self._told, []
        proposed: list[Proposal[Any] | None] = []
        if self.settings.total and len(told) > 1 and any(self._watches[each.stage].due for each in told):
            proposed = [self._allotted(told)]
        proposed += [self._split(stage) or self._laid_out(stage) for stage in told]
        proposed += [self._counted(stage) for stage in told]
        return [*self._first, *(each for each in proposed if each is not None)]

    def to_json(self) -> dict[str, Any]:
        """What it remembers of each stage, and the prices it has learnt."""
        return {
            "watches": {str(stage): watch.to_json() for stage, watch in self._watches.items()},
            "splits": {str(stage): split.to_json() for stage, split in self._splits.items()},
            "price": self._price.to_json(),
            "uneven": self._uneven,
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._watches, self._splits = {}, {}
        for stage, each in value["watches"].items():
            self._watches.setdefault(int(stage), StageWatch()).resume(each)
        for stage, each in value["splits"].items():
            self._splits.setdefault(int(stage), SplitKeys()).resume(each)
        self._price.resume(value["price"])
        self._uneven = value["uneven"]

    # One stage.

    def _laid_out(self, stage: StageChannels) -> Proposal[Rescale] | None:
        """A proposal for a stage that is looked at in this epoch."""
        watch = self._watches[stage.stage]
        if not watch.due:
            return None
        # Pairs grow with the square of shares: an epoch alone tells too little of them to shape a grid.
        spreadable = _spreadable(stage)
        if math.isinf(watch.load.doubt) or (spreadable and watch.load.epochs < _EPOCHS_OF_PAIRS):
            return _nothing(stage, "it was measured in too few epochs")
        numbers = self._numbers(stage)
        # If even channels would gain nothing, whatever their keys are, nobody needs to look at the keys.
        *_, promising = self._best_case(stage, watch, numbers, self._evenly(watch))
        if not promising:
            watch.count(promising=False)
            return _nothing(stage, f"{_NO_BETTER}; {_busiest(watch)}")
        model = self._model(stage, watch)
        goal, gain, promising = self._best_case(stage, watch, numbers, model.ideal)
        watch.count(promising=promising)
        if why := self._why_no_plan(
            watch, gain, resting=stage.counts is False or (watch.rests and not watch.fresh)
        ):
            return _nothing(stage, f"{why}; {_busiest(watch)}")
        return self._planned(stage, watch, model, sorted({len(stage.channels), goal}))

    def _evenly(self, watch: StageWatch) -> Callable[[int], float]:
        """The cost of an epoch on a number of channels that all have the same load."""
        busy, cpu = watch.busy_a_row * watch.coming, watch.cpu_a_row * watch.coming
        return lambda channels: self._objective.cost(np.full(channels, busy / channels), cpu)

    def _best_case(
        self, stage: StageChannels, watch: StageWatch, numbers: Sequence[int], cost: Callable[[int], float]
    ) -> tuple[int, float, bool]:
        """The best number of channels, what it gains an epoch, and whether that is more than chance."""
        present, busy = len(stage.channels), watch.busy_a_row * watch.coming
        load, cpu = watch.load.mean * (busy / present), watch.cpu_a_row * watch.coming
        costs = {each: cost(each) for each in numbers}
        goal = min(numbers, key=lambda each: (costs[each], each))
        gain = self._objective.cost(load, cpu) - costs[goal]
        # Chance makes channels look uneven, but says nothing of their number.
        doubt = watch.load.doubt * busy / present if goal == present else 0.0
        return goal, gain, gain > max(_LEAST_PART * self._objective.seconds(load, cpu), doubt)

    def _why_no_plan(self, watch: StageWatch, gain: float, *, resting: bool) -> str:
        """Why it is not worth to look for a layout, if the best there can be gains so much an epoch."""
        if not watch.lasted:
            return _NO_BETTER
        least = self._price.of(0)
        if gain * min(watch.lasted, LONGEST) <= least:
            saved, costs = shown_seconds(gain), shown_seconds(least)
            return f"the best layout would save {saved} an epoch, and a move takes {costs}"
        return "the last plan brought nothing, or keys are being counted" if resting else ""

    def _planned(
        self, stage: StageChannels, watch: StageWatch, model: StageModel, numbers: Sequence[int]
    ) -> Proposal[Rescale]:
        """The best layout on one of these numbers of channels."""
        best = model.best(numbers, _spreads(stage, model))
        effect = best.effect(model.now, watch.lasted)
        worth = effect.worth(self.settings.cpu_price)
        if best is model.now or worth <= _LEAST_PART * model.now.seconds:
            watch.wait_longer()
            why = f"no placement of its keys is better; {_busiest(watch)}"
            return _nothing(stage, f"{why}{_above_fair(stage, model.places.router)}")
        if effect.net(self.settings.cpu_price) <= 0:
            watch.wait_for(worth, effect.price)
        else:
            watch.wait_longer()
        return self._request(stage, model, best, effect)

    def _numbers(self, stage: StageChannels) -> list[int]:
        """The numbers of channels that the stage may have."""
        present, own = len(stage.channels), self.settings
        if own.total or own.least is None:
            return [present]
        most = min(own.most or self._objective.slots, max(self._objective.slots, 1))
        return sorted({each for each in (*NUMBERS, most) if own.least <= each <= most} | {present})

    def _model(self, stage: StageChannels, watch: StageWatch) -> StageModel:
        resources = stage.resources or LLL
        return StageModel(
            places=self._places(stage),
            keys=_keys(stage),
            curve=watch.curve.curve(resources.computation),
            resources=resources,
            load=watch.load.mean,
            busy=watch.busy_a_row * watch.coming,
            cpu=watch.cpu_a_row * watch.coming,
            rows=watch.coming,
            state=np.array([each.state_bytes for each in stage.channels], np.float64),
            objective=self._objective,
            price=self._price,
            doubt=watch.load.doubt,
            sigma=stage.sigma,
            splittable=_spreadable(stage),
            partitioning=stage.partitioning,
        )

    def _places(self, stage: StageChannels) -> Places:
        return Places(self.find(stage.router), stage.spread or Spread()).settled

    def _measured_shares(self, stage: StageChannels) -> dict[Growth, np.ndarray[Any, Any]]:
        """The share of keys, tuples and pairs of each channel: as counted, pairs as the known keys say."""
        rows = np.array([each.rows or each.tuples for each in stage.channels], np.float64)
        keys = np.array([each.keys for each in stage.channels], np.float64)
        found, said = {Growth.LINEAR: rows / rows.sum()}, (stage.resources or LLL).computation
        if said is Growth.CONSTANT and keys.any():
            found[Growth.CONSTANT] = keys / keys.sum()
        if said is Growth.QUADRATIC:
            pairs = loads(self._places(stage), _keys(stage), Growth.QUADRATIC)
            found[Growth.QUADRATIC] = pairs / max(float(pairs.sum()), 1e-300)
        return found

    def _request(
        self, stage: StageChannels, model: StageModel, best: Prediction, effect: Effect
    ) -> Proposal[Rescale]:
        spread, now = best.places.spread, stage.spread or Spread()
        epochs = min(effect.lasted, LONGEST)
        worth = effect.worth(self.settings.cpu_price)
        before, after = len(stage.channels), best.channels
        cause = (
            f"an epoch takes {shown_seconds(model.now.seconds)} and {shown_seconds(model.now.cpu)} of the "
        )
        cause += f"processor, with {model.now.busiest:.2f} times the mean in the busiest of {before} channels"
        goal = f"{after} channels: " if after != before else ""
        reason = (
            f"{goal}{cause}; {_grids_words(now, spread)}moving {shown_bytes(effect.bytes)} costs "
            f"{shown_seconds(effect.price)} and {_saved(effect)} an epoch, worth "
            f"{shown_seconds(worth * epochs)} over the next {epochs}{_above_fair(stage, best.places.router)}"
            f"{_growth_words(self._watches[stage.stage].growth)}"
        )
        numbers = {
            "busiest": model.now.busiest,
            "predicted": best.busiest,
            "lasted": effect.lasted,
            "bytes": effect.bytes,
            "price": effect.price,
            "gain": worth * epochs,
        }
        change = Rescale(
            stage.stage,
            after,
            reason=reason[:_LONGEST_REASON],
            router=best.places.router,
            spread=spread if spread.grids != now.grids else None,
            numbers=numbers,
        )
        return Proposal((change,), effect, reason)

    def _counted(self, stage: StageChannels) -> Proposal[Change] | None:
        """Keys are counted while another layout may be better: of control, that costs a short epoch most.

        Of a long one it costs next to nothing, and keys that are known already are a plan an epoch sooner.
        """
        watch = self._watches[stage.stage]
        wanted = not watch.calm or watch.busy_a_row * watch.rows >= _LONG * len(stage.channels)
        if stage.counts is None or stage.counts == wanted:
            return None
        why = f"its epochs are long, or another layout may be better; {_busiest(watch)}"
        reason = f"stage {stage.stage}: keys are counted in every epoch, since {why}"
        if not wanted:
            reason = f"stage {stage.stage}: keys are counted now and then, since {_NO_BETTER}"
        shown = "keys counted" if wanted else "keys counted now and then"
        change = Change(stage.stage, COUNTING, wanted, reason, shown=shown)
        return Proposal((change,), reason=reason, urgent=True, measures=True)

    # Sub-keys move no state and are for map sides that are uneven themselves.

    def _split(self, stage: StageChannels) -> Proposal[Change] | None:
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
        change = Change(stage.stage, "sub-keys", wanted, reason[:_LONGEST_REASON], numbers, shown=shown)
        return Proposal((change,), reason=reason, urgent=True)

    # A total over several stages.

    def _allotted(self, told: Sequence[StageChannels]) -> Proposal[Rescale] | None:
        """Other numbers of channels for several stages at once, if the total would be used better."""
        stages = {each.stage: each for each in told}
        if any(math.isinf(self._watches[number].load.doubt) for number in stages):
            return None
        models = {number: self._model(stage, self._watches[number]) for number, stage in stages.items()}
        present = {number: len(stage.channels) for number, stage in stages.items()}
        total = sum(present.values())
        wanted = _shared_out(total, models)
        changed = [number for number in stages if wanted[number] != present[number]]
        before = sum(each.now.cost for each in models.values())
        after = sum(models[number].ideal(wanted[number]) for number in stages)
        least = _LEAST_PART * sum(each.now.seconds for each in models.values())
        if not changed or before - after <= least:
            self._uneven = 0
            return None
        self._uneven += 1
        plans = {
            number: models[number].best([wanted[number]], _spreads(stages[number], models[number]))
            for number in changed
        }
        effects = [plans[number].effect(models[number].now, self._uneven) for number in changed]
        effect = Effect(
            seconds=sum(each.seconds for each in effects),
            cpu=sum(each.cpu for each in effects),
            bytes=sum(each.bytes for each in effects),
            price=sum(each.price for each in effects),
            lasted=self._uneven,
        )
        if effect.worth(self.settings.cpu_price) <= least:
            return None
        requests = [
            self._request(stages[number], models[number], plans[number], effect).changes[0]
            for number in changed
        ]
        reason = f"{total} channels are better used with " + ", ".join(
            f"{wanted[number]} instead of {present[number]} for stage {number}" for number in changed
        )
        return Proposal(tuple(requests), effect, reason)


def _shared_out(total: int, models: Mapping[int, StageModel]) -> dict[int, int]:
    """The numbers of channels with the least cost: each further one goes where it saves most.

    Stages take turns on the same slots, so what counts is the sum of their times, not the fullest channel.
    """
    found = dict.fromkeys(models, 1)
    costs = {number: (model.ideal(1), model.ideal(2)) for number, model in models.items()}
    for _ in range(total - len(found)):
        best = max(costs, key=lambda number: costs[number][0] - costs[number][1])
        found[best] += 1
        costs[best] = costs[best][1], models[best].ideal(found[best] + 1)
    return found


def _nothing(stage: StageChannels, why: str) -> Proposal[Any]:
    return Proposal((), reason=f"stage {stage.stage} stays: {why}")


def _busiest(watch: StageWatch) -> str:
    """How even the channels are, and which machines are slow."""
    words = f"the busiest channel has {watch.load.busiest:.2f} times the mean"
    slow = watch.slow_nodes()
    return f"{words}, {', '.join(slow)} being slow machines" if slow else words


def _keys(stage: StageChannels) -> Keys:
    split = () if stage.sub_keys is None else tuple(each.hash for each in stage.sub_keys.keys)
    known: Frequencies = stage.known.frequencies.without(np.array(split, np.int64).view(np.uint64))
    return Keys(known, max(stage.domain, len(known) + 1), _left_parts(stage), stage.copied)


def _spreadable(stage: StageChannels) -> bool:
    return stage.copied != "neither" and bool(stage.known.sides[0])


def _spreads(stage: StageChannels, model: StageModel) -> list[Spread]:
    """The grids as they are, none, and those that the keys call for."""
    present = model.places.spread
    if not _spreadable(stage):
        return [present]
    return list(dict.fromkeys([present, Spread(), *wanted_grids(stage, model.places, model.keys)]))


def _left_parts(stage: StageChannels) -> dict[int, float]:
    """The part of each key's tuples that are of the left side."""
    if not _spreadable(stage):
        return {}
    one, other = stage.known.rates
    return {
        key: left * one / max(left * one + right * other, 1e-300)
        for key, left, right in zip(stage.known.hashes, *stage.known.sides, strict=True)
    }


def _above_fair(stage: StageChannels, router: HashPair) -> str:
    """Says which keys have more than a fair share, where nothing more can be done for them."""
    if _spreadable(stage) or stage.splits or len(stage.channels) == 1:
        return ""
    found = heavy_keys(stage.known.frequencies, router, stage.domain)
    return "".join(
        f"; {each.words(stage.name, stage.known.texts.get(each.hash, ''))}" for each in found[:_MOST_HEAVY]
    )


def _saved(effect: Effect) -> str:
    """What an epoch saves or takes more of."""
    told = [("", effect.seconds), (" of the processor", effect.cpu)]
    words = [
        f"{'saves' if value > 0 else 'takes'} {shown_seconds(abs(value))}{'' if value > 0 else ' more'}{of}"
        for of, value in told
        if abs(value) >= _SHOWN
    ]
    return " and ".join(words) or "saves nothing"


def _first_words(stage: int, first: FirstGrids) -> str:
    """The grids that a join begins with: the plan has them already, so nothing is left to change."""
    begins, held = ("begins", "") if first.made else ("would begin", " (held back: dry run)")
    return (
        f"stage {stage} {begins} with grids for {first.keys} of its keys: they have {first.share:.0%} of the "
        f"pairs in a sample of the first tuples{held}"
    )


def _grids_words(then: Spread, now: Spread) -> str:
    """Which keys get or lose a grid, in a few words."""
    more, less = len(now.grids.keys() - then.grids.keys()), len(then.grids.keys() - now.grids.keys())
    words = [f"{more} more keys on grids" if more else "", f"{less} keys whole again" if less else ""]
    return "".join(f"{each}; " for each in words if each)


def _growth_words(growth: float) -> str:
    return "" if growth < 1.1 else f"; gates forecast {growth:.1f} times the rows in {_AHEAD:g} s"
