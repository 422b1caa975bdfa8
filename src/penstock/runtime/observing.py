"""The observation of an epoch, from its manifest and the receipts of its channels."""

from collections.abc import Sequence

import numpy as np

from penstock.compile import is_single
from penstock.routing import Frequencies, Resources
from penstock.runtime.observation import ChannelLoad, StageChannels, TrackedKey, most_over_least
from penstock.runtime.receipts import Receipt, channel_work
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.rescaling import Rescaling
from penstock.runtime.spread import Spread
from penstock.runtime.stage import StageRunner

__all__ = ["stage_channels"]

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
