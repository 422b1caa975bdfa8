"""Pacing: epochs as long as the latency bound allows, since each one has a fixed cost that rows can share.

A row waits for the next epoch and then for its end. If epochs start every T seconds, take f seconds and p
seconds a row, and rows come at rate r, the worst row is late by T + f + p r T; the longest T that keeps this
below the bound costs the least. Where even epochs back to back exceed the bound, there is no wait at all.

A run that was given no bound keeps the default one, and only at a steady load: as long as epochs are rare,
each begins as soon as there are rows.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.control.bound import DEFAULT_BOUND
from penstock.control.observation import Observation
from penstock.control.pace import Pace
from penstock.control.proposal import Proposal
from penstock.errors import BadScaling
from penstock.shown import shown_seconds

__all__ = ["EpochCost", "Pacing", "fit_cost", "wait_before"]

_KEPT = 64  # epochs that the cost is fitted to
_FADE = 0.95  # what an epoch counts after each further one, so that the first, slow ones are forgotten
_SPREAD = 1.5  # most over least rows of an epoch from which a slope means something
_RATES = 3  # intervals of which the highest rate counts
_RARE, _WINDOW = 0.2, 30.0  # epochs that take less of so many seconds than this are rare
_MOST_SPANS = 1000


@dataclass(frozen=True)
class EpochCost:
    """What an epoch takes: a fixed part, a part for each row, and a reserve for epochs that take longer."""

    fixed: float
    a_row: float
    reserve: float = 0.0

    def seconds(self, rows: float) -> float:
        """The time to expect for so many rows, with the reserve.

        >>> EpochCost(0.5, 0.001).seconds(1000)
        1.5
        """
        return self.fixed + self.a_row * rows + self.reserve


def wait_before(cost: EpochCost, rate: float, age: float, waiting: float, goal: float) -> float:
    """Seconds to wait so that the oldest waiting row is delivered at the age `goal`; 0 if that is too late.

    The oldest of `waiting` rows has this `age`; while we wait, more come at `rate`.

    >>> wait_before(EpochCost(fixed=0.5, a_row=0.0001), rate=10_000, age=0.5, waiting=5_000, goal=4.5)
    1.5
    """
    left = goal - age - cost.seconds(waiting)
    return max(left / (1 + cost.a_row * rate), 0.0)


def fit_cost(epochs: list[tuple[float, float]], quantile: float) -> EpochCost:
    """The cost from rows and seconds of epochs, the newest last; later ones count more.

    If all had about as many rows, the time is taken to be in proportion to them: what makes longer epochs
    look dear, and never cheaper than they are.

    >>> fit_cost([(100, 0.6), (200, 0.7), (400, 0.9)], 1.0)
    EpochCost(fixed=0.5, a_row=0.001, reserve=0.0)
    """
    rows, seconds = np.array(epochs, np.float64).T
    weights = _FADE ** np.arange(len(rows))[::-1]
    weights /= weights.sum()
    mean_rows, mean = float(weights @ rows), float(weights @ seconds)
    if rows.max() < _SPREAD * rows.min() or not rows.max():
        slope = mean / mean_rows if mean_rows else 0.0
    else:
        apart = rows - mean_rows
        slope = float((weights * apart) @ (seconds - mean) / (weights @ (apart * apart)))
        slope = min(max(slope, 0.0), mean / mean_rows)
    fixed = mean - slope * mean_rows
    over = float(np.quantile(seconds - fixed - slope * rows, quantile))
    return EpochCost(round(fixed, 9), round(slope, 12), round(max(over, 0.0), 9))


class Pacing:
    """Learns what epochs cost and how fast rows come, and says how long to wait for the next one.

    `bound` is the latency in seconds that results have to keep, None for the default at a steady load.
    `margin` is the part of it that is planned with, `most` the longest time between two starts, and
    `quantile` of late epochs is kept free as reserve.

    >>> pacing = Pacing(bound=5.0)
    >>> for number in range(20):
    ...     rows = 20_000 + 10_000 * (number % 3)
    ...     start = 2.0 * number
    ...     end = start + 0.3 + rows * 1e-5
    ...     pacing.observe(Observation(number, (), arrived=start, committed=end, rows=rows))
    >>> ((pace,),) = [each.changes for each in pacing.propose(38.7)]
    >>> round(pace.interval, 2), round(pace.latency, 2)
    (3.5, 4.5)
    """

    def __init__(
        self, bound: float | None = None, *, margin: float = 0.9, most: float = 60.0, quantile: float = 0.98
    ) -> None:
        for name, given in (("bound", bound), ("most", most)):
            if given is not None and not 0 < given < math.inf:
                raise BadScaling(f"{name}={given}; give a number of seconds above 0")
        for name, given in (("margin", margin), ("quantile", quantile)):
            if not 0 < given <= 1:
                raise BadScaling(f"{name}={given}; give a share above 0 and up to 1")
        self.bound, self.margin, self.most, self.quantile = bound, margin, most, quantile
        self._epochs: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._rates: deque[float] = deque(maxlen=_RATES)
        self._busy: deque[tuple[float, float]] = deque(maxlen=_MOST_SPANS)
        self._started, self._left = math.nan, 0

    def observe(self, seen: Observation) -> None:
        """Take in a committed epoch; one that moved state says nothing of the cost of others."""
        if seen.committed < seen.arrived:
            raise BadScaling(
                f"epoch {seen.epoch} got its rows at {seen.arrived} and was committed at {seen.committed}; "
                "give instants in their order"
            )
        if seen.arrived > self._started:
            came = seen.rows + seen.left - self._left
            self._rates.append(max(came, 0) / (seen.arrived - self._started))
        if not any(each.moved for each in seen.stages):
            self._epochs.append((float(seen.rows), seen.committed - seen.arrived))
        self._busy.append((seen.arrived, seen.committed))
        self._started, self._left = seen.arrived, seen.left

    def propose(self, now: float) -> list[Proposal[Pace]]:
        """The wait from the commit of the last epoch on; nothing before the first."""
        if math.isnan(self._started):
            return [Proposal((), reason="there was no epoch yet")]
        pace = self._pace(max(now - self._started, 0.0), now)
        return [Proposal((pace,), reason=pace.reason, urgent=True)]

    def to_json(self) -> dict[str, Any]:
        """The epochs and rates that are remembered."""
        return {
            "epochs": [list(each) for each in self._epochs],
            "rates": list(self._rates),
            "busy": [list(each) for each in self._busy],
            "started": None if math.isnan(self._started) else self._started,
            "left": self._left,
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._epochs = deque(((rows, seconds) for rows, seconds in value["epochs"]), _KEPT)
        self._rates = deque(value["rates"], _RATES)
        self._busy = deque(((began, ended) for began, ended in value["busy"]), _MOST_SPANS)
        self._started = math.nan if value["started"] is None else value["started"]
        self._left = value["left"]

    def _rare(self, now: float) -> bool:
        """Whether epochs took little of the last seconds."""
        since = now - _WINDOW
        while self._busy and self._busy[0][1] <= since:
            self._busy.popleft()
        return sum(ended - max(began, since) for began, ended in self._busy) < _RARE * _WINDOW

    def _pace(self, age: float, now: float) -> Pace:
        if self.bound is None and self._rare(now):
            return Pace(0.0, age, math.inf, "epochs took little of the time, so the next begins at once")
        if not self._epochs or not self._rates:
            return Pace(0.0, age, math.inf, "the cost of an epoch and the rate of rows are not known yet")
        bound = DEFAULT_BOUND if self.bound is None else self.bound
        cost = fit_cost(list(self._epochs), self.quantile)
        rate, left = max(self._rates), self._left
        waiting = left + rate * age
        wait = 0.0 if left else wait_before(cost, rate, age, waiting, self.margin * bound)
        wait = min(wait, max(self.most - age, 0.0))
        latency = age + wait + cost.seconds(waiting + rate * wait)
        numbers = {"rate": rate, "fixed": cost.fixed, "a_row": cost.a_row, "reserve": cost.reserve}
        words = (
            f"{rate:,.0f} rows/s; an epoch takes {shown_seconds(cost.fixed)} and "
            f"{shown_seconds(1000 * cost.a_row)} for 1,000 rows, up to {shown_seconds(cost.reserve)} more"
        )
        if left:
            words += f"; {left:,} rows are left from before, so there is no wait"
        elif latency > bound:
            words += (
                f"; even without a wait the latency is {shown_seconds(latency)}, bound {shown_seconds(bound)}"
            )
        else:
            words += (
                f"; every {shown_seconds(age + wait)} keeps the latency at {shown_seconds(latency)}, "
                f"bound {shown_seconds(bound)}"
            )
        return Pace(wait, age + wait, latency, words, numbers)
