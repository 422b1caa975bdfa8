"""AutoScale+: regression, selectivity of parents, usable capacity, a working interval ([001] Eq. 3-13).

At every tick, over a window of the last ticks that slides, operators are walked in topological order. A pool
grows if the ideal degree exceeds its units, and shrinks if it is below beta times them. While the system
stabilises nothing is measured and nothing decided; what was measured before stays. All is counted in seconds
of the processor, so that on Spark the equations hold for the sum over operators that share cores.

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
    """`ticks` make the window; `share` is lambda of Eq. 7, `fill` lambda of Eq. 13, `beta` that of Eq. 11.

    `combine` joins an operator's own estimate with that of its parents. `reserved` is the part of a core that
    a unit is sure of; None takes what units got of theirs while they had work. In the preset "ours" a curve
    is extrapolated by no more than a window, and to no more than twice what it was fitted to.
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
        reserved: float | None = None,
    ) -> None:
        super().__init__(limits)
        paper = one_of("preset", preset, ("ours", "paper"), BadScaling) == "paper"
        self.ticks, self.share, self.reserved = ticks, share, reserved
        self.fill = fill if fill is not None else 0.3 if paper else 0.8
        self.beta = beta if beta is not None else 0.8 if paper else 0.6
        self.combine = one_of("combine", combine, ("max", "min"), BadScaling)
        self.reach, self.most = (math.inf, math.inf) if paper else (1.0, 2.0)
        sure = 1.0 if reserved is None else reserved
        if ticks < _LEAST_TICKS or not 0 < self.fill <= 1 or not 0 < sure <= 1 or not 0 <= share < 1:
            raise BadScaling(
                f"ticks={ticks}, fill={self.fill}, reserved={reserved}, share={share}; give at least "
                f"{_LEAST_TICKS} ticks, and shares from 0 to 1"
            )
        if not paper and not 0 < self.beta <= _MARGIN * self.fill * sure:
            raise BadScaling(
                f"beta={self.beta}; give one up to {_MARGIN * self.fill * sure:.2f}: above it, a pool that "
                "has just changed would change again"
            )
        self._ticks: list[dict[str, Any]] = []

    @classmethod
    def paper(cls, limits: ScalingLimits | None = None) -> Self:
        """Table 2 as it is printed."""
        return cls(limits, preset="paper")

    def learn(self, seen: Load) -> None:
        """Slide the window by a tick; what is measured while the system stabilises does not count."""
        if not self.settled:
            return
        names = [each.name for each in seen.operators]
        if self._ticks and self._ticks[-1]["names"] != names:
            self._ticks = []
        tick = {
            "names": names,
            "at": seen.at,
            "rates": [each.received / seen.seconds for each in seen.operators],
            "cpu": [each.cpu if math.isfinite(each.cpu) else None for each in seen.operators],
            "processed": [each.processed for each in seen.operators],
            "passed": [[edge.selectivity for edge in each.parents] for each in seen.operators],
        }
        self._ticks = [*self._ticks, tick][-self.ticks :]

    def wishes(self, seen: Load) -> Sequence[Wish]:
        """Eq. 3 to 13, once the window is full."""
        if len(self._ticks) < self.ticks or not self.settled:
            return []
        length = self.ticks * seen.seconds
        inputs, cpu = self.inputs(seen), self.costs(seen)
        work = {each.name: 0.0 for each in seen.pools}
        for place, each in enumerate(seen.operators):
            work[each.pool] += inputs[place] * cpu[place]
        found = [self._sized(pool, work[pool.name], length) for pool in seen.pools]
        return [each for each in found if each is not None]

    def state(self) -> dict[str, Any]:
        """The ticks of the window."""
        return {"ticks": [dict(each) for each in self._ticks]}

    def restore(self, value: Mapping[str, Any]) -> None:
        """Continue from what `state` gave."""
        self._ticks = [dict(each) for each in value["ticks"]]

    def inputs(self, seen: Load) -> list[float]:
        """EstimInput of each operator over the next window (Eq. 3, 4 and 5)."""
        rates = np.array([each["rates"] for each in self._ticks], np.float64)
        # Ticks of a run differ in length, and those of a change are missing: time is that of the clock.
        at = (np.array([each["at"] for each in self._ticks]) - seen.at) / seen.seconds
        times = np.repeat(at[:, None], rates.shape[1], axis=1)
        ahead = np.arange(1, self.ticks + 1, dtype=np.float64)[:, None]
        own = fit_curves(times, rates).at(ahead, self.reach, self.most).sum(axis=0) * seen.seconds
        found: list[float] = []
        for place, each in enumerate(seen.operators):
            estimate = float(own[place])
            if each.parents:
                passed = np.mean([tick["passed"][place] for tick in self._ticks], axis=0)
                above = sum(
                    found[edge.parent] * float(share)
                    for edge, share in zip(each.parents, passed, strict=True)
                )
                estimate = max(estimate, above) if self.combine == "max" else min(estimate, above)
            found.append(estimate + each.pending)
        return found

    def costs(self, seen: Load) -> list[float]:
        """Lat of each operator: the mean cost of a tuple over the window; 0 if it processed none."""
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

    def sure(self, pool: PoolLoad) -> float:
        """What a unit is sure of: as given, or the least share that one got of its core."""
        if self.reserved is not None:
            return self.reserved
        got = [use / (use + lost) for use, lost in zip(pool.use, pool.lost, strict=True) if use > 0]
        return min(got, default=1.0)

    def usable(self, pool: PoolLoad) -> float:
        """The least that one of the units can use of its core (Eq. 7 and 8)."""
        sure, found = self.sure(pool), []
        for place, use in enumerate(pool.use):
            others, threads = pool.shared[place] if pool.shared else (0.0, 1)
            idle = max(1 - use - others, 0.0)
            found.append(min(max(use, sure) + self.share / threads * idle, 1.0))
        return min(found, default=sure)

    def _sized(self, pool: PoolLoad, work: float, length: float) -> Wish | None:
        """Eq. 9 to 13: work over what a unit can do of it is the degree."""
        k, usable = pool.present, self.usable(pool)
        ideal = work / (length * usable)
        wanted = max(math.ceil(round(work / (length * self.sure(pool) * self.fill), 6)), 1)
        numbers = {"ideal": ideal, "work": work, "usable": usable}
        words = (
            f"{work:,.1f} processor seconds expected in {length:,.0f} s, {usable:.0%} of a core usable, "
            f"ideal degree {ideal:.2f}"
        )
        if ideal > k:
            units = max(wanted, math.ceil(round(ideal, 6)), k + 1)
            return Wish(pool.name, units, f"{words} above {k}", numbers)
        if ideal < self.beta * k and wanted < k:
            return Wish(pool.name, wanted, f"{words} below {self.beta * k:.2f}", numbers)
        return None
