"""AutoScale+: regression, selectivity of parents, usable capacity, a working interval ([001] Eq. 3-13).

Every iteration of some ticks, unless the system stabilises, operators are walked in topological order. A pool
grows if the ideal degree exceeds its units, and shrinks if it is below beta times them. All is counted in
seconds of the processor, so that on Spark the equations hold for the sum over stages that share cores.

Readings of ours, where the paper contradicts itself: Eq. 7 is min(1, max(use, reserved) + lambda / n · idle),
as printed it exceeds a core. Lambda of Eq. 7 and of Eq. 13 are two parameters. beta must be below
margin · fill, or the interval is empty and every change is followed by another; the preset `paper` keeps
Table 2 as it is printed. A pool that grows gets at least one unit more, and one that shrinks never grows.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np

from penstock.checks import one_of
from penstock.control.scaling.load import Load, PoolLoad
from penstock.control.scaling.scaler import Scaler, ScalingLimits, Wish
from penstock.errors import BadScaling
from penstock.forecast import fit_curves

__all__ = ["Autoscale"]

Combine = Literal["max", "min"]
_MARGIN = 0.8  # beta stays so far below what a change leaves
_LEAST_TICKS = 4  # a curve through fewer says nothing


class Autoscale(Scaler):
    """`ticks` make an iteration; `share` is lambda of Eq. 7, `fill` lambda of Eq. 13, `beta` that of Eq. 11.

    `combine` joins an operator's own estimate with that of its parents. `reserved` is the part of a core that
    a unit is sure of. `reach` and `most` bound how far and how high a curve is extrapolated.
    """

    name = "autoscale"

    def __init__(  # noqa: PLR0913 -- the parameters of the paper
        self,
        limits: ScalingLimits | None = None,
        *,
        preset: Literal["ours", "paper"] = "ours",
        ticks: int = 6,
        share: float = 0.3,
        fill: float | None = None,
        beta: float | None = None,
        combine: Combine = "max",
        reserved: float = 1.0,
    ) -> None:
        super().__init__(limits)
        paper = one_of("preset", preset, ("ours", "paper"), BadScaling) == "paper"
        self.ticks, self.share, self.reserved = ticks, share, reserved
        self.fill = fill if fill is not None else 0.3 if paper else 0.8
        self.beta = beta if beta is not None else 0.8 if paper else 0.6
        self.combine = one_of("combine", combine, ("max", "min"), BadScaling)
        self.reach, self.most = (math.inf, math.inf) if paper else (1.0, 2.0)
        if ticks < _LEAST_TICKS or not 0 < self.fill <= 1 or not 0 < reserved <= 1 or not 0 <= share < 1:
            raise BadScaling(
                f"ticks={ticks}, fill={self.fill}, reserved={reserved}, share={share}; give at least "
                f"{_LEAST_TICKS} ticks, and shares from 0 to 1"
            )
        if not paper and not 0 < self.beta <= _MARGIN * self.fill * self.reserved:
            raise BadScaling(
                f"beta={self.beta}; give one up to {_MARGIN * self.fill * self.reserved:.2f}: above "
                f"it, a pool "
                "that has just changed would change again"
            )
        self._ticks: list[dict[str, Any]] = []

    @classmethod
    def paper(cls, limits: ScalingLimits | None = None) -> Self:
        """Table 2 as it is printed."""
        return cls(limits, preset="paper")

    def unsettled(self) -> None:
        """Monitoring is off while the system stabilises."""
        self._forget()

    def learn(self, seen: Load) -> None:
        """Add a tick to the iteration."""
        if not self.settled:
            return
        if self._ticks and len(self._ticks[0]["received"]) != len(seen.operators):
            self._forget()
        self._ticks.append(
            {
                "received": [each.received for each in seen.operators],
                "cpu": [each.cpu if math.isfinite(each.cpu) else None for each in seen.operators],
                "processed": [each.processed for each in seen.operators],
                "passed": [[edge.selectivity for edge in each.parents] for each in seen.operators],
            }
        )

    def wishes(self, seen: Load) -> Sequence[Wish]:
        """At the end of an iteration, Eq. 3 to 13."""
        if len(self._ticks) < self.ticks:
            return []
        length = self.ticks * seen.seconds
        inputs, cpu = self._inputs(seen), self._cpu(seen)
        self._forget()
        work = {each.name: 0.0 for each in seen.pools}
        for place, each in enumerate(seen.operators):
            work[each.pool] += inputs[place] * cpu[place]
        found = [self._sized(pool, work[pool.name], length) for pool in seen.pools]
        return [each for each in found if each is not None]

    def state(self) -> dict[str, Any]:
        """The ticks of the iteration."""
        return {"ticks": [dict(each) for each in self._ticks]}

    def restore(self, value: Mapping[str, Any]) -> None:
        """Continue from what `state` gave."""
        self._ticks = [dict(each) for each in value["ticks"]]

    def _forget(self) -> None:
        self._ticks = []

    def _inputs(self, seen: Load) -> list[float]:
        """EstimInput of each operator in the next iteration (Eq. 3, 4 and 5)."""
        received = np.array([each["received"] for each in self._ticks], np.float64)
        times = np.repeat(np.arange(len(received), dtype=np.float64)[:, None], received.shape[1], axis=1)
        ahead = np.arange(len(received), 2 * len(received), dtype=np.float64)[:, None]
        own = fit_curves(times, received).at(ahead, self.reach, self.most).sum(axis=0)
        inputs: list[float] = []
        for place, each in enumerate(seen.operators):
            estimate = float(own[place])
            if each.parents:
                passed = np.mean([tick["passed"][place] for tick in self._ticks], axis=0)
                above = sum(
                    inputs[edge.parent] * float(share)
                    for edge, share in zip(each.parents, passed, strict=True)
                )
                estimate = max(estimate, above) if self.combine == "max" else min(estimate, above)
            inputs.append(estimate + each.pending)
        return inputs

    def _cpu(self, seen: Load) -> list[float]:
        """Mean cost of a tuple over the iteration; 0 for an operator that processed none."""
        found = []
        for place in range(len(seen.operators)):
            known = [
                (tick["cpu"][place], tick["processed"][place])
                for tick in self._ticks
                if tick["cpu"][place] is not None
            ]
            total = sum(count for _, count in known)
            found.append(sum(cost * count for cost, count in known) / total if total else 0.0)
        return found

    def _usable(self, pool: PoolLoad) -> float:
        """The least that one of the units can use of its core (Eq. 7 and 8)."""
        found = []
        for place, use in enumerate(pool.use):
            others, threads = pool.shared[place] if pool.shared else (0.0, 1)
            idle = max(1 - use - others, 0.0)
            found.append(min(max(use, self.reserved) + self.share / threads * idle, 1.0))
        return min(found, default=self.reserved)

    def _sized(self, pool: PoolLoad, work: float, length: float) -> Wish | None:
        k = pool.present
        ideal = work / (length * self._usable(pool))
        wanted = max(math.ceil(round(work / (length * self.reserved * self.fill), 6)), 1)
        numbers = {"ideal": ideal, "work": work}
        words = f"{work:,.1f} processor seconds expected in {length:,.0f} s, ideal degree {ideal:.2f}"
        if ideal > k:
            units = max(wanted, math.ceil(round(ideal, 6)), k + 1)
            return Wish(pool.name, units, f"{words} above {k}", numbers)
        if ideal < self.beta * k and wanted < k:
            return Wish(pool.name, wanted, f"{words} below {self.beta * k:.2f}", numbers)
        return None
