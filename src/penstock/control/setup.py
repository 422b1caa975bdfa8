"""The control of a run as it is written down: which policies, with what settings, under what limits."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.control.allotment_policy import AllotmentPolicy
from penstock.control.batch_policy import BatchPolicy
from penstock.control.controller import Controller, Mode, RunPolicy
from penstock.control.function_policy import FunctionPolicy
from penstock.control.grouping_policy import GroupingPolicy
from penstock.control.limits import Limits
from penstock.control.rebalance_when import rebalance_when
from penstock.control.scaling.run_policy import RunScaling
from penstock.control.skew import SkewPolicy, SkewSettings
from penstock.errors import BadRecording
from penstock.routing import HashPair

__all__ = ["POLICIES", "Find", "Setup"]

Find = Callable[[str], HashPair]


def _allotment(_: Find, given: Mapping[str, Any]) -> RunPolicy:
    return AllotmentPolicy(given["total"], {int(stage): host for stage, host in given["hosts"].items()})


POLICIES: Mapping[str, Callable[[Find, Mapping[str, Any]], RunPolicy]] = {
    "skew": lambda find, given: SkewPolicy(find, SkewSettings(**given)),
    "allotment": _allotment,
    "grouping": lambda _, given: GroupingPolicy(**given),
    "batches": lambda _, given: BatchPolicy(**given),
    "scaling": lambda _, given: RunScaling(**given),
    "rebalance-when": lambda _, given: FunctionPolicy(rebalance_when(**given)),
}
"""The policies that can be made from their name and plain settings."""


@dataclass(frozen=True)
class Setup:
    """Policies by name, each with its settings as plain values, the limits, and the mode.

    `foreign` are policies of the user, which only the run itself can ask.

    >>> Setup.from_json(Setup({"skew": {"alpha": 1.5}}).to_json()) == Setup({"skew": {"alpha": 1.5}})
    True
    """

    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"skew": {}})
    limits: Limits = field(default_factory=Limits)
    mode: Mode = "on"
    foreign: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Setup":
        """The setup from its plain values."""
        return cls(value["policies"], Limits(**value["limits"]), value["mode"], tuple(value["foreign"]))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "policies": {name: dict(given) for name, given in self.policies.items()},
            "limits": asdict(self.limits),
            "mode": self.mode,
            "foreign": list(self.foreign),
        }

    def controller(self, find: Find, own: Mapping[str, RunPolicy] | None = None) -> Controller:
        """The controller; `own` are the user's policies, which are asked first."""
        unknown = [name for name in self.policies if name not in POLICIES]
        if unknown:
            raise BadRecording(f"no policy {unknown[0]!r}; give one of {', '.join(POLICIES)}")
        made = {name: POLICIES[name](find, given) for name, given in self.policies.items()}
        return Controller({**(own or {}), **made}, self.limits, self.mode)
