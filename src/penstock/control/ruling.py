"""A ruling: what a policy decided in an epoch, and whether it is carried out or held back, and why."""

from dataclasses import dataclass
from typing import Any

from penstock.control.rescale import Rebatch, Regroup, Rescale, Resplit
from penstock.control.scale import Scale
from penstock.routing import router_name

__all__ = ["Decided", "Ruling"]

Decided = Rescale | Resplit | Regroup | Rebatch | Scale
"""What a policy of a run can ask for."""


@dataclass(frozen=True)
class Ruling:
    """A decision of the policy with this name after an epoch; `held` says why it is not carried out.

    A failure of the policy is a ruling without a decision, and `held` is what went wrong.
    """

    epoch: int
    policy: str
    decision: Decided | None
    held: str = ""

    @property
    def carried_out(self) -> bool:
        """Whether the next plan has to follow the decision."""
        return self.decision is not None and not self.held

    def words(self) -> str:
        """The ruling in one line.

        >>> Ruling(3, "mine", Rescale(0, 8, reason="too slow"), "dry run").words()
        'epoch 3, mine: stage 0, 8 channels: too slow (held back: dry run)'
        """
        head = f"epoch {self.epoch:,}, {self.policy}: "
        if self.decision is None:
            return head + self.held
        return f"{head}{_what(self.decision)}: {self.decision.reason}" + (
            f" (held back: {self.held})" if self.held else ""
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; a router is told by its name, which follows from its content."""
        return {
            "epoch": self.epoch,
            "policy": self.policy,
            "decision": None if self.decision is None else _plain(self.decision),
            "held": self.held,
        }


def _what(decision: Decided) -> str:
    match decision:
        case Rescale(stage=stage, channels=channels):
            return f"stage {stage}, {channels} channel{'s' if channels != 1 else ''}"
        case Resplit(stage=stage, sub_keys=None):
            return f"stage {stage}, keys whole"
        case Resplit(stage=stage):
            return f"stage {stage}, sub-keys"
        case Regroup(stage=stage, grouping=grouping):
            return f"stage {stage}, rows {grouping}"
        case Rebatch(stage=stage, batch=batch):
            return f"stage {stage}, batches of {batch} window{'s' if batch != 1 else ''}"
        case Scale(pool=pool, units=units, before=before):
            return f"{before} to {units} {pool}"


def _plain(decision: Decided) -> dict[str, Any]:
    common = {
        "stage": decision.stage,
        "reason": decision.reason,
        "numbers": dict(decision.numbers),
    }
    if isinstance(decision, Scale):
        told = {"pool": decision.pool, "units": decision.units, "before": decision.before}
        return {"kind": "scale", **common, **told}
    if isinstance(decision, Resplit):
        split = decision.sub_keys
        keys = None if split is None else [vars(each) for each in split.keys]
        return {"kind": "resplit", **common, "sub_keys": keys}
    if isinstance(decision, Regroup):
        return {"kind": "regroup", **common, "grouping": decision.grouping}
    if isinstance(decision, Rebatch):
        return {"kind": "rebatch", **common, "batch": decision.batch}
    return {
        "kind": "rescale",
        **common,
        "channels": decision.channels,
        "partitioning": decision.partitioning,
        "router": None if decision.router is None else router_name(decision.router.to_bytes()),
        "spread": None if decision.spread is None else vars(decision.spread),
    }
