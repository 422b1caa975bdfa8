"""What a run reports about each of its epochs: values that print as one line each, with units."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from penstock.shown import shown_bytes, shown_seconds, shown_time

__all__ = [
    "ChannelWork",
    "EpochProgress",
    "LiveLine",
    "Phases",
    "ResultLatency",
    "StageProgress",
    "line",
]


@dataclass(frozen=True, repr=False)
class ChannelWork:
    """One channel in one epoch: the rows it worked on itself, how long it was busy, processor time."""

    rows: int
    seconds: float
    cpu_seconds: float

    def __repr__(self) -> str:
        busy, cpu = shown_seconds(self.seconds), shown_seconds(self.cpu_seconds)
        return f"{self.rows:,} rows, busy {busy}, {cpu} of processor time"


@dataclass(frozen=True, repr=False)
class StageProgress:
    """One stage in one epoch: the tuples its channels took, how long they were busy, the state they keep.

    `channels` has the figures of each channel if the stage ran. `split` says which hot keys were split into
    sub-keys and why, or is empty; `grouping` is how rows found a channel where any will do, else empty. Rows
    that stay in place stay in the tasks of the source, which are counted as if the channels took turns.
    `state_rows` are those in segments; what has died, or has a newer version, counts until it is compacted
    away, and `penstock state` leaves it out.
    """

    name: str
    tuples: int
    busy_seconds: float
    state_rows: int
    frontier: datetime | None
    channels: tuple[ChannelWork, ...] = ()
    split: str = ""
    grouping: str = ""

    @property
    def cost(self) -> float | None:
        """Seconds of a channel for each tuple."""
        return self.busy_seconds / self.tuples if self.tuples else None

    def __repr__(self) -> str:
        cost = "" if self.cost is None else f" ({shown_seconds(self.cost)} each)"
        return (
            f"{self.name}: {self.tuples:,} tuples{cost}, busy {shown_seconds(self.busy_seconds)} in "
            f"{len(self.channels):,} channels, {self.state_rows:,} rows of state, frontier "
            f"{shown_time(self.frontier)}{f', {self.split}' if self.split else ''}"
            f"{f', rows {self.grouping}' if self.grouping else ''}"
        )


@dataclass(frozen=True, repr=False)
class ResultLatency:
    """Seconds from the arrival of the last tuple that contributes to a result to its delivery ([000] §3.1).

    `results` are the windows, or groups of single results, that were measured: half of them took at most
    `p50`, 99 of a hundred at most `p99`, all at most `most`. `within` is the share within the bound, without
    the delay that the streams ask for; None if no bound was given.
    """

    results: int
    p50: float
    p99: float
    most: float
    within: float | None = None

    def __repr__(self) -> str:
        share = "" if self.within is None else f", {self.within:.1%} within the bound"
        p50, p99, most = map(shown_seconds, (self.p50, self.p99, self.most))
        return f"latency of {self.results:,} results: p50 {p50}, p99 {p99}, most {most}{share}"


@dataclass(frozen=True, repr=False)
class EpochProgress:
    """One epoch: its input and output, how long each phase took, and the state it left.

    `latency` is that of its results; None if it has none, or if all sources are bounded. `waiting` is the
    number of tuples that its sources had and that it left; `wait_seconds` is how long the run waits before
    the next epoch, and `pace` says why.
    `disorder` is how many batches of results lay between two that left out of order, at most; None if all
    results left together with the epoch.
    `lag_seconds` is how far the frontier is behind the wall clock; it means little for old data. `warnings`
    say what needs attention, such as a stream whose rows were all rejected. `away` are gates that did not
    answer when the epoch was planned.
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
    warnings: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    latency: ResultLatency | None = None
    waiting: int = 0
    wait_seconds: float = 0.0
    pace: str = ""
    disorder: int | None = None

    @property
    def rows_per_second(self) -> float:
        """Tuples of the epoch per second."""
        return self.rows / self.seconds if self.seconds else 0.0

    def __repr__(self) -> str:
        # Numbers have a fixed usual width, so that a list of epochs reads as a table.
        counts = f"{self.rows:>9,} tuples, {self.results:>7,} results, {self.late:>3,} late"
        state = f"state {self.state_rows:,} rows, {shown_bytes(self.state_bytes)}"
        latency = "" if self.latency is None else f", latency {shown_seconds(self.latency.p99)}"
        return (
            f"epoch {self.epoch:>4,}: {counts}, {self.rejected:>3,} rejected, {self.seconds:>5.2f} s, "
            f"frontier {shown_time(self.frontier)}, {state}{latency}{_warned(self.warnings)}"
            f"{f', no answer from {chr(44).join(self.away)}' if self.away else ''}"
        )


def _warned(warnings: tuple[str, ...]) -> str:
    return "".join(f"; warning: {each}" for each in warnings)


class Phases:
    """Wall time of the phases of an epoch."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._since = time.perf_counter()

    def ends(self, name: str) -> None:
        """End a phase, or a part of one, and begin the next."""
        now = time.perf_counter()
        self.times[name] = self.times.get(name, 0.0) + now - self._since
        self._since = now


class _Progressing(Protocol):
    @property
    def progress(self) -> list[EpochProgress]: ...


class LiveLine:
    """Shows the newest epoch of a run, at most ten times a second."""

    def __init__(self, run: _Progressing, *, shown: bool | None) -> None:
        self._run = run
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._shown:
            console = Console(stderr=True)
            self._live = Live(
                get_renderable=self._text, console=console, refresh_per_second=10, transient=True
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _text(self) -> Text:
        epochs = self._run.progress[-1:]
        return line(epochs[0]) if epochs else Text("waiting for the first epoch …", style="dim")


def line(epoch: EpochProgress) -> Text:
    """An epoch in one line."""
    return Text(
        f"epoch {epoch.epoch}  {epoch.rows_per_second:,.0f} rows/s  {epoch.seconds:.2f} s  "
        f"frontier {shown_time(epoch.frontier)}  "
        f"state {epoch.state_rows:,} rows, {shown_bytes(epoch.state_bytes)}  results {epoch.results:,}  "
        f"late {epoch.late:,}  rejected {epoch.rejected:,}"
    )
