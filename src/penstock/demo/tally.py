"""Totals over all epochs of a run, whose own history holds only the latest."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from penstock.runtime.progress import EpochProgress

__all__ = ["Tally"]


@dataclass
class Tally:
    """What a run has done so far; rates cover the time spent in epochs."""

    epoch: int = -1
    rows: int = 0
    results: int = 0
    late: int = 0
    rejected: int = 0
    seconds: float = 0.0
    frontier: datetime | None = None

    @property
    def rows_per_second(self) -> float:
        """Mean rate over all epochs."""
        return self.rows / self.seconds if self.seconds else 0.0

    def take(self, progress: Iterable[EpochProgress]) -> list[EpochProgress]:
        """Add the epochs that have not been counted yet, and give them back."""
        fresh = [each for each in progress if each.epoch > self.epoch]
        for each in fresh:
            self.epoch = each.epoch
            self.rows += each.rows
            self.results += each.results
            self.late += each.late
            self.rejected += each.rejected
            self.seconds += each.seconds
            self.frontier = each.frontier or self.frontier
        return fresh
