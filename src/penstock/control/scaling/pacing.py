"""Pacing: epochs as long as the latency bound allows, since each one has a fixed cost that rows can share.

A row waits for the next epoch and then for its end. If epochs start every T seconds, take f seconds and p
seconds a row, and rows come at rate r, the worst row is late by T + f + p r T; the longest T that keeps this
below the bound costs the least. Where even epochs back to back exceed the bound, there is no wait at all.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from penstock.errors import BadScaling
from penstock.shown import shown_seconds

__all__ = ["EpochCost", "EpochTaken", "Pace", "Pacing", "PacingSettings", "fit_cost", "wait_before"]

_KEPT = 64  # epochs that the cost is fitted to
_FADE = 0.95  # what an epoch counts after each further one, so that the first, slow ones are forgotten
_SPREAD = 1.5  # most over least rows of an epoch from which a slope means something
_RATES = 3  # intervals of which the highest rate counts


@dataclass(frozen=True)
class PacingSettings:
    """`bound` is the latency in seconds that results have to keep, None for epochs back to back.

    `interval` is a fixed time between two starts, by hand. `margin` is the part of the bound that is planned
    with, `most` the longest time between two starts, and `quantile` of late epochs is kept free as reserve.
    """

    bound: float | None = None
    interval: float | None = None
    margin: float = 0.9
    most: float = 60.0
    quantile: float = 0.98

    def __post_init__(self) -> None:
        for name in ("bound", "interval", "most"):
            given = getattr(self, name)
            if given is not None and not (0 <= given < math.inf):
                raise BadScaling(f"{name}={given}; give a number of seconds from 0, or None")
        for name in ("margin", "quantile"):
            if not 0 < getattr(self, name) <= 1:
                raise BadScaling(f"{name}={getattr(self, name)}; give a share above 0 and up to 1")


@dataclass(frozen=True)
class EpochTaken:
    """A committed epoch: how many rows it took, when it took them, and when they were delivered.

    Instants are in seconds since 1970. `waiting` are rows that had arrived when the epoch began and that it
    left behind. An epoch that `moved` state says nothing of the cost of others.
    """

    epoch: int
    rows: int
    started: float
    committed: float
    waiting: int = 0
    moved: bool = False


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


@dataclass(frozen=True)
class Pace:
    """How long to wait before the next epoch takes its rows; `interval` is from start to start.

    `latency` is what the slowest row is expected to have, infinite if it is not known.
    """

    wait: float
    interval: float
    latency: float
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict, repr=False)


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

    >>> pacing = Pacing(PacingSettings(bound=5.0))
    >>> for number in range(20):
    ...     rows = 20_000 + 10_000 * (number % 3)
    ...     start = 2.0 * number
    ...     pacing.observe(EpochTaken(number, rows, start, start + 0.3 + rows * 1e-5))
    >>> pace, = pacing.decide(38.7)
    >>> round(pace.interval, 2), round(pace.latency, 2)
    (3.5, 4.5)
    """

    def __init__(self, settings: PacingSettings | None = None) -> None:
        self.settings = settings or PacingSettings()
        self._epochs: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._rates: deque[float] = deque(maxlen=_RATES)
        self._last: EpochTaken | None = None

    def observe(self, seen: EpochTaken) -> None:
        """Take in a committed epoch."""
        if seen.committed < seen.started:
            raise BadScaling(
                f"epoch {seen.epoch} started at {seen.started} and was committed at {seen.committed}; give "
                "instants in their order"
            )
        if self._last is not None and seen.started > self._last.started:
            arrived = seen.rows + seen.waiting - self._last.waiting
            self._rates.append(max(arrived, 0) / (seen.started - self._last.started))
        if not seen.moved:
            self._epochs.append((float(seen.rows), seen.committed - seen.started))
        self._last = seen

    def decide(self, now: float) -> list[Pace]:
        """The wait from now on; nothing before the first epoch."""
        last, own = self._last, self.settings
        if last is None:
            return []
        age = max(now - last.started, 0.0)
        if own.interval is not None:
            wait = max(own.interval - age, 0.0)
            return [Pace(wait, age + wait, math.inf, f"every {shown_seconds(own.interval)}, as asked for")]
        if own.bound is None:
            return [Pace(0.0, age, math.inf, "no latency bound is given, so epochs run back to back")]
        if not self._epochs or not self._rates:
            return [Pace(0.0, age, math.inf, "the cost of an epoch and the rate of rows are not known yet")]
        return [self._paced(own.bound, last, age)]

    def to_json(self) -> dict[str, Any]:
        """The epochs and rates that are remembered."""
        return {
            "epochs": [list(each) for each in self._epochs],
            "rates": list(self._rates),
            "last": None if self._last is None else asdict(self._last),
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._epochs = deque(((rows, seconds) for rows, seconds in value["epochs"]), _KEPT)
        self._rates = deque(value["rates"], _RATES)
        self._last = None if value["last"] is None else EpochTaken(**value["last"])

    def _paced(self, bound: float, last: EpochTaken, age: float) -> Pace:
        own = self.settings
        cost = fit_cost(list(self._epochs), own.quantile)
        rate = max(self._rates)
        waiting = last.waiting + rate * age
        goal = own.margin * bound
        wait = 0.0 if last.waiting else wait_before(cost, rate, age, waiting, goal)
        wait = min(wait, max(own.most - age, 0.0))
        latency = age + wait + cost.seconds(waiting + rate * wait)
        numbers = {"rate": rate, "fixed": cost.fixed, "a_row": cost.a_row, "reserve": cost.reserve}
        words = (
            f"{rate:,.0f} rows/s; an epoch takes {shown_seconds(cost.fixed)} and "
            f"{shown_seconds(1000 * cost.a_row)} for 1,000 rows, up to {shown_seconds(cost.reserve)} more"
        )
        if last.waiting:
            words += f"; {last.waiting:,} rows are left from before, so there is no wait"
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
