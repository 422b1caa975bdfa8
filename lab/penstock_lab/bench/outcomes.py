"""Calibration: what changes were predicted to bring, next to what was measured after them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock_lab.reports import Value

__all__ = ["SECTION", "Outcome", "outcome_rows", "outcomes_of"]

SECTION = "predicted against measured"
"""The name of the table."""


@dataclass(frozen=True)
class Outcome:
    """One change: whose it was, and the seconds of an epoch that it was to save and that it did save."""

    policy: str
    stage: int
    epoch: int
    predicted_s: float
    measured_s: float

    @property
    def ratio(self) -> float | None:
        """Measured over predicted; None if nothing was predicted.

        >>> Outcome("layout", 0, 12, predicted_s=0.5, measured_s=0.25).ratio
        0.5
        """
        return self.measured_s / self.predicted_s if self.predicted_s else None


def outcomes_of(run: Any) -> tuple[Outcome, ...]:
    """The outcomes that a run knows; those that are not measured yet are left out."""
    return tuple(
        Outcome(str(each.policy), each.stage, each.epoch, each.predicted, each.measured)
        for each in getattr(run, "outcomes", ())
        if each.measured is not None
    )


def outcome_rows(case: str, run: str, outcomes: Iterable[Outcome]) -> list[dict[str, Value]]:
    """A row of the table for each."""
    return [
        {
            "section": SECTION,
            "case": case,
            "run": run,
            "policy": each.policy,
            "stage": each.stage,
            "epoch": each.epoch,
            "predicted_s_an_epoch": round(each.predicted_s, 5),
            "measured_s_an_epoch": round(each.measured_s, 5),
            "measured_over_predicted": None if each.ratio is None else round(each.ratio, 3),
        }
        for each in outcomes
    ]
