"""What is told of an epoch, from its manifest and the receipts of its channels."""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.compile import is_single
from penstock.routing import Frequencies, Resources
from penstock.runtime.observation import ChannelLoad, StageChannels, TrackedKey, most_over_least
from penstock.runtime.progress import EpochProgress, StageProgress, instant
from penstock.runtime.receipts import Receipt, channel_work
from penstock.runtime.records import Manifest, StagePlan, StageRecord
from penstock.runtime.rescaling import Rescaling
from penstock.runtime.spread import Spread
from penstock.runtime.stage import StageRunner

__all__ = ["epoch_progress", "stage_channels"]

_MOST_SHOWN = 64  # tracked keys


def stage_channels(
    runner: StageRunner,
    plan: StagePlan,
    record: StageRecord,
    receipts: Sequence[Receipt],
    rescaling: Rescaling,
) -> StageChannels:
    """The channels of a stage after an epoch; one that had nothing to do has no receipt."""
    number = runner.stage.number
    done = {each.channel: each for each in receipts}
    # Where hot keys are split, a channel's load is what it forms, not what it keeps.
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
    resources: Resources = rescaling.resources[number]
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
    """What came in and went out in an epoch, how long it took, and the state that it left."""
    segments = list(manifest.segments())
    known = [each.value for each in manifest.frontiers.values()]
    frontier = min((each for each in known if each is not None), default=None)
    earlier = before.stages or (StageRecord(),) * len(manifest.stages)
    combinings = [each.combining for each in manifest.plan.stages]
    return EpochProgress(
        epoch=manifest.moment.epoch,
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
        combining=combinings[0] if combinings else "channel",
        stages=tuple(
            StageProgress(
                name=str(runner.stage.operator),
                tuples=record.tuples - then.tuples,
                busy_seconds=record.seconds - then.seconds,
                state_rows=sum(each.rows for channel in record.channels for each in channel),
                frontier=instant(record.promise),
                channels=channel_work(receipts.get(runner.stage.number, [])),
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
