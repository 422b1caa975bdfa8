"""A steady rate: after n rows so many seconds have passed; a hold-up is not made good by a burst."""

from dataclasses import dataclass

from penstock.errors import BadLimit

__all__ = ["Pace"]

STEP_SECONDS = 0.02


@dataclass
class Pace:
    """Rows per second from a start; no rate at all means as fast as rows are taken.

    >>> pace = Pace(rate=100.0, start=10.0)
    >>> pace.step, pace.pause(50, now=10.2)
    (2, 0.3)
    """

    rate: float | None
    start: float

    def __post_init__(self) -> None:
        if self.rate is not None and not self.rate > 0:
            raise BadLimit(f"the rate is {self.rate} rows per second; give a number above 0, or none")

    @property
    def step(self) -> int:
        """Rows to push at once: those of 20 ms, at least one; 10,000 without a rate."""
        return 10_000 if self.rate is None else max(1, round(self.rate * STEP_SECONDS))

    def pause(self, rows: int, now: float) -> float:
        """Seconds to wait after so many rows."""
        if self.rate is None:
            return 0.0
        ahead = self.start + rows / self.rate - now
        if ahead < -STEP_SECONDS:
            self.start -= ahead
        return round(max(ahead, 0.0), 6)
