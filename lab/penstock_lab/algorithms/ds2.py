"""A policy in the manner of DS2: the degree at which true processing rates match the target rate, at once.

True rates are tuples over useful time, so the degree follows from input and cost alone; queues, skew and
start-up play no part. It decides once in an interval, from the mean over it, after a warm-up.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.control.scaling import Load, Scaler, ScalingLimits, Wish

__all__ = ["Ds2"]


class Ds2(Scaler):
    """`interval` seconds between decisions; `rate_ratio` is how many times the input has to be met."""

    name = "ds2"

    def __init__(
        self, limits: ScalingLimits | None = None, *, interval: float = 60.0, rate_ratio: float = 1.0
    ) -> None:
        super().__init__(limits)
        self.interval, self.rate_ratio = interval, rate_ratio
        self._ticks: deque[tuple[float, float]] = deque()

    def unsettled(self) -> None:
        """The warm-up after a change does not count."""
        self._ticks.clear()

    def learn(self, seen: Load) -> None:
        """The work that came in, in seconds of the processor."""
        if self.settled:
            work = sum(each.received * each.cpu for each in seen.operators if math.isfinite(each.cpu))
            self._ticks.append((seen.at, work / seen.seconds))

    def wishes(self, seen: Load) -> Sequence[Wish]:
        """For one pool, which all simulated series have."""
        if len(self._ticks) * seen.seconds < self.interval:
            return []
        (pool,) = seen.pools
        target = self.rate_ratio * sum(work for _, work in self._ticks) / len(self._ticks)
        self._ticks.clear()
        wanted = max(math.ceil(round(target, 6)), 1)
        if wanted == pool.present:
            return []
        return [Wish(pool.name, wanted, f"{target:.2f} units match the true rates", {"target": target})]

    def state(self) -> dict[str, Any]:
        """The ticks of the interval."""
        return {"ticks": [list(each) for each in self._ticks]}

    def restore(self, value: Mapping[str, Any]) -> None:
        """Continue from what `state` gave."""
        self._ticks = deque((at, work) for at, work in value["ticks"])
