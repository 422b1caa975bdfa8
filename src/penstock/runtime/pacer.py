"""The pace of a live run: how long it waits after an epoch before the next one takes its tuples.

The wait is at the end of an epoch, after its commit and before Spark asks the sources what there is. So
nothing is under way while a run waits, and `stop` need not wait for it.
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from penstock.control.scaling.leisure import DEFAULT_BOUND, Leisure
from penstock.control.scaling.pacing import EpochTaken, Pace, Pacing, PacingSettings

__all__ = ["Pacer", "pacer"]

_log = logging.getLogger("penstock.run")

_PLANNING = 1.0  # seconds that Spark needs at most between two epochs if tuples wait
_NOW = Pace(0.0, 0.0, math.inf, "epochs have taken little of the time, so the next one begins at once")


@dataclass
class Pacer:
    """Paces epochs by a policy; no wait is longer than `most` seconds.

    With `leisure`, epochs are not paced as long as they are rare.
    """

    pacing: Pacing
    most: float = math.inf
    leisure: Leisure | None = None
    clock: Callable[[], float] = time.time
    _returned: float = field(default=-math.inf, init=False)

    def taken(self, arrived: float) -> float:
        """When the epoch that has its tuples since `arrived` asked for them.

        If epochs follow each other closely, Spark asked right after the last one.
        """
        return self._returned if 0 <= arrived - self._returned < _PLANNING else arrived

    def after(self, seen: EpochTaken) -> Pace:
        """The wait after a committed epoch; what fails in the policy means no wait."""
        try:
            self.pacing.observe(seen)
            if self.leisure is not None:
                self.leisure.observe(seen.started, seen.committed)
            if self.leisure is not None and self.leisure.there(seen.committed):
                return _NOW
            paces = self.pacing.decide(self.clock())
        except Exception:  # noqa: BLE001 -- nothing that is decided here may end a run
            _log.exception("epoch %d: pacing failed; the next epoch begins at once", seen.epoch)
            return replace(_NOW, reason="pacing failed, see the log")
        return replace(paces[0], wait=min(paces[0].wait, self.most)) if paces else _NOW

    def rest(self, seconds: float, wait: Callable[[float], object]) -> None:
        """Wait, by a function that returns early if the run is to stop."""
        if seconds > 0:
            wait(seconds)
        self._returned = self.clock()


def pacer(bound: float | None, interval: float | None, tick: float | None) -> Pacer:
    """The pacer of a run; `tick` is how often a run with `idle` must look at its streams."""
    most = math.inf if tick is None else tick
    if bound is None and interval is None:
        return Pacer(Pacing(PacingSettings(bound=DEFAULT_BOUND)), most, Leisure())
    return Pacer(Pacing(PacingSettings(bound=bound, interval=interval)), most)
