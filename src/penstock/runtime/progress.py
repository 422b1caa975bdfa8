"""What a run tells about each of its epochs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["ChannelWork", "EpochProgress", "Phases", "StageProgress", "instant"]


@dataclass(frozen=True)
class ChannelWork:
    """One channel in one epoch: the rows that it worked on itself, how long it was busy, processor time."""

    rows: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class StageProgress:
    """One stage in one epoch: the tuples that its channels took, how long they were busy, what they keep.

    `channels` tells it for each channel, where the stage ran; `split` says which hot keys were dealt out over
    sub-keys and why, or is empty.
    """

    name: str
    tuples: int
    busy_seconds: float
    state_rows: int
    frontier: datetime | None
    channels: tuple[ChannelWork, ...] = ()
    split: str = ""

    @property
    def cost(self) -> float | None:
        """Seconds of a channel for each tuple."""
        return self.busy_seconds / self.tuples if self.tuples else None


@dataclass(frozen=True)
class EpochProgress:
    """One epoch: what came in, what went out, how long each phase took, and the state it left.

    `lag_seconds` is how far the frontier is behind the wall clock; it says little for old data.
    """

    epoch: int
    rows: int
    late: int
    rejected: int
    results: int
    seconds: float
    phases: Mapping[str, float]
    frontier: datetime | None
    lag_seconds: float | None
    state_rows: int
    state_bytes: int
    combining: str
    stages: tuple[StageProgress, ...] = ()

    @property
    def rows_per_second(self) -> float:
        """Tuples of the epoch over its time."""
        return self.rows / self.seconds if self.seconds else 0.0


def instant(microseconds: int | None) -> datetime | None:
    """A time of the frontier as people read it; None where it is outside of what a datetime can hold."""
    if microseconds is None:
        return None
    try:
        return datetime.fromtimestamp(microseconds / 1e6, UTC)
    except (OverflowError, ValueError, OSError):
        return None


class Phases:
    """Wall time of the parts of an epoch."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._since = time.perf_counter()

    def ends(self, name: str) -> None:
        """A phase, or a part of one, ends here and the next begins."""
        now = time.perf_counter()
        self.times[name] = self.times.get(name, 0.0) + now - self._since
        self._since = now
