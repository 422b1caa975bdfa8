"""The splits of all stages of a run: which of them may split hot keys, and what was decided about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.runtime.observation import Decision
from penstock.runtime.receipts import Receipt
from penstock.runtime.records import Manifest, StagePlan
from penstock.runtime.splitting import Splitting
from penstock.runtime.stage import StageRunner
from penstock.runtime.window_stage import WindowStage

__all__ = ["Splits", "splits_decided"]


@dataclass(frozen=True)
class Splits:
    """By the number of the stage, what is known of those that may split hot keys."""

    stages: Mapping[int, Splitting]

    @classmethod
    def of(cls, runners: Sequence[StageRunner]) -> "Splits":
        """Stages of windows whose partials are formed by user code that allows it."""
        may = (each for each in runners if isinstance(each, WindowStage) and each.splits)
        return cls({each.stage.number: Splitting() for each in may})

    def observe(self, receipts: Mapping[int, Sequence[Receipt]]) -> None:
        """Take in the receipts of an epoch, by the number of the stage."""
        for number, splitting in self.stages.items():
            splitting.observe(receipts.get(number, ()))


def splits_decided(manifest: Manifest, before: Manifest) -> list[Decision]:
    """Where an epoch split other keys than the one before it, and why."""
    if manifest.moment.drain:
        return []
    return [
        Decision(
            stage,
            then.channels,
            plan.channels,
            epoch=manifest.moment.epoch,
            partitioning="sub-keys",
            reason=_why(plan),
        )
        for stage, (plan, then) in enumerate(zip(manifest.plan.stages, before.plan.stages, strict=True))
        if plan.sub_keys != then.sub_keys
    ]


def _why(plan: StagePlan) -> str:
    if plan.sub_keys is None:
        return "keys are whole again: no channel has much more than its share without it"
    return f"split: {plan.sub_keys.words(plan.channels)}"
