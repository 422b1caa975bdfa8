"""A run on paper: epochs on executors that come and go, paced and scaled by the policies of a controller."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from penstock.control.controller import Controller
from penstock.control.expected import Expected
from penstock.control.observation import Nodes, Observation, OperatorWork, UnitWork
from penstock.control.pace import Pace
from penstock.control.ruling import Ruling
from penstock.control.scale import Scale

COST = 0.004  # seconds of an executor for a tuple, half of them on the map side


def hill(second: float) -> float:
    """Executors' worth as in `penstock bench executors`: half of one, up to 3.2 in a minute, and back."""
    return float(np.interp(second, [0, 40, 100, 150, 200, 240], [0.5, 0.5, 3.2, 3.2, 0.5, 0.5]))


@dataclass
class PaperRun:
    """`worth` is the load in executors over time; stage 0 gets `passed` tuples for each that comes in.

    A new executor helps after `startup` seconds, an epoch takes `fixed` seconds more than its work, and units
    get the part `got` of their cores.
    """

    controller: Controller
    worth: Callable[[float], float] = hill
    passed: Callable[[float], float] = lambda _: 1.0
    startup: float = 10.0
    fixed: float = 0.8
    got: float = 1.0
    units: int = 1
    forecast: Callable[[float], Expected] | None = None
    """What gates expect at an instant."""
    ready: list[float] = field(init=False)
    waits: list[float] = field(default_factory=list, init=False)
    """The latency of each window of a second."""
    course: list[tuple[float, int]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.ready = [0.0] * self.units

    def epochs(self, until: float) -> Iterator[tuple[Observation, list[Ruling]]]:
        """Epoch by epoch with what was ruled; epochs run back to back unless there is a pace."""
        begin, taken, number = 1.0, 0.0, 0
        while begin < until:
            times = np.arange(taken, begin, 0.05)
            rows = float(sum(self.worth(at) for at in times) * 0.05 / COST)
            passed = rows * float(np.mean([self.passed(at) for at in times])) if rows else 0.0
            halves = rows * COST / 2, passed * COST / 2
            end = self._done(begin + self.fixed, sum(halves))
            there = sum(each <= end for each in self.ready)
            latest = [end - second for second in range(math.ceil(taken), math.ceil(begin)) if second > 0]
            self.waits += latest
            self.course.append((end, there))
            wall = sum(halves) / self.got / there
            seen = Observation(
                epoch=number,
                stages=(),
                arrived=begin,
                started=begin,
                ended=end,
                committed=end,
                rows=int(rows),
                latency=max(latest, default=None),
                nodes=Nodes(there, len(self.ready) - there, busy=(wall,) * there, startup=self.startup),
                operators=(
                    OperatorWork("calls", int(rows), halves[0]),
                    OperatorWork("stage 0", int(passed), halves[1], ((0, int(passed)),)),
                ),
                units=tuple(UnitWork(str(each), wall, wall * self.got) for each in range(there)),
                expected={} if self.forecast is None else {"calls": self.forecast(end)},
            )
            self.controller.observe(seen)
            rulings = self.controller.decide(end)
            wait = sum(self._followed(each, end) for each in rulings if each.carried_out)
            yield seen, rulings
            taken, begin, number = begin, end + max(wait, 0.01), number + 1

    def run(self, until: float) -> "PaperRun":
        """All epochs."""
        for _ in self.epochs(until):
            pass
        return self

    def late(self, bound: float) -> float:
        """The share of windows that were later than a bound."""
        return float(np.mean(np.array(self.waits) > bound))

    @property
    def core_seconds(self) -> float:
        """Executors times seconds."""
        at = [0.0, *(each for each, _ in self.course)]
        return float(np.diff(at) @ np.array([count for _, count in self.course]))

    def _followed(self, ruling: Ruling, now: float) -> float:
        wanted = ruling.decision
        if isinstance(wanted, Scale):
            more = wanted.units - len(self.ready)
            self.ready = self.ready[: wanted.units] + [now + self.startup] * more
        return wanted.wait if isinstance(wanted, Pace) else 0.0

    def _done(self, now: float, work: float) -> float:
        """When so much work is done, by executors that help as soon as they are ready."""
        for ready in sorted(each for each in self.ready if each > now):
            units = sum(each <= now for each in self.ready) * self.got
            if work <= units * (ready - now):
                return now + work / units
            work, now = work - units * (ready - now), ready
        return now + work / (len(self.ready) * self.got)
