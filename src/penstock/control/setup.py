"""The control of a run as it is written down: which policies, with what settings, under what limits."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.control.batch_policy import BatchPolicy
from penstock.control.controller import Controller, Mode
from penstock.control.grouping_policy import GroupingPolicy
from penstock.control.layout import LayoutPolicy, LayoutSettings
from penstock.control.limits import Budget, Limits
from penstock.control.objective import CPU_PRICE
from penstock.control.observation import Observation
from penstock.control.policy import Policy
from penstock.control.scaling.pacing import Pacing
from penstock.control.scaling.run_policy import RunScaling
from penstock.errors import BadRecording
from penstock.routing import HashPair

__all__ = ["POLICIES", "Find", "Setup"]

Find = Callable[[str], HashPair]
RunPolicy = Policy[Observation, Any]


POLICIES: Mapping[str, Callable[[Find, float, Mapping[str, Any]], RunPolicy]] = {
    "layout": lambda find, price, given: LayoutPolicy(find, LayoutSettings(**given, cpu_price=price)),
    "grouping": lambda _find, price, given: GroupingPolicy(**given, cpu_price=price),
    "batches": lambda _find, _price, given: BatchPolicy(**given),
    "scaling": lambda _find, _price, given: RunScaling(**given),
    "pacing": lambda _find, _price, given: Pacing(**given),
}
"""The policies that can be made from their name, the price of the processor and plain settings."""


@dataclass(frozen=True)
class Setup:
    """Policies by name, each with its settings as plain values, the limits, the mode, and one price.

    `foreign` are policies of the user, which only the run itself can ask.

    >>> Setup.from_json(Setup({"layout": {"least": 1}}).to_json()) == Setup({"layout": {"least": 1}})
    True
    """

    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"layout": {}})
    limits: Limits = field(default_factory=Limits)
    mode: Mode = "on"
    foreign: tuple[str, ...] = ()
    cpu_price: float = CPU_PRICE

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Setup":
        """The setup from its plain values."""
        limits, foreign = Limits(**value["limits"]), tuple(value["foreign"])
        return cls(value["policies"], limits, value["mode"], foreign, value["cpu_price"])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "policies": {name: dict(given) for name, given in self.policies.items()},
            "limits": asdict(self.limits),
            "mode": self.mode,
            "foreign": list(self.foreign),
            "cpu_price": self.cpu_price,
        }

    def controller(
        self, find: Find, own: Mapping[str, RunPolicy] | None = None
    ) -> Controller[Observation, Any]:
        """The controller; `own` are the user's policies, which are asked first."""
        unknown = [name for name in self.policies if name not in POLICIES]
        if unknown:
            raise BadRecording(f"no policy {unknown[0]!r}; give one of {', '.join(POLICIES)}")
        made = {name: POLICIES[name](find, self.cpu_price, given) for name, given in self.policies.items()}
        return Controller({**(own or {}), **made}, Budget(self.limits), self.mode, cpu_price=self.cpu_price)
