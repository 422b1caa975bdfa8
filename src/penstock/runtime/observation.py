"""What a run reports about its channels: rows, cost, state and keys of each, and how even they are."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from penstock.compile import is_single
from penstock.routing import Frequencies, Resources, Spread
from penstock.runtime.progress import EpochProgress, StageProgress, instant, shown_bytes, shown_seconds
from penstock.runtime.records import Manifest, Moved, StagePlan, StageRecord
from penstock.runtime.rescale.requests import Rescale, Rescaling
from penstock.runtime.stage import Receipt, StageRunner, channel_work

__all__ = [
    "ChannelLoad",
    "Decision",
    "Observation",
    "Policy",
    "StageChannels",
    "TrackedKey",
    "epoch_progress",
    "most_over_least",
    "stage_channels",
]


@dataclass(frozen=True, repr=False)
class ChannelLoad:
    """One channel in the last epoch: its tuples, busy seconds and keys, and the state it keeps."""

    channel: int
    tuples: int
    seconds: float
    keys: int
    state_rows: int
    state_bytes: int

    def __repr__(self) -> str:
        # Numbers have a fixed usual width, so that the channels of a stage read as a table.
        return (
            f"channel {self.channel:>3}: {self.tuples:>9,} tuples, {shown_seconds(self.seconds):>8}, "
            f"{self.keys:>7,} keys, state {self.state_rows:>9,} rows, {shown_bytes(self.state_bytes):>8}"
        )


@dataclass(frozen=True, repr=False)
class TrackedKey:
    """A frequent key: its hash, its share of all tuples, and its channel (None if it is on a grid)."""

    hash: int
    share: float
    channel: int | None

    def __repr__(self) -> str:
        place = "spread" if self.channel is None else f"channel {self.channel}"
        return f"key {self.hash & 0xFFFF_FFFF_FFFF_FFFF:016x}: {self.share:.1%} of tuples, {place}"


@dataclass(frozen=True, repr=False)
class StageChannels:
    """The channels of a stage, and most over least load of state, computation and communication.

    `imbalance` is r_k of [003] and `tolerated` the alpha_k that the partitioning aims at. `moving` says that
    a rescale is in progress, and `target` is the number of channels that it leads to. A stage without a key
    to partition its state by is not `rescalable`.
    """

    stage: int
    name: str
    partitioning: str
    target: int
    channels: tuple[ChannelLoad, ...]
    imbalance: tuple[float, float, float]
    tolerated: tuple[float, float, float]
    tracked: tuple[TrackedKey, ...]
    moving: bool = False
    rescalable: bool = True

    def __repr__(self) -> str:
        uneven = ", ".join(
            f"{what} {ratio:.2f}"
            for what, ratio in zip(("state", "time", "tuples"), self.imbalance, strict=True)
        )
        going = f", moving to {self.target}" if self.moving else ""
        head = (
            f"stage {self.stage}, {self.name}: {len(self.channels)} channels, {self.partitioning}{going}; "
            f"most over least: {uneven}"
        )
        return "\n  ".join([head, *map(repr, self.channels)])


@dataclass(frozen=True, repr=False)
class Observation:
    """What a policy sees after an epoch: its number, and the channels of every stage."""

    epoch: int
    stages: tuple[StageChannels, ...]

    def __repr__(self) -> str:
        return "\n".join([f"after epoch {self.epoch:,}:", *map(repr, self.stages)])


Policy = Callable[[Observation], Iterable[Rescale]]
"""Called after each epoch; what it returns takes effect with the next one."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Decision(Moved):
    """A change of router and what moved for it, with the epoch and the reason.

    With the partitioning "sub-keys" it says which hot keys are formed in several channels; nothing moves
    for that.
    """

    epoch: int
    partitioning: str
    reason: str

    def __repr__(self) -> str:
        channels = f"{self.before} to {self.after}" if self.before != self.after else f"{self.after}"
        moved = "nothing moved"
        if self.rows:
            size, time = shown_bytes(self.bytes), shown_seconds(self.seconds)
            moved = f"{self.keys:,} keys and {size} moved in {time}"
        left = f", {self.left:.0%} left" if self.left else ""
        head = f"epoch {self.epoch:>4,}: stage {self.stage}, {channels} channels, {self.partitioning}"
        return f"{head}: {self.reason}; {moved}{left}"


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


def most_over_least(loads: Sequence[float]) -> float:
    """How uneven loads are: 1 if equal, infinite if a channel has none while others do.

    >>> most_over_least([2, 3]), most_over_least([0, 0]), most_over_least([0, 1])
    (1.5, 1.0, inf)
    """
    most, least = max(loads, default=0), min(loads, default=0)
    if not most:
        return 1.0
    return most / least if least else math.inf


_MOST_SHOWN = 64  # tracked keys


def stage_channels(
    runner: StageRunner,
    plan: StagePlan,
    record: StageRecord,
    receipts: Sequence[Receipt],
    rescaling: Rescaling,
) -> StageChannels:
    """The channels of a stage after an epoch; one that had nothing to do has no receipt."""
    number = runner.number
    done = {each.channel: each for each in receipts}
    # If hot keys are split, the load of a channel is what it forms, not what it keeps.
    work = dict(zip(done, channel_work(receipts), strict=True))
    loads = tuple(
        ChannelLoad(
            channel=channel,
            tuples=work[channel].rows if channel in work else 0,
            seconds=work[channel].seconds if channel in work else 0.0,
            keys=done[channel].keys.keys if channel in done else 0,
            state_rows=sum(each.rows for each in segments),
            state_bytes=int(sum(each.living_bytes for each in segments)),
        )
        for channel, segments in enumerate(record.channels)
    )
    resources: Resources = rescaling.resources[number][plan.form]
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
        tracked=_tracked(plan, record, rescaling, rescaling.frequent[number].known()),
        moving=plan.router != plan.target,
        rescalable=not is_single(runner.stage),
    )


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
        state_rows=sum(each.rows for each in segments),
        state_bytes=sum(each.bytes for each in segments),
        combining="map" if forms[:1] == ["combined"] else "channel",
        stages=tuple(
            StageProgress(
                name=str(runner.stage.operator),
                tuples=record.tuples - then.tuples,
                busy_seconds=record.seconds - then.seconds,
                state_rows=sum(each.rows for channel in record.channels for each in channel),
                frontier=instant(record.position.promise),
                channels=channel_work(receipts.get(runner.number, [])),
                split="" if plan.sub_keys is None else plan.sub_keys.words(plan.channels),
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
