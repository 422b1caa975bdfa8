"""A table from input rates to degrees, learnt by trial: the reinforcement learning that [001] compares with.

The state is a bin of the mean rate over the last minute, the action a number of units, the reward
-units - penalty · share of tuples that a tick left behind. While it learns it tries neighbouring degrees;
at run time it is greedy. It sees neither queues nor upstream operators, as in the paper.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.control.scaling import Load, Scaler, ScalingLimits, Wish
from penstock.errors import BadScaling

__all__ = ["Learning"]


class Learning(Scaler):
    """`table` maps pools to bins to degrees to [mean reward, trials]; `explore` is the chance of a trial.

    `width` is that of a bin in tuples a second and `window` the seconds of the mean rate. Trials are drawn
    from `seed`.
    """

    name = "learning"

    def __init__(  # noqa: PLR0913 -- its settings are independent
        self,
        limits: ScalingLimits | None = None,
        *,
        table: Mapping[str, Any] | None = None,
        explore: float = 0.0,
        width: float = 25.0,
        window: float = 60.0,
        penalty: float = 100.0,
        seed: int = 0,
    ) -> None:
        super().__init__(limits)
        if not 0 <= explore <= 1 or width <= 0 or window <= 0:
            raise BadScaling(
                f"explore={explore}, width={width}, window={window}; give a chance from 0 to 1 and "
                f"lengths above 0"
            )
        self.explore, self.width, self.window = explore, width, window
        self.penalty = penalty
        self.table: dict[str, dict[str, dict[str, list[float]]]] = {
            pool: {bin_: {degree: list(cell) for degree, cell in row.items()} for bin_, row in rows.items()}
            for pool, rows in (table or {}).items()
        }
        self._rng = np.random.default_rng(seed)
        self._rates: dict[str, deque[tuple[float, float]]] = {}

    def learn(self, seen: Load) -> None:
        """Note the rates and, in training, the reward of the units that there are."""
        for pool in seen.pools:
            operators = [seen.operators[place] for place in seen.within(pool.name)]
            rates = self._rates.setdefault(pool.name, deque())
            rates.append((seen.at, sum(each.received for each in operators) / seen.seconds))
            while rates[0][0] <= seen.at - self.window:
                rates.popleft()
            if pool.starting == 0 and self.explore:
                behind = max(
                    (
                        max(each.received - each.processed, 0.0) / each.received
                        for each in operators
                        if each.received
                    ),
                    default=0.0,
                )
                self._reward(pool.name, pool.units, -pool.units - self.penalty * behind)

    def wishes(self, seen: Load) -> Sequence[Wish]:
        """The best degree of the bin, or a trial next to it."""
        found = []
        for pool in seen.pools:
            bin_ = self._bin(pool.name)
            degree, words = self._degree(pool.name, bin_, pool.present)
            if self.explore and self._rng.random() < self.explore:
                degree, words = max(degree + int(self._rng.integers(-2, 4)), 1), "a trial"
            if degree != pool.present:
                rate = float(bin_) * self.width
                reason = f"{rate:,.0f} tuples/s in the mean of {self.window:.0f} s: {words}"
                found.append(Wish(pool.name, degree, reason, {"rate": rate}))
        return found

    def state(self) -> dict[str, Any]:
        """The table, the last rates and choices, and the state of the draws."""
        return {
            "table": {
                pool: {
                    bin_: {degree: list(cell) for degree, cell in row.items()} for bin_, row in rows.items()
                }
                for pool, rows in self.table.items()
            },
            "rates": {pool: [list(each) for each in rates] for pool, rates in self._rates.items()},
            "draws": self._rng.bit_generator.state,
        }

    def restore(self, value: Mapping[str, Any]) -> None:
        """Continue from what `state` gave."""
        self.table = {
            pool: {bin_: {degree: list(cell) for degree, cell in row.items()} for bin_, row in rows.items()}
            for pool, rows in value["table"].items()
        }
        self._rates = {
            pool: deque((at, rate) for at, rate in rates) for pool, rates in value["rates"].items()
        }
        self._rng.bit_generator.state = value["draws"]

    def _bin(self, pool: str) -> str:
        rates = [rate for _, rate in self._rates.get(pool, ())]
        return str(round(sum(rates) / len(rates) / self.width) if rates else 0)

    def _reward(self, pool: str, units: int, reward: float) -> None:
        cell = (
            self.table.setdefault(pool, {}).setdefault(self._bin(pool), {}).setdefault(str(units), [0.0, 0.0])
        )
        cell[1] += 1
        cell[0] += (reward - cell[0]) / cell[1]

    def _degree(self, pool: str, bin_: str, present: int) -> tuple[int, str]:
        rows = self.table.get(pool, {})
        near = min(rows, key=lambda each: (abs(int(each) - int(bin_)), int(each)), default=None)
        if near is None:
            return present, "nothing is known yet"
        degree, (reward, trials) = max(rows[near].items(), key=lambda each: (each[1][0], -int(each[0])))
        return int(degree), f"{degree} units had the best reward, {reward:.1f} over {trials:.0f} trials"
