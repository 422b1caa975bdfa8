"""The admission of a controller as it is written down: strategy, capacity, period and limits."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from penstock.checks import one_of
from penstock.control.admission.capacity import Price
from penstock.control.admission.expectations import Expecting, Horizon
from penstock.control.admission.forecast_intervals import ForecastIntervals
from penstock.control.admission.limits import Limits
from penstock.control.admission.packing import Packing
from penstock.control.admission.policy import Admission, Planner
from penstock.control.admission.strategies import STRATEGIES
from penstock.errors import BadAdmission

__all__ = ["STRATEGY_NAMES", "USUAL_PRICE", "AdmissionSetup"]

USUAL_PRICE: Final = Price(batch=1.4e-4, byte=1.9e-9, row=0.0)
"""Seconds of a gate's processor for a batch and a byte, as measured on one machine; where a fit begins."""

OURS: Final = "penstock"
STRATEGY_NAMES: Final = (OURS, *(name.lower() for name in reversed(list(STRATEGIES))))
"""The strategies as people choose them."""


@dataclass(frozen=True)
class AdmissionSetup:
    """A strategy for gates of one `capacity`, decided anew every `period` seconds.

    The capacity is in rows per second. With a `price` it is in seconds of a gate's time per second, such as
    0.7, and a stream's work follows from its batches, bytes and rows; with `fitted` the price only stands
    until it can be fitted to the processor time that gates measure. Rows should not wait longer than `bound`
    seconds.

    >>> setup = AdmissionSetup(1000.0, strategy="drf-m", limits=Limits(excluded=frozenset({"a/1"})))
    >>> AdmissionSetup.from_json(setup.to_json()) == setup
    True
    """

    capacity: float
    strategy: str = OURS
    period: float = 10.0
    bound: float = 5.0
    price: Price | None = None
    fitted: bool = False
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        one_of("strategy", self.strategy, STRATEGY_NAMES, BadAdmission)
        for name in ("capacity", "period", "bound"):
            given = getattr(self, name)
            if not 0 < given < float("inf"):
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
        return Admission(self.planner(), expecting, capacity=self.capacity, limits=self.limits)

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
            "price": None if self.price is None else asdict(self.price),
            "fitted": self.fitted,
            "limits": {**asdict(self.limits), "excluded": sorted(self.limits.excluded)},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "AdmissionSetup":
        """The setup from its plain values."""
        limits = {**value["limits"], "excluded": frozenset(value["limits"]["excluded"])}
        price = None if value["price"] is None else Price(**value["price"])
        return cls(**{**value, "price": price, "limits": Limits(**limits)})
