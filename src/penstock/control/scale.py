"""Scale: how many units a pool is to have, with the reason; and why it is held back, if it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.checks import printable, whole_number
from penstock.errors import BadScaling

__all__ = ["CLUSTER", "MOST_UNITS", "Scale"]

CLUSTER = -1
"""The stage of a decision that is about the cluster and no single stage."""

MOST_UNITS = 100_000
"""The most units that a pool can have."""


@dataclass(frozen=True)
class Scale:
    """A request: so many units for a pool that has `before`, ready or starting.

    `held` says why the policy itself does not want it carried out now: a limit, a cooldown, or a
    diagnosis that more units would not help. Such a wish is told once and changes nothing.

    >>> Scale("cores", 8, 4, "12,000 rows wait").words()
    'cores, 4 to 8 units: 12,000 rows wait'
    """

    pool: str
    units: int
    before: int
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict, repr=False)
    held: str = ""
    stage: int = CLUSTER

    def __post_init__(self) -> None:
        for name in ("units", "before"):
            given = whole_number(name, getattr(self, name), 0, MOST_UNITS, BadScaling)
            object.__setattr__(self, name, given)
        printable("reason", self.reason, BadScaling, longest=1000)

    @property
    def setting(self) -> str:
        """What of the cluster it changes."""
        return self.pool

    def subject(self) -> str:
        """What changes."""
        return f"{self.before} to {self.units} {self.pool}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "kind": "scale",
            "stage": self.stage,
            "reason": self.reason,
            "numbers": dict(self.numbers),
            "pool": self.pool,
            "units": self.units,
            "before": self.before,
        }

    def words(self) -> str:
        """The request in one line."""
        held = f" (held back: {self.held})" if self.held else ""
        return f"{self.pool}, {self.before} to {self.units} units: {self.reason}{held}"
