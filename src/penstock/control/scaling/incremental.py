"""One unit more where the processor is busier than a threshold, one less where it is idler ([001] §7.2).

It needs neither costs nor queues, and as many ticks as there are units to add.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.control.scaling.load import Load
from penstock.control.scaling.scaler import Scaler, ScalingLimits, Wish
from penstock.errors import BadScaling

__all__ = ["Incremental"]


class Incremental(Scaler):
    """`high` and `low` are shares of the processor; the paper does not print its own."""

    name = "incremental"

    def __init__(self, limits: ScalingLimits | None = None, *, high: float = 0.8, low: float = 0.3) -> None:
        super().__init__(limits)
        if not 0 <= low < high <= 1:
            raise BadScaling(f"low={low}, high={high}; give shares with 0 <= low < high <= 1")
        self.high, self.low = high, low

    def learn(self, seen: Load) -> None:
        """Nothing: the last tick says it all."""

    def wishes(self, seen: Load) -> Sequence[Wish]:
        """A step for each pool outside of the thresholds."""
        found = []
        for each in seen.pools:
            use = each.mean_busy
            if use > self.high:
                reason = f"the units are busy for {use:.0%} of the time, above {self.high:.0%}"
                found.append(Wish(each.name, each.present + 1, reason, {"use": use}))
            elif use < self.low and each.present > 1:
                reason = f"the units are busy for {use:.0%} of the time, below {self.low:.0%}"
                found.append(Wish(each.name, each.present - 1, reason, {"use": use}))
        return found

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, value: Mapping[str, Any]) -> None:
        """Nothing."""
