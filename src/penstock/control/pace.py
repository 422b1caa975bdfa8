"""Pace: how long a run waits after an epoch before the next one takes its rows, with the reason."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.control.scale import CLUSTER
from penstock.shown import shown_seconds

__all__ = ["Pace"]


@dataclass(frozen=True)
class Pace:
    """A wait in seconds from the commit of an epoch on; `interval` is from one start to the next.

    `latency` is what the slowest row is expected to have, infinite if it is not known.

    >>> Pace(1.5, 2.0, 2.4, "little comes").words()
    'wait 1.50 s'
    """

    setting: ClassVar[str] = "pace"
    stage: ClassVar[int] = CLUSTER

    wait: float
    interval: float
    latency: float
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "kind": "pace",
            "reason": self.reason,
            "numbers": dict(self.numbers),
            "wait": self.wait,
            "interval": self.interval,
            "latency": self.latency if math.isfinite(self.latency) else None,
        }

    def subject(self) -> str:
        """What changes."""
        return self.words()

    def words(self) -> str:
        """The wait in words."""
        return f"wait {shown_seconds(self.wait)}"
