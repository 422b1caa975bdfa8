"""What the directory knows of one stream, and how each look at a gate changes it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

__all__ = ["StreamRecord"]

SMOOTHING: Final = 0.3


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A stream: its gate, its metadata, and what was last seen of it; `rate` is in rows per second, smoothed.

    >>> record = StreamRecord("reports/v1", "a:1").seen("a:1", 100, None, now=10.0)
    >>> record.seen("a:1", 300, 77, now=12.0).rate
    100.0
    """

    stream: str
    gate: str
    metadata: Mapping[str, Any] | None = None
    rate: float | None = None
    frontier: int | None = None
    high: int = 0
    looked: float | None = None

    def expected_rate(self) -> float | None:
        """The rate to reckon with: the measured one, else the declared one."""
        if self.rate is not None:
            return self.rate
        declared = (self.metadata or {}).get("expected_rate")
        return float(declared) if isinstance(declared, int | float) else None

    def seen(self, gate: str, high: int, frontier: int | None, now: float) -> "StreamRecord":
        """The record after one more look; gates that the stream has left say nothing about its rate."""
        if high <= self.high and gate != self.gate:
            return self
        rate, rows = self.rate, max(high - self.high, 0)
        if self.looked is not None and now > self.looked:
            latest = rows / (now - self.looked)
            rate = latest if rate is None else rate + SMOOTHING * (latest - rate)
        known = [each for each in (self.frontier, frontier) if each is not None]
        latest_frontier = max(known) if known else None
        return replace(self, high=self.high + rows, rate=rate, looked=now, frontier=latest_frontier)
