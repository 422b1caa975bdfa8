"""Where an epoch had rows find their channels in another way than the one before it, as decisions."""

from collections.abc import Mapping

from penstock.control.rescale import Regroup
from penstock.runtime.observation import Decision
from penstock.runtime.records import Manifest

__all__ = ["groupings_decided"]


def groupings_decided(manifest: Manifest, before: Manifest, asked: Mapping[int, Regroup]) -> list[Decision]:
    """The stages whose rows found their channels in another way, with the reasons of who asked."""
    return [
        Decision(
            stage,
            then.channels,
            plan.channels,
            epoch=manifest.epoch_id.epoch,
            partitioning=f"rows {plan.grouping}",
            reason=asked[stage].reason if stage in asked else "costs are known",
        )
        for stage, (plan, then) in enumerate(zip(manifest.plan.stages, before.plan.stages, strict=True))
        if plan.grouping != then.grouping
    ]
