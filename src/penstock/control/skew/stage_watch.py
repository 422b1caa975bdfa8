"""One stage under the skew policy: its smoothed loads, how long they have been uneven, and when to act.

Rent or buy: an imbalance is like rent, a move like a purchase. The stage moves when the imbalance, mended
when it began, would have saved more than the move costs. So at worst about twice the price is lost, if the
imbalance ends right after the move, and bursts that end sooner are never chased.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.control.observation import StageChannels
from penstock.control.skew.grids import cold_grids
from penstock.control.skew.relative_load import RelativeLoad

__all__ = ["COLD", "LONGEST", "SECONDS_A_ROW", "StageWatch", "busy_seconds"]

Floats = NDArray[np.float64]

LONGEST = 64
"""The most epochs that a gain is expected to last, however long the imbalance has been there: without it, any
small gain would be worth a move in the end, and a stationary stream would never come to rest."""
COLD = 16
"""A key on a grid that has not been hot for this many epochs may lose it."""
_CALM = 3
"""An imbalance has ended if it was not seen in this many epochs in a row."""
_SETTLED = 4
"""Epochs after a move until its gain is judged."""
_TOP, _DRIFT, _LONGEST_DRIFT = 16, 0.015, 6
"""If this share of all tuples went over to others of the top keys since the last epoch, keys have changed
and are still being counted: a plan waits for that, but not for more epochs of an imbalance than this."""
SECONDS_A_ROW = 1e-6
"""What a row is taken to cost where no time is measured."""
_RESTS = (4, 256)
"""Epochs to wait after a plan that found nothing or was held back; doubled each time up to the second."""
_MISSED_RESTS = (16, 8192)
"""Epochs to wait after the second move in a row that brought less than half of what it promised; then four
times as many each time."""


@dataclass
class StageWatch:
    """What is remembered of a stage; epochs are counted if they had load and moved no state of it."""

    state: RelativeLoad = field(default_factory=RelativeLoad)
    time: RelativeLoad = field(default_factory=RelativeLoad)
    rows: RelativeLoad = field(default_factory=lambda: RelativeLoad(counted=True))
    seconds: float = 0.0
    router: str = ""
    lasted: int = 0
    epoch: int = 0
    cold: int = 0
    _calm: int = 0
    _rest_until: int = 0
    _rest: int = _RESTS[0]
    _missed: int = 0
    _before: float = 1.0
    _expected: float | None = None
    _top: dict[int, float] = field(default_factory=dict)
    _drift: float = 0.0

    def observe(self, stage: StageChannels) -> bool:
        """Take in an epoch of the stage; whether it says anything about its load."""
        placed = f"{stage.router} {stage.spread} {stage.sub_keys}"
        if placed != self.router:
            moved = bool(self.router) and stage.moved is not None
            self.router = placed
            self._begin_again(moved=moved)
        if stage.moving or stage.moved is not None or not busy_seconds(stage).any():
            return False
        self.epoch += 1
        busy = busy_seconds(stage)
        self.state.observe(np.array([each.state_bytes for each in stage.channels], np.float64))
        self.rows.observe(_rows(stage))
        jumped = self.time.observe(busy)
        total = float(busy.sum())
        self.seconds += (total - self.seconds) * max(0.25, 1 / self.epoch)
        if jumped:
            # The load is another one now: what was learnt about plans for the old one does not count.
            self.lasted, self._calm, self._rest_until, self._rest = 1, 0, 0, _RESTS[0]
            self._missed, self._expected = 0, None
        self.cold = self.cold + 1 if cold_grids(stage) else 0
        self._drifted(stage)
        self._last(stage.tolerated)
        self._judge()
        return True

    def uneven(self, tolerated: tuple[float, float, float]) -> tuple[str, float] | None:
        """A resource that exceeds its tolerance by more than chance, time first, and its most over least."""
        state, time, rows = tolerated
        for name, load, limit in (
            ("time", self.time, time),
            ("rows", self.rows, rows),
            ("state", self.state, state),
        ):
            if load.is_uneven(limit):
                return name, load.most_over_least
        return None

    @property
    def rests(self) -> bool:
        """Whether to leave the stage alone for now; a plan for keys that are still being counted is none."""
        counting = self._drift > _DRIFT and self.lasted <= _LONGEST_DRIFT
        return counting or self.epoch < self._rest_until

    @property
    def horizon(self) -> int:
        """For how many epochs a gain is expected: as long as the imbalance has lasted."""
        return min(self.lasted, LONGEST)

    def wait_for(self, gain: float, price: float) -> None:
        """Make no plan until the gain may have reached the price, or the imbalance is twice as old."""
        if gain * LONGEST <= price:
            self.wait_longer()
        else:
            self._rest_until = self.epoch + max(1, min(int(price / gain) - self.lasted, self.lasted))

    def wait_longer(self) -> None:
        """Make no plan for a while, and for a longer while the next time."""
        self._rest_until = self.epoch + self._rest
        self._rest = min(2 * self._rest, _RESTS[1])

    def expect(self, busiest: float) -> None:
        """Remember the load of the busiest channel over the mean that a move promises, and that of now."""
        self._expected = busiest
        self._before = self.time.busiest

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **{name: getattr(self, name).to_json() for name in _LOADS},
            **{name: getattr(self, name) for name in _PLAIN},
            "top": {str(key): share for key, share in self._top.items()},
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        for name in _LOADS:
            getattr(self, name).resume(value[name])
        for name in _PLAIN:
            setattr(self, name, value[name])
        self._top = {int(key): share for key, share in value["top"].items()}

    def _begin_again(self, *, moved: bool) -> None:
        """Forget loads that belong to another router."""
        for name in _LOADS:
            getattr(self, name).forget()
        self.lasted, self._calm = 0, 0
        self._rest_until, self._rest = self.epoch, _RESTS[0]
        if not moved:
            self._expected = None

    def _drifted(self, stage: StageChannels) -> None:
        """By how much the shares of the most frequent keys changed since the epoch before."""
        top = dict(zip(stage.known.hashes[:_TOP], stage.known.shares[:_TOP], strict=True))
        apart = sum(abs(top.get(key, 0.0) - self._top.get(key, 0.0)) for key in top.keys() | self._top.keys())
        self._top, self._drift = top, apart / 2

    def _last(self, tolerated: tuple[float, float, float]) -> None:
        if self.uneven(tolerated) is None and self.time.epochs >= _SETTLED - 1:
            self._calm += 1
            if self._calm >= _CALM:
                self.lasted, self._rest = 0, _RESTS[0]
        else:
            self._calm = 0
            self.lasted += 1

    def _judge(self) -> None:
        """After a move: wait longer and longer if it did not bring what it promised."""
        if self._expected is None or self.time.epochs < _SETTLED:
            return
        brought, promised = self._before - self.time.busiest, self._before - self._expected
        self._expected = None
        if brought >= promised / 2:
            self._missed = 0
            return
        if self._missed:  # the first time the keys may have changed during the move
            rest = min(_MISSED_RESTS[0] * 4 ** (self._missed - 1), _MISSED_RESTS[1])
            self._rest_until = self.epoch + rest
        self._missed += 1


_LOADS = ("state", "time", "rows")
_PLAIN = (
    "seconds",
    "router",
    "lasted",
    "epoch",
    "cold",
    "_before",
    "_drift",
    "_calm",
    "_rest_until",
    "_rest",
    "_missed",
    "_expected",
)


def _rows(stage: StageChannels) -> Floats:
    """Rows that came over the exchange, or tuples where rows are not counted."""
    rows = np.array([each.rows for each in stage.channels], np.float64)
    return rows if rows.any() else np.array([each.tuples for each in stage.channels], np.float64)


def busy_seconds(stage: StageChannels) -> Floats:
    """Seconds of each channel: of the processor, or wall time, or what its rows would take."""
    for name in ("cpu_seconds", "seconds"):
        found = np.array([getattr(each, name) for each in stage.channels], np.float64)
        if found.any():
            return found if _rows(stage).any() else np.zeros(len(found))
    return _rows(stage) * SECONDS_A_ROW
