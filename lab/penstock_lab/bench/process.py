"""`penstock bench process`: keyed stateful functions against Spark's two ways to run them in Python.

Every engine first runs once over a few files, which warms the JVM and the Python workers; then the engines
take turns, and what each round delivered must agree. In order of arrival every engine gives the same rows for
the same epochs; the other forms of Penstock must come to the same last row of every key.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from penstock_lab.bench import results
from penstock_lab.bench.cost import Cost, cost_of
from penstock_lab.bench.data import DataSet, first_files
from penstock_lab.bench.process_engines import (
    APPLY,
    PENSTOCK,
    PROCESS_ENGINES,
    TRANSFORM,
    ProcessEngine,
    ProcessJob,
)
from penstock_lab.bench.results import Delivered
from penstock_lab.bench.session import measuring_session
from penstock_lab.bench.timing import Rounds
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["FULL", "QUICK", "ProcessSize", "process"]

FLOOR = 5
WARM_UP_FILES = 1
_CASE = "running statistics of keys"


@dataclass(frozen=True)
class ProcessSize:
    """Rows over keys drawn by Zipf(1.0), in `epochs` of two files each, and how often each engine runs."""

    rows: int
    keys: int
    epochs: int
    rounds: Rounds

    def data(self, seed: int) -> DataSet:
        """The rows, a thousand for each second of event time."""
        per_file = -(-self.rows // (2 * self.epochs))
        return DataSet(self.rows, max(1, self.rows // 1000), self.keys, seed, rows_per_file=per_file)


FULL = ProcessSize(rows=2_000_000, keys=200_000, epochs=4, rounds=Rounds(1))
# Spark takes 1.5 to 3 ms of processor time for each key of an epoch, Penstock a fixed time for an epoch.
QUICK = ProcessSize(
    rows=20_000,
    keys=2000,
    epochs=2,
    rounds=Rounds(
        1,
        warm=False,
        unjudged="one cold round over epochs of 10,000 rows, whose fixed cost outweighs the rows; the floor "
        "is for epochs of 500,000",
    ),
)


@dataclass(frozen=True)
class Round:
    """One timed run of one engine and what it delivered: everything, and the last row of every key."""

    cost: Cost
    every: Delivered
    last: Delivered


def process(
    *, repeats: int | None = None, seed: int = 7, quick: bool = False, size: ProcessSize = FULL
) -> Report:
    """Measure every engine; `quick`: on less data."""
    size = QUICK if quick else size
    rounds = replace(size.rounds, repeats=repeats) if repeats else size.rounds
    spark = measuring_session(quick=quick)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        say(f"{_CASE}: {size.rows:,} rows over {size.keys:,} keys in {size.epochs} epochs")
        folder = size.data(seed).write(Path(scratch))
        found = _take_turns(spark, folder, size.rows, rounds)
    rows = [_row(engine, size, found[engine.name]) for engine in PROCESS_ENGINES]
    return report_here("process", seed, rows, [*_ratios(found, rounds.unjudged), *_agreement(found)])


def _take_turns(spark: SparkSession, folder: Path, rows: int, rounds: Rounds) -> dict[str, list[Round]]:
    few = first_files(folder, WARM_UP_FILES)
    found: dict[str, list[Round]] = {engine.name: [] for engine in PROCESS_ENGINES}
    for turn in rounds.turns:
        for engine in PROCESS_ENGINES:
            with tempfile.TemporaryDirectory(dir=folder.parent) as place:
                job = ProcessJob(folder if turn else few, Path(place), files_per_epoch=2)
                cost = cost_of(spark, lambda engine=engine, job=job: engine.run(spark, job))  # type: ignore[misc]
                if not turn:
                    continue
                every, last = results.statistics_delivered(job.output), results.last_statistics(job.output)
                found[engine.name].append(Round(cost, every, last))
            say(f"{engine.name}, round {turn}: {rows / cost.wall_s:,.0f} rows/s")
    return found


def _best(rounds: list[Round]) -> Round:
    return min(rounds, key=lambda each: each.cost.wall_s)


def _row(engine: ProcessEngine, size: ProcessSize, rounds: list[Round]) -> dict[str, Value]:
    best = _best(rounds)
    return {
        "engine": engine.name,
        "case": _CASE,
        "rows_per_s": round(size.rows / best.cost.wall_s),
        "cpu_s": round(best.cost.cpu_s, 2),
        "wall_s": round(best.cost.wall_s, 3),
        "peak_mb": round(max(each.cost.peak_mb for each in rounds)),
        "rows": size.rows,
        "rows_out": best.every.rows,
    }


def _ratios(rounds: dict[str, list[Round]], unjudged: str) -> list[Check]:
    ours = _best(rounds[PENSTOCK.name]).cost.wall_s
    return [
        Check(
            f"ratio to {engine.name}",
            round(_best(rounds[engine.name]).cost.wall_s / ours, 2),
            "the floor promised against Spark on the same logic, data and machine",
            floor=FLOOR,
            unjudged=unjudged,
        )
        for engine in (TRANSFORM, APPLY)
    ]


def _agreement(rounds: dict[str, list[Round]]) -> list[Check]:
    """Every round of every engine against the first one of Spark."""
    source = "every engine comes to the same statistics over the same rows"
    expected = rounds[APPLY.name][0]
    checks = [Check("rows compared", expected.every.rows, source, floor=1)]
    for engine in PROCESS_ENGINES:
        got = rounds[engine.name]
        same = all(each.last == expected.last for each in got)
        if engine in {PENSTOCK, TRANSFORM}:
            same = same and all(each.every == expected.every for each in got)
        checks.append(Check(f"same results, {engine.name}", float(same), source, floor=1))
    return checks
