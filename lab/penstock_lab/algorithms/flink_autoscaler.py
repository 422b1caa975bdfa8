"""A policy in the manner of Flink's autoscaler: a target utilisation with boundaries, and long stabilisation.

After each change nothing counts for `stabilisation` seconds; then rates are averaged over a window. The goal
is the mean input rate and the backlog over a catch-up time; a vertex changes only if its capacity would be
outside of the boundaries around the target, and shrinks by at most a factor at a time.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.control.scaling import Load, Scaler, ScalingLimits, Wish

__all__ = ["FlinkAutoscaler"]


class FlinkAutoscaler(Scaler):
    """Defaults as in its documentation, but for the window: 60 s, since series here change within minutes."""

    name = "flink"

    def __init__(  # noqa: PLR0913 -- its options
        self,
        limits: ScalingLimits | None = None,
        *,
        utilisation: float = 0.7,
        boundary: float = 0.3,
        window: float = 60.0,
        catch_up: float = 1800.0,
        most_down: float = 0.6,
    ) -> None:
        super().__init__(limits or ScalingLimits(stabilisation=300.0))
        self.utilisation, self.boundary, self.window = utilisation, boundary, window
        self.catch_up, self.most_down = catch_up, most_down
        self._ticks: deque[tuple[float, float]] = deque()

    def unsettled(self) -> None:
        """What was measured before is void."""
        self._ticks.clear()

    def learn(self, seen: Load) -> None:
        """The work that came in, in seconds of the processor."""
        if not self.settled:
            return
        work = sum(each.received * each.cpu for each in seen.operators if math.isfinite(each.cpu))
        self._ticks.append((seen.at, work / seen.seconds))
        while self._ticks and self._ticks[0][0] <= seen.at - self.window:
            self._ticks.popleft()

    def wishes(self, seen: Load) -> Sequence[Wish]:
        """For one pool, which all simulated series have."""
        if not self._ticks or self._ticks[-1][0] - self._ticks[0][0] < self.window - 2 * seen.seconds:
            return []
        (pool,) = seen.pools
        backlog = sum(each.pending * each.cpu for each in seen.operators if math.isfinite(each.cpu))
        target = sum(work for _, work in self._ticks) / len(self._ticks) + backlog / self.catch_up
        low = pool.units * (self.utilisation - self.boundary)
        high = pool.units * min(self.utilisation + self.boundary, 1.0)
        if low <= target <= high:
            return []
        wanted = max(math.ceil(target / self.utilisation), 1)
        wanted = max(wanted, math.ceil(pool.units * (1 - self.most_down)))
        if wanted == pool.units:
            return []
        reason = (
            f"{target:.2f} units of work outside of {low:.2f} to {high:.2f}, target {self.utilisation:.0%}"
        )
        return [Wish(pool.name, wanted, reason, {"target": target})]

    def state(self) -> dict[str, Any]:
        """The ticks of the window."""
        return {"ticks": [list(each) for each in self._ticks]}

    def restore(self, value: Mapping[str, Any]) -> None:
        """Continue from what `state` gave."""
        self._ticks = deque((at, work) for at, work in value["ticks"])
