"""What a run reports about its channels: rows, cost, state and keys of each, and how even they are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from penstock.compile import is_single
from penstock.control.observation import (
    Batched,
    ChannelLoad,
    Grouped,
    KnownKeys,
    Moved,
    Observation,
    StageChannels,
    TrackedKey,
    most_over_least,
)
from penstock.control.rescale import Rescale
from penstock.control.ruling import Ruling
from penstock.control.scale import CLUSTER, Scale
from penstock.routing import Frequencies, Resources, Spread
from penstock.runtime.dataflow.channels import Receipt, channel_work
from penstock.runtime.progress import EpochProgress, StageProgress
from penstock.runtime.records import Manifest, StagePlan, StageRecord
from penstock.runtime.rescale.requests import Rescaling
from penstock.runtime.stage import StageRunner
from penstock.shown import instant, shown_bytes, shown_seconds

__all__ = ["Decision", "Policy", "TasksRan", "decided", "epoch_progress", "scaled", "stage_channels"]


Policy = Callable[[Observation], Iterable[Rescale]]
"""Called after each epoch; what it returns takes effect with the next one."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Decision(Moved):
    """A change of router and what moved for it, with the epoch and the reason.

    With the partitioning "sub-keys" it says which hot keys are formed in several channels; nothing moves
    for that. With "executors" it is about the number of executors and no stage.
    """

    epoch: int
    partitioning: str
    reason: str

    def __repr__(self) -> str:
        channels = f"{self.before} to {self.after}" if self.before != self.after else f"{self.after}"
        if self.stage == CLUSTER:
            return f"epoch {self.epoch:>4,}: {channels} {self.partitioning}: {self.reason}"
        moved = "nothing moved"
        if self.rows:
            size, time = shown_bytes(self.bytes), shown_seconds(self.seconds)
            moved = f"about {self.rows:,} rows and {size} moved in {time}"
        left = f", {self.left:.0%} left" if self.left else ""
        head = f"epoch {self.epoch:>4,}: stage {self.stage}, {channels} channels, {self.partitioning}"
        return f"{head}: {self.reason}; {moved}{left}"


def scaled(rulings: Iterable[Ruling]) -> list[Decision]:
    """The changes of the number of executors among rulings that are carried out."""
    return [
        Decision(
            stage=CLUSTER,
            before=each.decision.before,
            after=each.decision.units,
            epoch=each.epoch,
            partitioning=each.decision.pool,
            reason=each.decision.reason,
        )
        for each in rulings
        if isinstance(each.decision, Scale) and each.carried_out
    ]


def decided(manifest: Manifest, before: Manifest, wishes: Mapping[int, Rescale]) -> list[Decision]:
    """The decisions of an epoch: what it rescaled, why, and what moved."""
    moved = {each.stage: each for each in manifest.moved}
    found = []
    for stage in sorted({*moved, *wishes}):
        plan, then = manifest.plan.stages[stage], before.plan.stages[stage]
        move = moved.get(stage, Moved(stage, then.channels, plan.channels))
        found.append(
            Decision(
                **asdict(move),
                epoch=manifest.epoch_id.epoch,
                partitioning=plan.partitioning,
                reason=wishes[stage].reason if stage in wishes else "the next step of what was asked for",
            )
        )
    return found


_MOST_SHOWN = 64  # tracked keys
_MOST_TASKS = 1024


@dataclass(frozen=True)
class TasksRan:
    """The tasks of a stage in an epoch, and how long the stage took, its map side included."""

    receipts: tuple[Receipt, ...]
    seconds: float


