"""Equi-join and left outer join within a minute against Spark's stream-stream join on the same files.

Every engine first runs once over the same few files, which warms the JVM and the Python workers; then the
engines take turns, and what each round delivered must agree. At the end of the input Spark keeps back the
unmatched rows of the last minute, which Penstock delivers; they are counted but not compared.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from penstock_lab.bench import results
from penstock_lab.bench.cost import Cost, cost_of
from penstock_lab.bench.data import START_US, first_files, write_files
from penstock_lab.bench.join_engines import (
    DELAY_S,
    JOIN_ENGINES,
    PENSTOCK,
    SPARK,
    WITHIN_S,
    JoinEngine,
    JoinJob,
)
from penstock_lab.bench.results import Delivered
from penstock_lab.bench.timing import Measured, Rounds
from penstock_lab.reports import Check, Value, say
from penstock_lab.workloads import CallRecords

__all__ = ["JoinSize", "joins"]

FLOOR = 5
WARM_UP_FILES = 2
_CASES: tuple[tuple[Literal["inner", "left"], str], ...] = (
    ("inner", "equi-join within a minute"),
    ("left", "left outer join within a minute"),
)


@dataclass(frozen=True)
class JoinSize:
    """`calls` in each of two networks over `seconds`, a file for each `calls_per_file`.

    Callers are drawn by Zipf(0.5) from a fifth as many phones, which gives each call about one partner.
    """

    calls: int
    seconds: int
    calls_per_file: int
    files_per_epoch: int

    def write(self, folder: Path, seed: int) -> tuple[Path, Path]:
        """The files of both networks."""
        north, south = (
            CallRecords(self.calls, self.seconds, max(10, self.calls // 5), skew=0.5, seed=2 * seed + side)
            for side in (0, 1)
        )
        return (
            write_files(folder / "north", lambda: north.table, self.calls_per_file),
            write_files(folder / "south", lambda: south.table, self.calls_per_file),
        )

    @property
    def settled_us(self) -> int:
        """Rows before this moment are delivered by Spark too, whether matched or not."""
        return START_US + (self.seconds - DELAY_S - WITHIN_S - 1) * 1_000_000


@dataclass(frozen=True)
class Round:
    """One timed run of one engine and what it delivered."""

    cost: Cost
    rows_out: int
    compared: Delivered


def joins(spark: SparkSession, size: JoinSize, rounds: Rounds, seed: int) -> Measured:
    """Both joins on all engines."""
    rows: list[dict[str, Value]] = []
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        say(f"joins: two networks with {size.calls:,} calls each over {size.seconds:,} s")
        networks = size.write(Path(scratch), seed)
        for how, case in _CASES:
            found = _take_turns(spark, size, networks, how, case, rounds)
            rows += [_row(case, engine, size, found[engine.name]) for engine in JOIN_ENGINES]
            checks += [_ratio(case, found, rounds.unjudged), *_agreement(case, found)]
    return Measured(tuple(rows), tuple(checks))


def _take_turns(  # noqa: PLR0913, PLR0917 -- a case in full
    spark: SparkSession,
    size: JoinSize,
    networks: tuple[Path, Path],
    how: Literal["inner", "left"],
    case: str,
    rounds: Rounds,
) -> dict[str, list[Round]]:
    few = tuple(first_files(each, WARM_UP_FILES) for each in networks)
    until = None if how == "inner" else size.settled_us
    found: dict[str, list[Round]] = {engine.name: [] for engine in JOIN_ENGINES}
    for turn in rounds.turns:
        for engine in JOIN_ENGINES:
            north, south = networks if turn else few
            with tempfile.TemporaryDirectory(dir=north.parent) as place:
                job = JoinJob(north, south, Path(place), how, size.files_per_epoch if turn else 1)
                cost = cost_of(spark, lambda engine=engine, job=job: engine.run(spark, job))  # type: ignore[misc]
                if not turn:
                    continue
                compared = results.pairs_delivered(job.output, until)
                found[engine.name].append(Round(cost, results.count(job.output), compared))
            say(f"{case}: {engine.name}, round {turn}: {2 * size.calls / cost.wall_s:,.0f} rows/s")
    return found


def _best(rounds: list[Round]) -> Round:
    return min(rounds, key=lambda each: each.cost.wall_s)


def _row(case: str, engine: JoinEngine, size: JoinSize, rounds: list[Round]) -> dict[str, Value]:
    best = _best(rounds)
    return {
        "engine": engine.name,
        "case": case,
        "rows_per_s": round(2 * size.calls / best.cost.wall_s),
        "cpu_s": round(best.cost.cpu_s, 2),
        "wall_s": round(best.cost.wall_s, 3),
        "peak_mb": round(max(each.cost.peak_mb for each in rounds)),
        "rows": 2 * size.calls,
        "rows_out": best.rows_out,
    }


def _ratio(case: str, rounds: dict[str, list[Round]], unjudged: str) -> Check:
    ours, theirs = (_best(rounds[engine.name]).cost.wall_s for engine in (PENSTOCK, SPARK))
    return Check(
        f"ratio to Spark, {case}",
        round(theirs / ours, 2),
        "the floor promised against Spark's stream-stream join on the same machine",
        floor=FLOOR,
        unjudged=unjudged,
    )


def _agreement(case: str, rounds: dict[str, list[Round]]) -> list[Check]:
    """Every round of the other engines against the first round of Spark."""
    source = "every engine gives the same pairs over the same rows"
    expected = rounds[SPARK.name][0].compared
    checks = [Check(f"rows compared, {case}", expected.rows, source, floor=1)]
    for engine in JOIN_ENGINES:
        if engine is SPARK:
            continue
        got = [each.compared for each in rounds[engine.name]]
        versus = f"{engine.name} and {SPARK.name}, {case}"
        most = max(abs(each.rows - expected.rows) for each in got)
        same = float(all(each.checksum == expected.checksum for each in got))
        checks += [
            Check(f"difference in rows, {versus}", most, source, ceiling=0),
            Check(f"same checksum, {versus}", same, source, floor=1),
        ]
    return checks
