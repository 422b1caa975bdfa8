"""The plan of an epoch, durable before it runs: channels, routers, where partials are formed, the time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from penstock.compile import Combining
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.graph import Graph
from penstock.runtime.records import EpochPlan, Manifest, Moment, StagePlan, StageRecord
from penstock.runtime.rescaling import Rescale, Rescaling
from penstock.runtime.splits import Splits
from penstock.runtime.stage import StageRunner, beside
from penstock.runtime.sub_key_plan import SubKeyPlan

__all__ = ["Planner"]

# Shipping raw rows wins where the combine leaves more than two partials for three rows.
_HARDLY_SHRINKS = 1.5
# How often the other way is tried, so that the choice follows the data.
_TRIAL_EVERY = 64


@dataclass
class Planner:
    """Plans epoch after epoch; `followed` are the wishes that the last plan was made for."""

    graph: Graph
    checkpoint: Checkpoint
    channels: tuple[int, ...]
    rescaling: Rescaling
    clock: Callable[[], float]
    followed: Mapping[int, Rescale] = field(init=False, default_factory=dict)
    splits: Splits = field(init=False)

    def __post_init__(self) -> None:
        self.splits = Splits.of(self.graph.stages)

    def plan(self, moment: Moment, last: Manifest | None) -> EpochPlan:
        """The plan that an earlier try left, or a new one."""
        self.followed = {}
        known = self.checkpoint.plan(moment)
        if known is not None:
            return known
        wishes = {} if moment.drain else self.rescaling.asked()
        stages: list[StagePlan] = []
        for runner in self.graph.stages:
            record = last.stages[runner.stage.number] if last else None
            host = runner.stage.beside
            if host is not None:
                stage = StagePlan(stages[host].channels)
            else:
                stage = self._stage_plan(runner, last, wishes.get(runner.stage.number), drain=moment.drain)
            split = self._sub_keys(runner.stage.number, moment, last, stage.channels)
            stages.append(replace(stage, combining=_combining(moment, runner, record), sub_keys=split))
        plan = EpochPlan(tuple(stages), int(self.clock() * 1e6))
        self.checkpoint.write_plan(moment, plan)
        self.rescaling.planned(wishes)
        self.followed = wishes
        return plan

    def match(self, last: Manifest | None) -> None:
        """Ask for the given numbers of channels where the checkpoint has others."""
        for runner, channels in zip(self.graph.stages, self.channels, strict=True):
            number = runner.stage.number
            if last is None or runner.stage.beside is not None:
                continue
            plan = last.plan.stages[number]
            now = self.rescaling.routers.find(plan.target).channels if plan.target else plan.channels
            if now != channels:
                reason = "started with another number of channels"
                self.rescaling.ask(Rescale(number, channels, reason=reason))

    def _stage_plan(
        self, runner: StageRunner, last: Manifest | None, wish: Rescale | None, *, drain: bool
    ) -> StagePlan:
        """How many channels and which router, as before or as is asked for."""
        number = runner.stage.number
        if last is None:
            return self.rescaling.first(number, wish.channels if wish else self.channels[number])
        before = last.plan.stages[number]
        if drain:
            return replace(before, spread=None)
        members = [runner, *beside(self.graph.stages, number)]
        held = [last.stages[each.stage.number] for each in members]
        size = sum(segment.living_bytes for each in held for channel in each.channels for segment in channel)
        return self.rescaling.following(number, before, held[0], wish, size)

    def _sub_keys(
        self, number: int, moment: Moment, last: Manifest | None, channels: int
    ) -> SubKeyPlan | None:
        """Which keys are split; none when there is nothing left but to close."""
        if moment.drain or number not in self.splits.stages:
            return None
        current = last.plan.stages[number].sub_keys if last else None
        known = self.rescaling.frequent[number].known()
        return self.splits.stages[number].decide(channels, current, known)


def _combining(moment: Moment, runner: StageRunner, record: StageRecord | None) -> Combining:
    """Where partials are formed, from how much the last combine shrank the rows."""
    best, *others = runner.combinings
    shrinkage = record.shrinkage if record else None
    if not others or shrinkage is None or shrinkage >= _HARDLY_SHRINKS:
        return best
    return best if moment.epoch % _TRIAL_EVERY == 0 else others[0]