def stage_channels(
    members: Sequence[StageRunner],
    manifest: Manifest,
    receipts: Mapping[int, Sequence[Receipt]],
    rescaling: Rescaling,
    tasks: TasksRan | None = None,
) -> StageChannels:
    """The channels of a stage after an epoch; a stage that had nothing to do has no receipts.

    `members` are the stage and those in its channels. Cost and state are those of all of them, since they
    move together; rows and tuples are those of the stage itself.
    """
    runner = members[0]
    number = runner.number
    plan, record = manifest.plan.stages[number], manifest.stages[number]
    loads = _loads(members, manifest, receipts)
    resources: Resources = rescaling.resources[number][plan.form]
    frequent = rescaling.frequent[number]
    exchange = runner.kernel.exchanges[0]
    return StageChannels(
        stage=number,
        name=str(runner.stage.operator),
        partitioning=plan.partitioning,
        target=rescaling.routers.find(plan.target).channels if plan.target else plan.channels,
        channels=loads,
        imbalance=(
            most_over_least([each.state_bytes for each in loads]),
            most_over_least([each.seconds for each in loads]),
            most_over_least([each.tuples for each in loads]),
        ),
        tolerated=resources.tolerances,
        tracked=_tracked(plan, record, rescaling, frequent.known()),
        moving=plan.router != plan.target,
        rescalable=not is_single(runner.stage),
        router=plan.router,
        form=plan.form,
        resources=resources,
        sigma=rescaling.sigma,
        known=frequent.observed() if plan.router else KnownKeys(),
        domain=frequent.domain,
        spread=record.spread,
        sub_keys=plan.sub_keys,
        splits=runner.may_split,
        # A stage in the same channels needs every key whole in one of them.
        copied=exchange.copied if exchange.keys and len(members) == 1 else "neither",
        moved=next((each for each in manifest.moved if each.stage == number), None),
        grouped=_grouped(runner, plan, rescaling, tasks),
        batched=_batched(runner, plan, rescaling, receipts.get(number, ())),
    )


def _batched(
    runner: StageRunner, plan: StagePlan, rescaling: Rescaling, receipts: Sequence[Receipt]
) -> Batched | None:
    """How windows were shared out, if plans may change that; None while nothing was measured."""
    windows, known = runner.kernel.exchanges[0].windows, rescaling.costs[runner.number].known
    if not runner.may_rebatch or windows is None or plan.batches is None or known is None:
        return None
    learnt = [each for one in receipts if (each := one.learnt)]
    computing = sum((each.cpu if known.clock == "cpu" else each.wall).total for each in learnt)
    busy = sum(each.cpu_seconds if known.clock == "cpu" else each.seconds for each in receipts)
    received = sum(each.received for each in receipts)
    return Batched(
        size=plan.batches.size,
        length=windows.shape.size,
        slide=windows.shape.slide,
        rows=sum(each.tuples for each in receipts),
        windows=sum(each.rows.total for each in learnt),
        window_seconds=known.mean,
        row_seconds=max(busy - computing, 0.0) / received if received else 0.0,
        changing=plan.batches.earlier is not None,
    )


def _grouped(
    runner: StageRunner, plan: StagePlan, rescaling: Rescaling, tasks: TasksRan | None
) -> Grouped | None:
    """How rows found their channel where any will do; busy is processor time, unless functions wait."""
    if plan.grouping is None or tasks is None:
        return None
    known = rescaling.costs[runner.number].known
    waits = known is not None and known.clock == "wall"
    busy = [each.seconds if waits else each.cpu_seconds for each in tasks.receipts]
    return Grouped(
        grouping=plan.grouping,
        allowed=runner.kernel.exchanges[0].groupings,
        tasks=_bounded(busy),
        seconds=tasks.seconds,
        mean=0.0 if known is None else known.mean,
        deviation=0.0 if known is None else known.deviation,
    )


def _bounded(busy: Sequence[float]) -> tuple[float, ...]:
    """Busy seconds of at most so many tasks; of more, several count as one."""
    return tuple(sum(busy[place::_MOST_TASKS]) for place in range(min(len(busy), _MOST_TASKS)))


