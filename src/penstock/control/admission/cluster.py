"""What a strategy of admission sees and what it answers: arrays over streams and gates.

Streams and gates are numbered from 0; the order of the numbers breaks ties, so the caller numbers them in
the order of their ids. Work is in any unit that capacities share: rows per second, or seconds of a gate's
time per second (`capacity.py`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from penstock.control.proposal import Effect
from penstock.errors import BadAdmission

if TYPE_CHECKING:
    from penstock.control.admission.costs import Costs

__all__ = ["NOWHERE", "Bools", "Cluster", "Floats", "Ints", "Outlook", "Placement", "fits", "loads"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NOWHERE = -1
# Sums of rates have rounding errors; what is within them of a capacity still fits.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Cluster:
    """The gate of every stream (`NOWHERE` for a new one), and what gates can take.

    `open` gates may get streams: they neither drain nor are they away. `movable` streams may be redirected.
    `waiting` is the estimated seconds that a row waits at a gate. A gate that is started has `new_capacity`,
    and takes streams after `starting` periods, if that is known.
    """

    home: Ints
    capacity: Floats
    new_capacity: float
    open: Bools
    waiting: Floats
    movable: Bools
    starting: float | None = None

    def __post_init__(self) -> None:
        streams, gates = len(self.home), len(self.capacity)
        if len(self.movable) != streams or len(self.open) != gates or len(self.waiting) != gates:
            raise BadAdmission(
                f"{len(self.movable)} marks for {streams} streams, {len(self.open)} marks and "
                f"{len(self.waiting)} queues for {gates} gates; give one for each"
            )
        if self.new_capacity <= 0 or (gates and self.capacity.min() <= 0):
            raise BadAdmission(f"a capacity of {self.new_capacity} or less; give gates a capacity above 0")
        if streams and not NOWHERE <= self.home.min() <= self.home.max() < gates:
            raise BadAdmission(
                f"streams at gates {self.home.min()} to {self.home.max()}; there are gates 0 to {gates - 1}"
            )

    @classmethod
    def of(cls, home: Ints, capacity: Floats, new_capacity: float) -> "Cluster":
        """A cluster in which every gate is open and nothing waits, and every stream may move."""
        gates = len(capacity)
        return cls(
            np.asarray(home, np.int64),
            np.asarray(capacity, np.float64),
            new_capacity,
            np.ones(gates, np.bool_),
            np.zeros(gates),
            np.ones(len(home), np.bool_),
        )


@dataclass(frozen=True)
class Outlook:
    """The work of every stream: in the last period, forecast, and as its metadata lead to expect.

    `next` is the forecast for the coming period, `later` that for the end of the horizon. `declared` is NaN
    where there are no metadata. `path` has the forecasts at `leads` periods from now, streams by leads, and
    `spread` their standard error at the longest lead at which forecasts are scored. A stream of which nothing
    is known has the mean of the population.
    """

    last: Floats
    next: Floats
    later: Floats
    declared: Floats
    leads: Ints
    path: Floats
    spread: Floats

    def at(self, costs: "Costs") -> "Outlook":
        """The work of what is expected in rows."""
        last, next_, later, declared, path = map(
            costs.work, (self.last, self.next, self.later, self.declared, self.path)
        )
        return Outlook(last, next_, later, declared, self.leads, path, self.spread * costs.row)


@dataclass(frozen=True)
class Placement:
    """Where every stream is to be; gates from the present number on are new.

    `load` is what each gate is charged with afterwards, `why` the strategy's reason for each gate that
    streams leave: "overloaded", "emptied", "settled" or "packed afresh". `weighed` is what the moves bring
    that no gate needs at once, in gates: saved in a period, for how long, and their price; without it all
    are made.
    """

    home: Ints
    gates: int
    size: Floats
    why: dict[int, str]
    drained: Ints
    weighed: Effect | None = None


def loads(home: Ints, size: Floats, gates: int) -> Floats:
    """The work at every gate; streams without a gate count nowhere."""
    placed = home >= 0
    return np.bincount(home[placed], weights=size[placed], minlength=gates).astype(np.float64)


def fits(load: Floats | float, capacity: Floats | float) -> Bools | bool:
    """Whether a load is within a capacity, but for rounding."""
    within: Bools | bool = load <= capacity * (1 + _ROUNDING)
    return within
