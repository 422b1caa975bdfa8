"""What an epoch split into sub-keys other than the one before it, and why, as decisions."""

from collections.abc import Mapping

from penstock.control.rescale import Resplit
from penstock.runtime.observation import Decision
from penstock.runtime.records import Manifest, StagePlan

__all__ = ["splits_decided"]


def splits_decided(manifest: Manifest, before: Manifest, asked: Mapping[int, Resplit]) -> list[Decision]:
    """The stages where an epoch split other keys than the epoch before, with the reasons of who asked."""
    if manifest.epoch_id.drain:
        return []
    return [
        Decision(
            stage,
            then.channels,
            plan.channels,
            epoch=manifest.epoch_id.epoch,
            partitioning="sub-keys",
            reason=asked[stage].reason if stage in asked else _why(plan),
        )
        for stage, (plan, then) in enumerate(zip(manifest.plan.stages, before.plan.stages, strict=True))
        if plan.sub_keys != then.sub_keys
    ]


def _why(plan: StagePlan) -> str:
    """What a plan of an earlier try says for itself."""
    if plan.sub_keys is None:
        return "keys are whole again: no channel has much more than its share without it"
    return f"split: {plan.sub_keys.words(plan.channels)}"
