"""What a run reports about its channels: rows, cost, state and keys of each, and how even they are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.compile import is_single
from penstock.control.observation import (
    ChannelLoad,
    Moved,
    Observation,
    OperatorWork,
    StageChannels,
    UnitWork,
    most_over_least,
)
from penstock.control.rescale import Rescale
from penstock.control.ruling import Ruling
from penstock.control.scale import CLUSTER, Scale
from penstock.distribution.distribution import Measured, Steering
from penstock.query import Stream
from penstock.runtime.dataflow.channels import Receipt, channel_work
from penstock.runtime.dataflow.receipts import TaskReceipt
from penstock.runtime.progress import EpochProgress, StageProgress
from penstock.runtime.records import Manifest, StageRecord
from penstock.runtime.requests import Asked
from penstock.runtime.stage import StageRunner
from penstock.shown import instant, shown_bytes, shown_seconds

__all__ = [
    "Decision",
    "Policy",
    "TasksRan",
    "decided",
    "epoch_progress",
    "operators_worked",
    "scaled",
    "stage_channels",
    "units_worked",
]


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


def decided(
    manifest: Manifest, before: Manifest, asked: Asked, steering: Mapping[int, Steering]
) -> list[Decision]:
    """The decisions of an epoch: what it laid out in another way, why, and what moved."""
    epoch, moved = manifest.epoch_id.epoch, {each.stage: each for each in manifest.moved}
    rescaled = {stage for stage, setting in asked if setting == Rescale.setting}
    found = []
    for stage in sorted({*moved, *rescaled}):
        layout, then = manifest.plan.stages[stage].own, before.plan.stages[stage].own
        move = moved.get(stage, Moved(stage, then.channels, layout.channels))
        wish = asked.get((stage, Rescale.setting))
        reason = "the next step of what was asked for" if wish is None else wish.reason
        found.append(Decision(**asdict(move), epoch=epoch, partitioning=layout.partitioning, reason=reason))
    for stage, each in () if manifest.epoch_id.drain else steering.items():
        layout, then = manifest.plan.stages[stage].own, before.plan.stages[stage].own
        for told in each.told(then, layout):
            wish = asked.get((stage, told.setting))
            reason = told.why if wish is None else wish.reason
            found.append(
                Decision(
                    stage, then.channels, layout.channels, epoch=epoch, partitioning=told.words, reason=reason
                )
            )
    return found


@dataclass(frozen=True)
class TasksRan:
    """The tasks of a stage in an epoch, and how long the stage took, its map side included."""

    receipts: tuple[Receipt, ...]
    seconds: float


def stage_channels(
    members: Sequence[StageRunner],
    manifest: Manifest,
    receipts: Mapping[int, Sequence[Receipt]],
    steering: Steering,
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
    form = record.form(runner.kernel)
    resources = steering.settings.resources[form]
    measured = Measured(
        plan.own,
        receipts.get(number, ()),
        None if tasks is None else tasks.receipts,
        0.0 if tasks is None else tasks.seconds,
    )
    seen: dict[str, Any] = {
        "stage": number,
        "name": str(runner.stage.operator),
        "target": steering.target(plan.own),
        "moving": steering.moving(plan.own),
        "channels": loads,
        "imbalance": (
            most_over_least([each.state_bytes for each in loads]),
            most_over_least([each.seconds for each in loads]),
            most_over_least([each.tuples for each in loads]),
        ),
        "tolerated": resources.tolerances,
        "rescalable": not is_single(runner.stage),
        "form": form,
        "resources": resources,
        "sigma": steering.settings.sigma,
        "moved": next((each for each in manifest.moved if each.stage == number), None),
    }
    return StageChannels(**seen, **steering.observed(measured))


def _loads(
    members: Sequence[StageRunner], manifest: Manifest, receipts: Mapping[int, Sequence[Receipt]]
) -> tuple[ChannelLoad, ...]:
    own = {each.channel: each for each in receipts.get(members[0].number, ())}
    # If hot keys are split, the load of a channel is what it forms, not what it keeps.
    work = [
        dict(zip((each.channel for each in done), channel_work(done), strict=True))
        for done in (receipts.get(member.number, ()) for member in members)
    ]
    nodes = {each.node for each in own.values()}
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
                node=receipt.node.name if receipt and len(nodes) > 1 else "",
            )
        )
    return tuple(found)


def _formed(receipts: Mapping[int, Receipt]) -> bool:
    return any(each.formed for each in receipts.values())


def operators_worked(
    streams: Sequence[Stream],
    runners: Sequence[StageRunner],
    told: Sequence[TaskReceipt],
    left: Mapping[str, int],
) -> tuple[OperatorWork, ...]:
    """The map side of every stream, then every stage: what each took of the tasks of an epoch.

    A task's time is shared by the stages in its channel as their kernels were busy; what reads and sends on
    belongs to the streams that it read, by their rows.
    """
    every: list[str | int] = [*(each.name for each in streams), *(each.number for each in runners)]
    tuples, seconds = dict.fromkeys(every, 0), dict.fromkeys(every, 0.0)
    passed: dict[tuple[str | int, int], int] = {}
    for task in told:
        for origin, share in _shares(task).items():
            seconds[origin] += share * task.took.work
        for name, seen in task.streams.items():
            tuples[name] += seen.rows
        for stage, receipts in task.channels.items():
            tuples[stage] += sum(each.tuples for each in receipts)
        for way, count in task.passed.items():
            passed[way] = passed.get(way, 0) + count
    place = {origin: number for number, origin in enumerate(every)}
    found = [OperatorWork(each.name, tuples[each.name], seconds[each.name], left=left.get(each.name, 0))
             for each in streams]  # fmt: skip
    for runner in runners:
        number = runner.number
        origins = dict.fromkeys(
            feed.origin.name if isinstance(feed.origin, Stream) else feed.origin
            for port in runner.ports
            for feed in port
        )
        parents = tuple(
            (place[each], tuples[number] if runner.hosted else passed.get((each, number), 0))
            for each in origins
        )
        name = f"stage {number}: {runner.stage.operator}"
        found.append(OperatorWork(name, tuples[number], seconds[number], parents))
    return tuple(found)


def _shares(task: TaskReceipt) -> dict[str | int, float]:
    """The parts of a task's time that streams and stages had."""
    wall = max(task.took.seconds, 1e-9)
    shares: dict[str | int, float] = {
        stage: min(sum(each.seconds for each in receipts) / wall, 1.0)
        for stage, receipts in task.channels.items()
    }
    rest = max(1.0 - sum(shares.values()), 0.0)
    rows: dict[str | int, int] = {name: seen.rows for name, seen in task.streams.items()}
    if not rows:
        rows = dict.fromkeys([*shares, *task.formed] or [origin for origin, _ in task.passed], 1)
    total = sum(rows.values())
    for origin, count in rows.items():
        part = count / total if total else 1 / len(rows)
        shares[origin] = shares.get(origin, 0.0) + rest * part
    return shares


def units_worked(told: Sequence[TaskReceipt]) -> tuple[UnitWork, ...]:
    """The tasks of each executor that had some."""
    found: dict[str, tuple[float, float]] = {}
    for task in told:
        seconds, occupied = found.get(task.took.node.name, (0.0, 0.0))
        found[task.took.node.name] = seconds + task.took.seconds, occupied + task.took.occupied
    return tuple(UnitWork(name, *found[name]) for name in sorted(found))


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
    combined = bool(runners) and earlier[0].form(runners[0].kernel) == "combined"
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
        combining="map" if combined else "channel",
        stages=tuple(
            StageProgress(
                name=str(runner.stage.operator),
                tuples=record.tuples - then.tuples,
                busy_seconds=record.seconds - then.seconds,
                state_rows=sum(each.state_rows for channel in record.channels for each in channel),
                frontier=instant(record.position.promise),
                channels=channel_work(receipts.get(runner.number, [])),
                **({} if plan.layout is None else plan.layout.words()),
            )
            for runner, record, then, plan in zip(
                runners, manifest.stages, earlier, manifest.plan.stages, strict=True
            )
        ),
    )