def _loads(
    members: Sequence[StageRunner], manifest: Manifest, receipts: Mapping[int, Sequence[Receipt]]
) -> tuple[ChannelLoad, ...]:
    own = {each.channel: each for each in receipts.get(members[0].number, ())}
    # If hot keys are split, the load of a channel is what it forms, not what it keeps.
    work = [
        dict(zip((each.channel for each in done), channel_work(done), strict=True))
        for done in (receipts.get(member.number, ()) for member in members)
    ]
    found = []
    for channel in range(manifest.plan.stages[members[0].number].channels):
        segments = [
            segment
            for member in members
            for segment in (manifest.stages[member.number].channels or ((),) * (channel + 1))[channel]
        ]
        busy = [each[channel] for each in work if channel in each]
        receipt = own.get(channel)
        tuples = work[0][channel].rows if receipt else 0
        found.append(
            ChannelLoad(
                channel=channel,
                tuples=tuples,
                seconds=sum(each.seconds for each in busy),
                keys=receipt.keys.keys if receipt else 0,
                state_rows=sum(each.state_rows for each in segments),
                state_bytes=int(sum(each.living_bytes for each in segments)),
                # In two hops, the raw rows that are formed here come too.
                rows=0 if receipt is None else receipt.received + (tuples if _formed(own) else 0),
                cpu_seconds=sum(each.cpu_seconds for each in busy),
            )
        )
    return tuple(found)


def _formed(receipts: Mapping[int, Receipt]) -> bool:
    return any(each.formed for each in receipts.values())


def epoch_progress(  # noqa: PLR0913, PLR0917 -- what is known of an epoch
    runners: Sequence[StageRunner],
    manifest: Manifest,
    before: Manifest,
    phases: Mapping[str, float],
    receipts: Mapping[int, Sequence[Receipt]],
    now: float,
) -> EpochProgress:
    """The input and output of an epoch, how long it took, and the state that it left."""
    segments = list(manifest.segments())
    known = [each.value for each in manifest.frontiers.values()]
    frontier = min((each for each in known if each is not None), default=None)
    earlier = before.stages or (StageRecord(),) * len(manifest.stages)
    forms = [each.form for each in manifest.plan.stages]
    return EpochProgress(
        epoch=manifest.epoch_id.epoch,
        rows=manifest.counts.rows,
        late=manifest.counts.late,
        rejected=manifest.counts.rejected,
        results=manifest.counts.results,
        seconds=sum(phases.values()),
        phases=phases,
        frontier=instant(frontier),
        lag_seconds=None if frontier is None else now - frontier / 1e6,
        state_rows=sum(each.state_rows for each in segments),
        state_bytes=sum(each.bytes for each in segments),
        combining="map" if forms[:1] == ["combined"] else "channel",
        stages=tuple(
            StageProgress(
                name=str(runner.stage.operator),
                tuples=record.tuples - then.tuples,
                busy_seconds=record.seconds - then.seconds,
                state_rows=sum(each.state_rows for channel in record.channels for each in channel),
                frontier=instant(record.position.promise),
                channels=channel_work(receipts.get(runner.number, [])),
                split="" if plan.sub_keys is None else plan.sub_keys.words(plan.channels),
                grouping=plan.grouping or "",
            )
            for runner, record, then, plan in zip(
                runners, manifest.stages, earlier, manifest.plan.stages, strict=True
            )
        ),
    )


def _tracked(
    plan: StagePlan, record: StageRecord, rescaling: Rescaling, known: Frequencies
) -> tuple[TrackedKey, ...]:
    if not plan.router:
        return ()
    hashes = known.hashes[:_MOST_SHOWN]
    routes = (record.spread or Spread()).router(rescaling.routers.find(plan.router)).arrays.route(hashes)
    return tuple(
        TrackedKey(key, share, channel if channel >= 0 else None)
        for key, share, channel in zip(
            hashes.view(np.int64).tolist(), known.shares.tolist(), routes.tolist(), strict=False
        )
    )
