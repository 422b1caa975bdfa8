"""Runs with control on and off, in turn epoch by epoch, over the same files: what each took and moved."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

import penstock as ps
from penstock_lab.bench.hot_sets import DDL
from penstock_lab.bench.outcomes import Outcome, outcomes_of
from penstock_lab.bench.paired import Interval, in_turn, ratio_of
from penstock_lab.bench.results import Delivered, rows_delivered
from penstock_lab.bench.skew_queries import SIDES, Rows
from penstock_lab.bench.turns import InTurn, Spent, Turns

__all__ = ["Mode", "Pair", "Ran", "cpu_ratio", "run_pair", "run_pairs", "wall_ratio"]

Mode = Literal["on", "off"]
"""Control, as `start` takes it."""


@dataclass(frozen=True)
class Ran:
    """One run: what it cost and delivered, its channels in each epoch, what it moved, what that brought.

    `rows`, `cpu` and `seconds` (processor time, and time by the clock) have a figure for each channel of the
    first stage in each epoch. Copies of a row count.
    """

    mode: Mode
    cost: Spent
    delivered: Delivered
    rows: tuple[tuple[int, ...], ...]
    cpu: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]
    taken: int
    moves: int
    moved_bytes: int
    move_s: float
    outcomes: tuple[Outcome, ...]

    @property
    def copies(self) -> float:
        """Rows that were sent to channels, over rows that were read."""
        return sum(map(sum, self.rows)) / self.taken


@dataclass(frozen=True)
class Pair:
    """Two runs over the same rows; `first` has the first turn, `hottest` is what `HotSets.write` tells."""

    seed: int
    first: Mode
    on: Ran
    off: Ran
    hottest: tuple[int, ...]

    @property
    def same(self) -> bool:
        """Whether both delivered the same."""
        return self.on.delivered == self.off.delivered

    @property
    def runs(self) -> tuple[Ran, Ran]:
        """Both, the one with the first turn first."""
        return (self.on, self.off) if self.first == "on" else (self.off, self.on)


def run_pair(
    spark: SparkSession,
    query: Callable[[Rows], ps.Relation],
    folder: Path,
    channels: int,
    order: tuple[Mode, Mode],
) -> dict[Mode, Ran]:
    """Run with control on and off over all files of a folder to the end, in turn epoch by epoch.

    The figures of channels are those that every run keeps: a policy that watches would ask for observations,
    which a run with control off does not make.
    """
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as scratch:
        places = {mode: Path(scratch) / mode for mode in order}
        turns, runs = Turns(*order), {}
        try:
            for mode in order:
                rows = partial(_rows, folder, turns, mode)
                runs[mode] = query(rows).start(
                    ps.parquet(str(places[mode] / "out")),
                    checkpoint=str(places[mode] / "state"),
                    channels=channels,
                    session=spark,
                    control=mode,
                )
        finally:
            for mode in {*order} - runs.keys():
                turns.leave(mode)
        for run in runs.values():
            run.wait(live=False)
        return {
            mode: _ran(mode, turns.spent[mode], rows_delivered(places[mode] / "out"), runs[mode])
            for mode in order
        }


def _rows(folder: Path, turns: Turns, mode: Mode, name: str) -> ps.Stream:
    """The stream in a folder's folder of this name, a file an epoch; of several the first waits for turns."""
    source: ps.Source = ps.files(str(folder / name), files_per_epoch=1)
    if name in {"rows", SIDES[0]}:
        source = InTurn(source, turns, mode)
    return ps.stream(name, DDL, time="time", source=source)


def _ran(mode: Mode, cost: Spent, delivered: Delivered, run: ps.Run) -> Ran:
    epochs = [each for each in run.progress if each.rows]  # all but the drain
    moved = [each for each in run.decisions if each.rows]
    return Ran(
        mode,
        cost,
        delivered,
        tuple(tuple(channel.rows for channel in each.stages[0].channels) for each in epochs),
        tuple(tuple(channel.cpu_seconds for channel in each.stages[0].channels) for each in epochs),
        tuple(tuple(channel.seconds for channel in each.stages[0].channels) for each in epochs),
        sum(each.rows for each in epochs),
        len(moved),
        sum(each.bytes for each in moved),
        sum(each.seconds for each in moved),
        outcomes_of(run),
    )


def run_pairs(
    pairs: int,
    once: Callable[[tuple[Mode, Mode]], dict[Mode, Ran]],
    seed: int = 0,
    hottest: Sequence[int] = (),
) -> Iterator[Pair]:
    """So many pairs, each in the other order than the one before."""
    orders: Iterator[tuple[Mode, Mode]] = in_turn(pairs, "on", "off")
    for order in orders:
        ran = once(order)
        yield Pair(seed, order[0], ran["on"], ran["off"], tuple(hottest))


def wall_ratio(pairs: Sequence[Pair]) -> Interval:
    """Time by the clock, on over off."""
    return ratio_of([each.on.cost.wall_s for each in pairs], [each.off.cost.wall_s for each in pairs])


def cpu_ratio(pairs: Sequence[Pair]) -> Interval:
    """Processor time of driver, JVM and workers, on over off."""
    return ratio_of([each.on.cost.cpu_s for each in pairs], [each.off.cost.cpu_s for each in pairs])
