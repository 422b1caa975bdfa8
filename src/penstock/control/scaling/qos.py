"""Units from forecast rates, costs and headroom: Eq. 1a and 1b of [000] §3.2, with the backlog and the bound.

n_p = ceil((rate + backlog / T) · cost / (1 - H)), where T is the latency bound less the fixed part of an
epoch: the equations of the paper have neither the bound nor the backlog. An operator behind others is sized
for its parents at saturation (Eq. 1b): each of n_p units then gives out selectivity · (1 - H) / cost.
Operators that share a pool are sized one by one and added up.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from penstock.checks import one_of
from penstock.control.bound import DEFAULT_BOUND
from penstock.control.scaling.load import Load
from penstock.control.scaling.scaler import Scaler, ScalingLimits, Wish
from penstock.errors import BadScaling
from penstock.forecast import Forecaster, Holt, Naive

__all__ = ["Qos"]

Expected = Literal["forecast", "mean"]
_METHODS = {"forecast": Holt(), "mean": Naive(window=6)}


class Qos(Scaler):
    """`headroom` is H, `bound` the latency in seconds, `lead` how many ticks are looked ahead.

    `expect` is "forecast" (Holt, as DRF and DRF-M) or "mean" (of the last ticks, as ARD).
    """

    name = "qos"

    def __init__(
        self,
        limits: ScalingLimits | None = None,
        *,
        bound: float = DEFAULT_BOUND,
        headroom: float = 0.1,
        lead: int = 1,
        expect: Expected = "forecast",
    ) -> None:
        super().__init__(limits)
        if not 0 <= headroom < 1 or not 0 < bound < math.inf or lead < 1:
            raise BadScaling(
                f"bound={bound}, headroom={headroom}, lead={lead}; give a bound in seconds above 0, a "
                "headroom from 0 to below 1, and a lead from 1"
            )
        self.bound, self.headroom, self.lead = bound, headroom, lead
        self.expect = one_of("expect", expect, tuple(_METHODS), BadScaling)
        self._rates: Forecaster | None = None
        self._tick = 0
        self._cpu: dict[str, float] = {}

    def learn(self, seen: Load) -> None:
        """Rates from outside go to the forecaster, costs are kept where a tick has none."""
        values = [each.received / seen.seconds for each in seen.operators]
        if self._rates is None or self._rates.streams != len(values):
            self._rates, self._tick = _METHODS[self.expect].start(len(values)), 0
        self._rates.observe(values, self._tick)
        self._tick += 1
        self._cpu |= {each.name: each.cpu for each in seen.operators if math.isfinite(each.cpu)}

    def wishes(self, seen: Load) -> Sequence[Wish]:
        """The number of units of each pool by the equations."""
        assert self._rates is not None
        ahead = self._rates.predict(self.lead).max(axis=1)
        now = np.array([each.received / seen.seconds for each in seen.operators])
        rates = np.where(np.isnan(ahead), now, ahead)
        needed = self.needed(seen, rates.tolist())
        return [
            wish
            for each in seen.pools
            if (wish := self._wish(seen, each.name, sum(needed[place] for place in seen.within(each.name))))
        ]

    def needed(self, seen: Load, rates: Sequence[float]) -> list[float]:
        """The units of each operator before rounding, if tuples come at these rates (Eq. 1a and 1b)."""
        spare, given, found = 1 - self.headroom, list[float](), list[float]()
        for place, each in enumerate(seen.operators):
            cost = self._cpu.get(each.name, 0.0) / seen.pool(each.pool).got
            inflow = float(rates[place])
            if each.parents:
                inflow = sum(given[edge.parent] * edge.selectivity for edge in each.parents)
            inflow += each.pending / self._time(seen)
            units = inflow * cost / spare
            found.append(units)
            whole = math.ceil(round(units, 6))
            # One unit that is enough may be idle; several run close to saturation.
            given.append(whole * spare / cost if whole > 1 else inflow)
        return found

    def _time(self, seen: Load) -> float:
        """How long a backlog may take: the bound less the fixed part of an epoch."""
        return max(self.bound - seen.fixed, self.bound / 4)

    def state(self) -> dict[str, Any]:
        """Forecaster, ticks and costs."""
        data = None if self._rates is None else base64.b64encode(self._rates.to_bytes()).decode()
        return {"rates": data, "tick": self._tick, "cpu": dict(self._cpu)}

    def restore(self, value: Mapping[str, Any]) -> None:
        """Continue from what `state` gave."""
        self._tick, self._cpu = value["tick"], dict(value["cpu"])
        data = value["rates"]
        self._rates = None if data is None else _METHODS[self.expect].resume(base64.b64decode(data))

    def _wish(self, seen: Load, pool: str, needed: float) -> Wish | None:
        units, present = max(math.ceil(round(needed, 6)), 1), seen.pool(pool).present
        if units == present:
            return None
        waiting = sum(seen.operators[place].pending for place in seen.within(pool))
        reason = (
            f"{needed * (1 - self.headroom):.2f} units of work a second are expected, {waiting:,.0f} "
            f"tuples wait and have {self._time(seen):.1f} s, headroom {self.headroom:.0%}"
        )
        return Wish(pool, units, reason, {"needed": needed, "pending": waiting})
