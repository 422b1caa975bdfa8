"""A ruling: what a policy proposed in an epoch, and whether it is carried out or held back, and why."""

from dataclasses import dataclass
from typing import Any

from penstock.control.proposal import Effect

__all__ = ["DRY_RUN", "OVERRULED", "Ruling"]

DRY_RUN = "dry run"
"""Why a change is held back where changes are only told."""

OVERRULED = "a request of the user comes first"
"""Why a change is held back that a user has decided otherwise."""


@dataclass(frozen=True)
class Ruling:
    """A decision of the policy with this name after an epoch; `held` says why it is not carried out.

    Without a decision `held` says why the policy proposes nothing or, if it `failed`, what went wrong. Where
    it is known, `effect` is what the change is predicted to bring.
    """

    epoch: int
    policy: str
    decision: Any
    held: str = ""
    effect: Effect | None = None
    failed: bool = False

    @property
    def carried_out(self) -> bool:
        """Whether the next plan has to follow the decision."""
        return self.decision is not None and not self.held

    def words(self) -> str:
        """The ruling in one line.

        >>> from penstock.control.rescale import Rescale
        >>> Ruling(3, "mine", Rescale(0, 8, reason="too slow"), "dry run").words()
        'epoch 3, mine: stage 0, 8 channels: too slow (held back: dry run)'
        """
        head = f"epoch {self.epoch:,}, {self.policy}: "
        if self.decision is None:
            return head + self.held
        return f"{head}{self.decision.subject()}: {self.decision.reason}" + (
            f" (held back: {self.held})" if self.held else ""
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; a router is told by its name, which follows from its content."""
        return {
            "epoch": self.epoch,
            "policy": self.policy,
            "decision": None if self.decision is None else self.decision.to_json(),
            "held": self.held,
            "effect": None if self.effect is None else self.effect.to_json(),
            "failed": self.failed,
        }
