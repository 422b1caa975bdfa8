"""The pace of a live run: how long it waits after an epoch before the next one takes its tuples.

The wait is at the end of an epoch, after its commit and before the sources are asked what there is. So
nothing is under way while a run waits, and `stop` need not wait for it. How long it is, the pacing policy
rules, or the user who gave an interval.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.control.pace import Pace
from penstock.control.ruling import Ruling
from penstock.shown import shown_seconds

__all__ = ["Pacer"]


@dataclass
class Pacer:
    """Waits as it is ruled, or `interval` seconds from start to start if the user says so.

    With `tick`, a wait is never longer: so often must a run with `idle` look at its streams.
    """

    interval: float | None = None
    tick: float | None = None
    clock: Callable[[], float] = time.time
    wait: float = field(default=0.0, init=False)
    reason: str = field(default="", init=False)
    _committed: float = field(default=0.0, init=False)

    def after(self, arrived: float, committed: float, rulings: Iterable[Ruling]) -> None:
        """Take in what was ruled after an epoch that got its rows at `arrived`."""
        self._committed, self.wait, self.reason = committed, 0.0, ""
        if self.interval is not None:
            self.wait = max(arrived + self.interval - committed, 0.0)
            self.reason = f"every {shown_seconds(self.interval)}, as asked for"
        for each in rulings:
            if isinstance(each.decision, Pace):
                self.wait = each.decision.wait if each.carried_out else self.wait
                held = f" (held back: {each.held})" if each.held else ""
                self.reason = f"{each.decision.reason}{held}"
        if self.tick is not None:
            self.wait = min(self.wait, self.tick)

    def rest(self, wait: Callable[[float], object]) -> None:
        """Wait for what is left of the time, by a function that returns early if the run is to stop."""
        left = self._committed + self.wait - self.clock()
        if 0 < left <= self.wait:
            wait(left)
