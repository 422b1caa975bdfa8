"""The Cartesian product of two streams of calls, in comparisons a second for one core ([002] §IV.B.4).

A comparison is a pair of tuples at most a minute apart for which the condition is decided. The kernel runs
the channels of a grid one after another on one core, epoch after epoch, every tuple copied to the channels
of its row or column, and is measured in processor time, which a busy machine does not change; the whole run
does the same on Spark from files to files, and its rate by the clock is divided by the cores of the machine.
"""

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import penstock as ps
from penstock.operators.joins.spec import Condition
from penstock_lab.bench import results
from penstock_lab.bench.call_pairs import CallPairs
from penstock_lab.bench.cost import cost_of
from penstock_lab.bench.cross_kernel import CHANNELS, kernel
from penstock_lab.bench.data import first_files
from penstock_lab.bench.timing import Measured, Rounds, best_seconds
from penstock_lab.reports import Check, Value, cores, say
from penstock_lab.workloads.calls import CALL_COLUMNS

__all__ = ["CONDITIONS", "ComparisonSize", "comparisons"]

FLOOR = 300  # million comparisons a second and core
_SOURCE = "[002] Fig. 7d: 100 million comparisons a second and processor, three times that promised"
_OVERLAP = "l.start < r.stop AND r.start < l.stop"
_NEAR = "sqrt((l.x - r.x) * (l.x - r.x) + (l.y - r.y) * (l.y - r.y)) < 1000"
CONDITIONS: Mapping[str, Condition] = {
    "two calls overlap in time": Condition(_OVERLAP, ("start", "stop"), ("start", "stop")),
    "two calls less than a kilometre apart": Condition(_NEAR, ("x", "y"), ("x", "y")),
}

Row = dict[str, Value]
Files = tuple[Path, Path]


@dataclass(frozen=True)
class ComparisonSize:
    """Calls on each side for the kernel and for the whole run, both over `seconds` in `epochs`."""

    kernel_calls: int
    run_calls: int
    seconds: int = 300
    epochs: int = 5


def comparisons(spark: SparkSession, size: ComparisonSize, rounds: Rounds, seed: int) -> Measured:
    """Both conditions in the kernel and through a whole run."""
    rows: list[Row] = []
    checks: list[Check] = []
    small = CallPairs(size.kernel_calls, size.seconds, seed)
    large = CallPairs(size.run_calls, size.seconds, seed)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        files = large.write(Path(scratch), -(-size.run_calls // size.epochs))
        for name, condition in CONDITIONS.items():
            in_kernel = _kernel_row(name, condition, small, size.epochs, rounds.repeats)
            in_run = _run_row(spark, name, condition, large, files, rounds)
            rows += [in_kernel, in_run]
            checks += [
                _check(f"kernel, {name}", in_kernel, rounds.unjudged),
                _check(f"whole run, {name}", in_run, rounds.unjudged),
            ]
    return Measured(tuple(rows), tuple(checks))


def _kernel_row(name: str, condition: Condition, pairs: CallPairs, epochs: int, repeats: int) -> Row:
    found: list[int] = []
    seconds = best_seconds(
        lambda: found.append(kernel(condition, pairs, epochs)), repeats, clock=time.process_time
    )
    return _row(f"kernel, {name}", pairs, seconds, found[-1], used=1)


def _run_row(  # noqa: PLR0913, PLR0917 -- a case in full
    spark: SparkSession, name: str, condition: Condition, pairs: CallPairs, files: Files, rounds: Rounds
) -> Row:
    best, matches = float("inf"), 0
    few = first_files(files[0], 1), first_files(files[1], 1)
    for turn in rounds.turns:
        with tempfile.TemporaryDirectory(dir=files[0].parent) as place:
            # The first turn warms the JVM and the Python workers.
            cost = cost_of(spark, partial(_run, spark, condition.sql, files if turn else few, Path(place)))
            if turn:
                best, matches = min(best, cost.wall_s), results.count(Path(place, "out"))
    return _row(f"whole run, {name}", pairs, best, matches, used=cores())


def _run(spark: SparkSession, condition: str, files: Files, place: Path) -> None:
    left, right = (
        ps.stream(
            name,
            CALL_COLUMNS,
            time="time",
            delay="1 second",
            source=ps.files(str(folder), files_per_epoch=1),
        )
        for name, folder in zip(("one", "other"), files, strict=True)
    )
    found = left.cross(right, condition, within="1 minute", suffixes=("_one", "_other"))
    sink = ps.parquet(str(place / "out"))
    found.select("caller_one", "caller_other").start(
        sink, checkpoint=str(place / "state"), session=spark, channels=CHANNELS
    ).wait()


def _row(case: str, pairs: CallPairs, seconds: float, matches: int, *, used: int) -> Row:
    rate = pairs.comparisons / seconds / used / 1e6
    say(f"Cartesian product, {case}: {rate:,.0f} million comparisons/s for each of {used} cores")
    return {
        "engine": "penstock",
        "case": f"Cartesian product, {case}",
        "mcomparisons_per_s": round(rate, 1),
        "wall_s": round(seconds, 3),
        "rows": 2 * pairs.calls,
        "rows_out": matches,
        "comparisons": pairs.comparisons,
    }


def _check(name: str, row: Row, unjudged: str) -> Check:
    rate = row["mcomparisons_per_s"]
    assert isinstance(rate, float)
    return Check(
        f"million comparisons a second and core, {name}", rate, _SOURCE, floor=FLOOR, unjudged=unjudged
    )
