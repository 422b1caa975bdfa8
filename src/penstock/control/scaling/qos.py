"""Units from forecast rates, costs and headroom: Eq. 1a and 1b of [000] §3.2, with the backlog and the bound.

n_p = ceil((rate + backlog / T) · cost / (1 - H)), where T is the latency bound less the fixed part of an
epoch: the equations of the paper have neither the bound nor the backlog. An operator behind another pool is
sized for its parents at saturation (Eq. 1b): each of n_p units then gives out selectivity · (1 - H) / cost.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from penstock.checks import one_of
from penstock.control.scaling.load import Load
from penstock.control.scaling.scaler import Scaler, ScalingLimits, Wish
from penstock.errors import BadScaling
from penstock.forecast import Forecaster, Holt, Naive

__all__ = ["Qos"]

Expected = Literal["forecast", "mean"]
_METHODS = {"forecast": Holt(), "mean": Naive(window=6)}


class Qos(Scaler):
    """`headroom` is H, `bound` the latency in seconds, `fixed` that of an empty epoch, `lead` ticks ahead.

    `expect` is "forecast" (Holt, as DRF and DRF-M) or "mean" (of the last ticks, as ARD).
    """

    name = "qos"

    def __init__(  # noqa: PLR0913 -- its settings are independent
        self,
        limits: ScalingLimits | None = None,
        *,
        bound: float = 5.0,
        headroom: float = 0.1,
        fixed: float = 0.0,
        lead: int = 1,
        expect: Expected = "forecast",
    ) -> None:
        super().__init__(limits)
        if not 0 <= headroom < 1 or not 0 <= fixed < bound or lead < 1:
            raise BadScaling(
                f"bound={bound}, fixed={fixed}, headroom={headroom}, lead={lead}; give a fixed part "
                f"below the "
                "bound, a headroom from 0 to below 1, and a lead from 1"
            )
        self.bound, self.headroom, self.fixed, self.lead = bound, headroom, fixed, lead
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
        units: dict[str, float] = {}
        inputs: list[float] = []
        spare = 1 - self.headroom
        for place, each in enumerate(seen.operators):
            cost = self._cpu.get(each.name, 0.0)
            inflow = float(rates[place])
            if each.parents:
                inflow = 0.0
                for edge in each.parents:
                    parent = seen.operators[edge.parent]
                    given = inputs[edge.parent]
                    behind = math.ceil(round(units[parent.pool], 6))
                    # One unit that is enough may be idle; several run close to saturation.
                    if parent.pool != each.pool and behind > 1:
                        given = behind * spare / self._cpu[parent.name]
                    inflow += given * edge.selectivity
            inflow += each.pending / (self.bound - self.fixed)
            inputs.append(inflow)
            units[each.pool] = units.get(each.pool, 0.0) + inflow * cost / spare
        return [
            wish for each in seen.pools if (wish := self._wish(seen, each.name, units.get(each.name, 0.0)))
        ]

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
            f"tuples wait "
            f"and have {self.bound - self.fixed:g} s, headroom {self.headroom:.0%}"
        )
        return Wish(pool, units, reason, {"needed": needed, "pending": waiting})
