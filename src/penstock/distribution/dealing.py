"""Rows without a key are dealt out to channels that form partials of them ([000] §4.2, [004] §2.4)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.distribution.distribution import Forming, Held, Placed
from penstock.routing import PlainPanes

__all__ = ["ByPane", "InTurn", "Panes", "Runs"]

# Rows that one channel forms together: at first, at most, and how many such runs it gets.
_FIRST_RUN, _LONGEST_RUN, _RUNS = 64, 65_536, 16


@dataclass(frozen=True)
class Runs(Forming):
    """Rows go to channels in turn, so many at a time."""

    run: int

    kind: ClassVar[str] = "runs"
    dealing: ClassVar[str] = "runs"
    keyed: ClassVar[bool] = False

    @classmethod
    def planned(cls, channels: int, held: Held | None) -> "Runs":
        """Runs of a mean pane, shorter where the epoch is short.

        It should have many for each channel of each task of its source, of which there are about as many as
        channels.
        """
        if held is None or held.in_bucket is None or held.rows is None:
            return cls(_FIRST_RUN)
        tasks = channels
        most = held.rows / (_RUNS * channels * tasks)
        return cls(max(1, min(int(min(held.in_bucket / tasks, most)), _LONGEST_RUN)))

    def open(self, keys: tuple[str, ...], bucket: str, channels: int, task: int) -> "InTurn":
        """In turn."""
        del keys, bucket
        return InTurn(channels, task, self.run)


@dataclass(frozen=True)
class Panes(Forming):
    """Rows go by whole panes in turn."""

    kind: ClassVar[str] = "panes"
    dealing: ClassVar[str] = "round robin"
    keyed: ClassVar[bool] = False

    def open(self, keys: tuple[str, ...], bucket: str, channels: int, task: int) -> "ByPane":
        """By the number of the pane."""
        del keys, task
        return ByPane(bucket, channels)


@dataclass
class InTurn:
    """Rows go to channels in turn, in runs; tasks begin with different channels."""

    channels: int
    task: int
    run: int = 1
    _passed: int = 0

    def place(self, rows: Any) -> Placed:
        """By the number of a row in its task."""
        numbers = np.arange(self._passed, self._passed + rows.num_rows)
        self._passed += rows.num_rows
        return None, ((numbers // self.run + self.task) % self.channels).astype(np.int32)


@dataclass(frozen=True)
class ByPane:
    """Rows go by whole panes in turn."""

    bucket: str
    channels: int

    def place(self, rows: Any) -> Placed:
        """By the number of the pane."""
        return None, PlainPanes(self.channels).route(rows[self.bucket].to_numpy()).astype(np.int32)
