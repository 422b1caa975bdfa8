"""The plan of an epoch, durable before it runs: channels, routers, the forms of exchanges, the time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from penstock.connect import EpochId
from penstock.control.rescale import Rebatch, Regroup, Rescale, Resplit
from penstock.control.sub_keys import SubKeyPlan
from penstock.operators.exchange import Form
from penstock.query import Dealing
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.frontier import SteadyTime
from penstock.runtime.graph import Graph
from penstock.runtime.records import EpochPlan, Manifest, StagePlan, StageRecord, StreamRead
from penstock.runtime.rescale.batching import planned_batches
from penstock.runtime.rescale.learnt_costs import planned_grouping
from penstock.runtime.rescale.requests import Rescaling
from penstock.runtime.stage import StageRunner, hosted_by

__all__ = ["Planner"]

# Rows without a key that one channel forms together: at first, at most, and how many such runs it gets.
_FIRST_RUN, _LONGEST_RUN, _RUNS = 64, 65_536, 16


@dataclass
class Planner:
    """Makes the plan of each epoch.

    `followed`, `split`, `grouped` and `batched` are the requests that the last one follows.
    """

    graph: Graph
    checkpoint: Checkpoint
    channels: tuple[int, ...]
    rescaling: Rescaling
    clock: Callable[[], float]
    steady: SteadyTime
    dealing: Dealing | None = None
    followed: Mapping[int, Rescale] = field(init=False, default_factory=dict)
    split: Mapping[int, Resplit] = field(init=False, default_factory=dict)
    grouped: Mapping[int, Regroup] = field(init=False, default_factory=dict)
    batched: Mapping[int, Rebatch] = field(init=False, default_factory=dict)
    _ended: int = field(init=False, default=0)

    def resume(self, last: Manifest) -> None:
        """Go on after the last epoch of an earlier run."""
        self.steady.resume(last.plan.steady)
        self._ended = last.plan.steady

    def ended(self) -> None:
        """The epoch has ended; what the next one is offered comes later than this."""
        self._ended = self.steady.read()

    def known(self, epoch_id: EpochId) -> EpochPlan | None:
        """The plan that an earlier attempt of an epoch left."""
        return self.checkpoint.plan(epoch_id)

    def plan(
        self, epoch_id: EpochId, last: Manifest | None, reads: Mapping[str, StreamRead], tasks: int = 1
    ) -> EpochPlan:
        """The plan that an earlier attempt left, or a new one that reads so far, in so many tasks."""
        self.followed, self.split, self.grouped, self.batched = {}, {}, {}, {}
        known = self.checkpoint.plan(epoch_id)
        if known is not None:
            self.steady.resume(known.steady)
            return known
        wishes = {} if epoch_id.drain else self.rescaling.asked()
        splits = {} if epoch_id.drain else self.rescaling.asked_splits()
        groupings = {} if epoch_id.drain else self.rescaling.asked_groupings()
        batches = {} if epoch_id.drain else self.rescaling.asked_batches()
        stages: list[StagePlan] = []
        for runner in self.graph.stages:
            record = last.stages[runner.stage.number] if last else None
            host = runner.stage.host
            if host is not None:
                stage = StagePlan(stages[host].channels)
            else:
                stage = self._stage_plan(runner, last, wishes.get(runner.stage.number), drain=epoch_id.drain)
            stage = self._grouping(runner, stage, groupings.get(runner.stage.number))
            stage = _batches(runner, stage, record, batches.get(runner.stage.number))
            split = _sub_keys(epoch_id, last, splits.get(runner.stage.number), runner, stage.channels)
            stage = replace(stage, form=_form(runner, record), sub_keys=split, run=None)
            stages.append(self._dealing(epoch_id, runner, stage, record, last))
        now = int(self.clock() * 1e6)
        plan = EpochPlan(tuple(stages), now, self.steady.read(), self._ended, reads, tasks)
        self.checkpoint.write_plan(epoch_id, plan)
        self.rescaling.planned(wishes, splits, groupings, batches)
        self.followed, self.split, self.grouped, self.batched = wishes, splits, groupings, batches
        return plan

    def _grouping(self, runner: StageRunner, stage: StagePlan, wish: Regroup | None) -> StagePlan:
        """With the way in which rows find a channel where any will do, and what is known of their costs."""
        exchange = runner.kernel.exchanges[0]
        if not exchange.groupings or runner.hosted:
            return stage
        costs = self.rescaling.costs[runner.number].stored(self.rescaling.routers) if exchange.value else ""
        asked = None if wish is None else wish.grouping
        grouping = planned_grouping(exchange.groupings, stage.grouping, asked, costs)
        return replace(stage, grouping=grouping, costs=costs)

    def match(self, last: Manifest | None) -> None:
        """Request the given numbers of channels where the checkpoint has others."""
        for runner, channels in zip(self.graph.stages, self.channels, strict=True):
            number = runner.stage.number
            if last is None or runner.stage.host is not None:
                continue
            plan = last.plan.stages[number]
            now = self.rescaling.routers.find(plan.target).channels if plan.target else plan.channels
            if now != channels:
                reason = "started with another number of channels"
                self.rescaling.ask(Rescale(number, channels, reason=reason))

    def _stage_plan(
        self, runner: StageRunner, last: Manifest | None, wish: Rescale | None, *, drain: bool
    ) -> StagePlan:
        """The number of channels and the router, as before or as requested."""
        number = runner.stage.number
        if last is None:
            return self.rescaling.first(number, wish.channels if wish else self.channels[number])
        before = last.plan.stages[number]
        if drain:
            return replace(before, spread=None)
        members = [runner, *hosted_by(self.graph.stages, number)]
        held = [last.stages[each.stage.number] for each in members]
        size = sum(segment.living_bytes for each in held for channel in each.channels for segment in channel)
        # Costs of keys are those of the form in which rows come.
        before = replace(before, form=_form(runner, held[0]))
        return self.rescaling.following(number, before, held[0], wish, size)

    def _dealing(
        self,
        epoch_id: EpochId,
        runner: StageRunner,
        stage: StagePlan,
        record: StageRecord | None,
        last: Manifest | None,
    ) -> StagePlan:
        """With rows without a key dealt out, if asked for: in runs of a mean pane, or by whole panes in turn.

        Runs are shorter where the epoch is short: it should have many for each channel of each task of its
        source, of which there are about as many as channels.
        """
        if self.dealing is None or epoch_id.drain or stage.channels == 1 or not runner.deals:
            return stage
        tasks = stage.channels
        if self.dealing == "round robin":
            return replace(stage, run=0)
        if record is None or record.in_bucket is None or last is None:
            return replace(stage, run=_FIRST_RUN)
        most = last.counts.rows / (_RUNS * stage.channels * tasks)
        run = max(1, min(int(min(record.in_bucket / tasks, most)), _LONGEST_RUN))
        return replace(stage, run=run)


def _batches(
    runner: StageRunner, stage: StagePlan, record: StageRecord | None, wish: Rebatch | None
) -> StagePlan:
    """With the windows that are computed together, as before or as requested."""
    if runner.hosted:
        return stage
    size = None if wish is None else wish.batch
    return replace(stage, batches=planned_batches(runner.kernel, stage.batches, record, size))


def _sub_keys(
    epoch_id: EpochId, last: Manifest | None, wish: Resplit | None, runner: StageRunner, channels: int
) -> SubKeyPlan | None:
    """The keys that are split, as before or as requested; none if the epoch only closes windows."""
    if epoch_id.drain or last is None or channels == 1 or not runner.may_split:
        return None
    return last.plan.stages[runner.number].sub_keys if wish is None else wish.sub_keys


def _form(runner: StageRunner, record: StageRecord | None) -> Form:
    """The form in which rows should reach the channels: what they did last, or what their kernel can take."""
    if runner.hosted or runner.kernel.exchanges[0].combine is None:
        return "rows"
    return "rows" if record is not None and record.tuples and record.shrinkage is None else "combined"
