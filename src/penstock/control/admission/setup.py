"""The admission of a controller as it is written down: strategy, capacity, period and limits."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from penstock.checks import one_of
from penstock.control.admission.expectations import Expecting, Horizon
from penstock.control.admission.forecast_intervals import ForecastIntervals
from penstock.control.admission.limits import Limits
from penstock.control.admission.packing import Packing
from penstock.control.admission.policy import Admission, AdmissionController, Planner
from penstock.control.admission.strategies import STRATEGIES
from penstock.control.controller import MODES, Mode
from penstock.errors import BadAdmission

__all__ = ["STRATEGY_NAMES", "AdmissionSetup"]

OURS: Final = "penstock"
STRATEGY_NAMES: Final = (OURS, *(name.lower() for name in reversed(list(STRATEGIES))))
"""The strategies as people choose them."""


@dataclass(frozen=True)
class AdmissionSetup:
    """A strategy, decided anew every `period` seconds; rows should not wait longer than `bound` seconds.

    What work costs and how much of it each gate can do is learnt. With a `capacity` it is not: each gate then
    takes so many rows a second, however they come, or the multiple of them that its node says.

    >>> setup = AdmissionSetup(strategy="drf-m", limits=Limits(excluded=frozenset({"a/1"})))
    >>> AdmissionSetup.from_json(setup.to_json()) == setup
    True
    """

    capacity: float | None = None
    strategy: str = OURS
    period: float = 10.0
    bound: float = 5.0
    limits: Limits = field(default_factory=Limits)
    mode: Mode = "on"

    def __post_init__(self) -> None:
        one_of("strategy", self.strategy, STRATEGY_NAMES, BadAdmission)
        one_of("control", self.mode, MODES, BadAdmission)
        for name in ("capacity", "period", "bound"):
            given = getattr(self, name)
            if given is not None and not 0 < given < float("inf"):
                raise BadAdmission(f"{name}={given}; give a number above 0")

    def planner(self) -> Planner:
        """The strategy's planner."""
        if self.strategy == OURS:
            # Its bound is for what is going to be: a little below the one that rows may wait for.
            return ForecastIntervals(period=self.period, bound=0.96 * self.bound, lag=0.3 * self.bound)
        return Packing(STRATEGIES[self.strategy.upper()], bound=self.bound)

    def policy(self) -> Admission:
        """A policy that has seen nothing yet."""
        expecting = Expecting(Horizon(seconds=self.period))
        return Admission(self.planner(), expecting, capacity=self.capacity or 1.0, limits=self.limits)

    def policy_and_controller(self) -> tuple[Admission, AdmissionController]:
        """A policy that has seen nothing yet, and who rules on what it proposes."""
        policy = self.policy()
        return policy, policy.controller(self.mode)

    def under(self, strategy: str) -> "AdmissionSetup":
        """The same with another strategy."""
        return replace(self, strategy=strategy)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "capacity": self.capacity,
            "strategy": self.strategy,
            "period": self.period,
            "bound": self.bound,
            "mode": self.mode,
            "limits": {**asdict(self.limits), "excluded": sorted(self.limits.excluded)},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "AdmissionSetup":
        """The setup from its plain values."""
        limits = {**value["limits"], "excluded": frozenset(value["limits"]["excluded"])}
        return cls(**{**value, "limits": Limits(**limits)})
