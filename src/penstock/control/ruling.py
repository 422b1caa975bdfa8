"""A ruling: what a policy decided in an epoch, and whether it is carried out or held back, and why."""

from dataclasses import dataclass
from typing import Any

from penstock.control.rescale import Rescale
from penstock.control.scale import Scale
from penstock.distribution.distribution import Change

__all__ = ["Decided", "Ruling"]

Decided = Rescale | Change | Scale
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
        return f"{head}{self._what()}: {self.decision.reason}" + (
            f" (held back: {self.held})" if self.held else ""
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; a router is told by its name, which follows from its content."""
        return {
            "epoch": self.epoch,
            "policy": self.policy,
            "decision": None if self.decision is None else self.decision.to_json(),
            "held": self.held,
        }

    def _what(self) -> str:
        """What changes, and where."""
        assert self.decision is not None
        if isinstance(self.decision, Scale):
            return f"{self.decision.before} to {self.decision.units} {self.decision.pool}"
        return f"stage {self.decision.stage}, {self.decision.words()}"
