"""A live run under a load that changes: a keyed function with state that waits for each row.

Channels that wait truly run at the same time on any machine, so the load has a size in channels. Every result
is compared with a batch over all rows.
"""

import math
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import penstock as ps
from penstock_lab.bench.channel_steps import Seen
from penstock_lab.bench.data import SECOND_US
from penstock_lab.bench.memory import Usage
from penstock_lab.bench.outcomes import Outcome, outcomes_of
from penstock_lab.bench.ramp_source import DDL, RampSource, Tuples
from penstock_lab.bench.ramps import Ramps
from penstock_lab.bench.waiting import wait_until

__all__ = ["ROW_S", "Load", "UnderLoad", "run_under_load"]

ROW_S = 0.001
"""How long a row takes: a channel's worth of load is a thousand rows a second."""

_LATEST_S = 120  # for what is left when the load has ended
_STATE = "n bigint, total bigint"


@dataclass(frozen=True)
class Load:
    """Corners of the load, in seconds and channels' worth, over so many keys; epochs begin every `trigger` s.

    `watched` are spans of seconds whose processor time is told.
    """

    corners: tuple[tuple[float, float], ...]
    watched: tuple[tuple[float, float], ...] = ()
    keys: int = 20_000
    trigger: float = 0.5

    @property
    def seconds(self) -> float:
        """The length of the whole."""
        return self.corners[-1][0]

    @property
    def most(self) -> float:
        """The highest load."""
        return max(worth for _, worth in self.corners)

    def at(self, second: float) -> float:
        """The load at a second.

        >>> Load(((0, 1), (10, 5))).at(5)
        3.0
        """
        seconds, worth = zip(*self.corners, strict=True)
        return float(np.interp(second, seconds, worth))


@dataclass(frozen=True)
class UnderLoad:
    """What a run showed: its epochs, processor time in all and where it was watched, rows, exactness.

    `missing` are results that a batch has and the run has not, or the other way round.
    """

    start: float
    seen: tuple[Seen, ...]
    cpu_s: float
    watched_cpu_s: float
    rows: int
    missing: int
    outcomes: tuple[Outcome, ...]

    def channels_at(self, second: float) -> int:
        """The number of channels at a second of the load."""
        past = [each.channels for each in self.seen if each.at <= self.start + second]
        return past[-1] if past else self.seen[0].channels


@dataclass(frozen=True)
class _Ranks(ps.Processor):
    """For each row how many rows of its key there are so far, and the sum of their values.

    What it gives does not depend on where epochs begin.
    """

    row_s: float = ROW_S

    def step(self, block: ps.Block) -> ps.Outcome:
        values = block.rows["value"].to_numpy()
        time.sleep(self.row_s * len(values))
        found = pa.table(
            {
                "n": _running(np.ones(len(values), np.int64), block, "n"),
                "total": _running(values, block, "total"),
            }
        )
        return ps.Outcome(found, np.arange(len(values)), found.take(pa.array(block.last)))


def _running(values: NDArray[np.int64], block: ps.Block, name: str) -> NDArray[np.int64]:
    """The sums within each key, on top of what its state has."""
    sums = np.cumsum(values)
    before = sums[block.first] - values[block.first] - block.state[name].fill_null(0).to_numpy()
    found: NDArray[np.int64] = sums - before[block.groups]
    return found


@dataclass
class _Watch:
    """Sees every epoch; asks for nothing."""

    seen: list[Seen] = field(default_factory=list)

    def __call__(self, seen: ps.Observation) -> list[ps.Rescale]:
        stage = seen.stages[0]
        size = sum(each.state_bytes for each in stage.channels)
        moved = 0 if stage.moved is None else stage.moved.bytes
        self.seen.append(Seen(time.time(), seen.epoch, len(stage.channels), size, moved))
        return []


def run_under_load(
    spark: SparkSession, load: Load, options: Mapping[str, Any], seed: int, epochs: int = 0
) -> UnderLoad:
    """Run to the end of the load, or, with `epochs`, until there were so many of them."""
    points = tuple((at, worth / ROW_S) for at, worth in load.corners)
    ramps = Ramps(time.time_ns() // 1000 + SECOND_US, points)
    tuples, watch = Tuples(ramps, load.keys, seed), _Watch()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as scratch:
        out = Path(scratch, "out")
        with Usage(0.5) as usage:
            run = _query(tuples).start(
                ps.parquet(str(out)),
                checkpoint=str(Path(scratch, "state")),
                session=spark,
                trigger=timedelta(seconds=load.trigger),
                policy=watch,
                **options,
            )
            try:
                watched = _see_through(run, ramps, load, watch, epochs)
            finally:
                run.stop()
        rows = run.counts.rows
        return UnderLoad(
            ramps.start_us / SECOND_US,
            tuple(watch.seen),
            usage.cpu_s,
            watched,
            rows,
            _missing(tuples.table(0, rows), out),
            outcomes_of(run),
        )


def _query(tuples: Tuples) -> ps.Relation:
    rows = ps.stream("rows", DDL, time="time", delay="0 seconds", source=RampSource(tuples))
    return rows.group_by("key").process(_Ranks(), state=_STATE, result=_STATE, order="arrival")


def _see_through(run: ps.Run, ramps: Ramps, load: Load, watch: _Watch, epochs: int) -> float:
    """Wait for the end; the processor time of the spans that are watched."""
    spent = 0.0
    for first, last in load.watched:
        _wait(run, ramps, first)
        with Usage(0.5) as usage:
            _wait(run, ramps, last)
        spent += usage.cpu_s
    if epochs:
        wait_until(lambda: not run.running or len(watch.seen) >= epochs, math.inf)
    else:
        _wait(run, ramps, ramps.seconds)
        wait_until(lambda: not run.running or run.counts.rows >= ramps.total, _LATEST_S)
    return spent


def _wait(run: ps.Run, ramps: Ramps, second: float) -> None:
    """Until a second of the load, or the end of the run."""
    end = ramps.start_us / SECOND_US + second
    wait_until(lambda: not run.running or time.time() >= end, math.inf)


def _missing(tuples: pa.Table, out: Path) -> int:
    """Results of a batch over the tuples that the run has not, and results that only the run has."""
    sql = """
        WITH batch AS (
            SELECT time, key, row_number() OVER w AS n, CAST(sum(value) OVER w AS BIGINT) AS total
            FROM tuples WINDOW w AS (PARTITION BY key ORDER BY time ROWS UNBOUNDED PRECEDING)
        ), ran AS (SELECT time, key, n, total FROM read_parquet(?))
        SELECT (SELECT count(*) FROM (FROM batch EXCEPT ALL FROM ran))
             + (SELECT count(*) FROM (FROM ran EXCEPT ALL FROM batch))
    """
    with duckdb.connect() as connection:
        connection.register("tuples", tuples)
        found = connection.execute(sql, [str(out / "**" / "*.parquet")]).fetchone()
    assert found is not None, "an aggregate without groups gives one row"
    return int(found[0])
