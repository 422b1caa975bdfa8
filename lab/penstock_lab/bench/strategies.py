"""The three ways to cut a query into stages, on the query of [002] Fig. 8, from files to files.

All have 16 channels. The plans by subquery and by operator divide them among their stages; the plan in one
cluster runs every stage on all of them. The results of all three must agree.
"""

import tempfile
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import penstock as ps
from penstock.query import STRATEGIES, Strategy
from penstock_lab.bench import results
from penstock_lab.bench.cost import Cost, cost_of
from penstock_lab.bench.data import first_files
from penstock_lab.bench.figure_8 import COLUMNS, Integers, figure_8
from penstock_lab.bench.timing import Measured, Rounds
from penstock_lab.reports import Check, Value, say

__all__ = ["strategies"]

CHANNELS = 16
WARM_UP_FILES = 2
_SOURCE = "[002] Fig. 7f: subquery 2.5 times operator and 5 times query on 60 processors"


def strategies(spark: SparkSession, data: Integers, rounds: Rounds) -> Measured:
    """All strategies in turn, each as the best of several rounds."""
    say(f"strategies: two streams with {data.rows:,} integers each, {CHANNELS} channels")
    best: dict[str, Cost] = {}
    delivered: dict[str, results.Delivered] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        files = data.write(Path(scratch))
        few = first_files(files[0], WARM_UP_FILES), first_files(files[1], WARM_UP_FILES)
        for turn in rounds.turns:
            for strategy in _in_turn(turn):
                with tempfile.TemporaryDirectory(dir=scratch) as place:
                    cost = cost_of(spark, partial(_run, spark, strategy, files if turn else few, Path(place)))
                    if not turn:
                        continue
                    delivered[strategy] = results.sums_delivered(Path(place, "out"))
                best[strategy] = min(best.get(strategy, cost), cost, key=lambda each: each.wall_s)
                say(f"{strategy}, round {turn}: {2 * data.rows / cost.wall_s:,.0f} rows/s")
    rows = tuple(_row(each, 2 * data.rows, best[each], delivered[each].rows) for each in STRATEGIES)
    return Measured(rows, (*_ratios(best, rounds.unjudged), *_agreement(delivered)))


def _in_turn(turn: int) -> tuple[Strategy, ...]:
    """A different one first in every round, so that none profits from what a round leaves in the JVM."""
    first = turn % len(STRATEGIES)
    return STRATEGIES[first:] + STRATEGIES[:first]


def _run(spark: SparkSession, strategy: Strategy, files: tuple[Path, Path], place: Path) -> None:
    one, other = (
        ps.stream(name, COLUMNS, time="time", source=ps.files(str(each), files_per_epoch=1))
        for name, each in zip(("one", "other"), files, strict=True)
    )
    figure_8(one, other).start(
        ps.parquet(str(place / "out")),
        checkpoint=str(place / "state"),
        session=spark,
        channels=CHANNELS,
        strategy=strategy,
    ).wait()


def _row(strategy: str, rows: int, cost: Cost, rows_out: int) -> dict[str, Value]:
    return {
        "engine": "penstock",
        "case": f"eight operators, strategy {strategy}",
        "rows_per_s": round(rows / cost.wall_s),
        "cpu_s": round(cost.cpu_s, 2),
        "wall_s": round(cost.wall_s, 3),
        "peak_mb": round(cost.peak_mb),
        "rows": rows,
        "rows_out": rows_out,
    }


def _ratios(best: dict[str, Cost], unjudged: str) -> list[Check]:
    first, *others = STRATEGIES
    return [
        Check(
            f"strategy {first} to {other}, rows a second",
            round(best[other].wall_s / best[first].wall_s, 2),
            _SOURCE,
            floor=1,
            unjudged=unjudged,
        )
        for other in others
    ]


def _agreement(delivered: dict[str, results.Delivered]) -> list[Check]:
    first, *others = STRATEGIES
    source = "a parallel plan changes nothing in the results"
    same = [
        Check(
            f"same results, {first} and {other}", float(delivered[other] == delivered[first]), source, floor=1
        )
        for other in others
    ]
    return [Check("results compared, strategies", delivered[first].rows, source, floor=1), *same]
