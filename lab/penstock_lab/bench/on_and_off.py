"""Runs with control on and off, in turn, over the same files: what each took, delivered and moved."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

import penstock as ps
from penstock_lab.bench.cost import Cost, cost_of
from penstock_lab.bench.outcomes import Outcome, outcomes_of
from penstock_lab.bench.paired import Interval, in_turn, ratio_of
from penstock_lab.bench.results import Delivered, rows_delivered

__all__ = ["Mode", "Pair", "Ran", "cpu_ratio", "run_once", "run_pairs", "wall_ratio"]

Mode = Literal["on", "off"]
"""Control, as `start` takes it."""


@dataclass(frozen=True)
class Ran:
    """One run: what it cost and delivered, its channels in each epoch, what it moved, what that brought.

    `rows`, `cpu` and `seconds` (processor time, and time by the clock) have a figure for each channel of the
    first stage in each epoch. Copies of a row count.
    """

    mode: Mode
    cost: Cost
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
    """Two runs over the same rows, one right after the other; `hottest` as `HotSets.write` tells."""

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
        """Both in the order in which they ran."""
        return (self.on, self.off) if self.first == "on" else (self.off, self.on)


def run_once(
    spark: SparkSession, query: Callable[[Path], ps.Relation], folder: Path, channels: int, mode: Mode
) -> Ran:
    """Run over all files of a folder to the end.

    The figures of channels are those that every run keeps: a policy that watches would ask for observations,
    which a run with control off does not make.
    """
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as place:
        out, runs = Path(place) / "out", []

        def work() -> None:
            run = query(folder).start(
                ps.parquet(str(out)),
                checkpoint=str(Path(place) / "state"),
                channels=channels,
                session=spark,
                control=mode,
            )
            runs.append(run)
            run.wait(live=False)

        cost = cost_of(spark, work)
        return _ran(mode, cost, rows_delivered(out), runs[0])


def _ran(mode: Mode, cost: Cost, delivered: Delivered, run: ps.Run) -> Ran:
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
    pairs: int, once: Callable[[Mode], Ran], seed: int = 0, hottest: Sequence[int] = ()
) -> Iterator[Pair]:
    """So many pairs, each in the other order than the one before."""
    orders: Iterator[tuple[Mode, Mode]] = in_turn(pairs, "on", "off")
    for first, second in orders:
        ran = {mode: once(mode) for mode in (first, second)}
        yield Pair(seed, first, ran["on"], ran["off"], tuple(hottest))


def wall_ratio(pairs: Sequence[Pair]) -> Interval:
    """Time by the clock, on over off."""
    return ratio_of([each.on.cost.wall_s for each in pairs], [each.off.cost.wall_s for each in pairs])


def cpu_ratio(pairs: Sequence[Pair]) -> Interval:
    """Processor time of driver, JVM and workers, on over off."""
    return ratio_of([each.on.cost.cpu_s for each in pairs], [each.off.cost.cpu_s for each in pairs])
