"""`penstock bench operators`: joins, Cartesian product, aggregate, map, the three strategies, skew.

Joins are measured against Spark's stream-stream join on the same files; the rest stands alone, with
the figures of [002] §IV as floors where it gives any.
"""

from dataclasses import dataclass, replace

from penstock_lab.bench.comparisons import ComparisonSize, comparisons
from penstock_lab.bench.figure_8 import Integers
from penstock_lab.bench.joins import JoinSize, joins
from penstock_lab.bench.session import measuring_session
from penstock_lab.bench.single_operators import OperatorSize, single_operators
from penstock_lab.bench.skew import skew
from penstock_lab.bench.strategies import strategies
from penstock_lab.bench.timing import Rounds
from penstock_lab.reports import Report, report_here

__all__ = ["FULL", "QUICK", "Sizes", "operators"]


@dataclass(frozen=True)
class Sizes:
    """How much of everything is measured."""

    join: JoinSize
    comparison: ComparisonSize
    single: OperatorSize
    integers: Integers
    skewed_tuples: int
    rounds: Rounds


FULL = Sizes(
    JoinSize(calls=2_000_000, seconds=2_000, calls_per_file=100_000, files_per_epoch=5),
    ComparisonSize(kernel_calls=50_000, run_calls=150_000),
    OperatorSize(calls=4_000_000, seconds=2_000, calls_per_file=200_000, files_per_epoch=5),
    Integers(rows=1_000_000, seconds=100, files=10, seed=7),
    skewed_tuples=200_000,
    rounds=Rounds(3),
)
QUICK = Sizes(
    JoinSize(calls=10_000, seconds=200, calls_per_file=5000, files_per_epoch=1),
    ComparisonSize(kernel_calls=10_000, run_calls=10_000, epochs=1),
    OperatorSize(calls=50_000, seconds=200, calls_per_file=25_000, files_per_epoch=2),
    Integers(rows=5000, seconds=20, files=1, seed=7),
    skewed_tuples=50_000,
    # Without a warm-up: it would cost as much as the measurement, and no time is judged here.
    rounds=Rounds(
        1,
        warm=False,
        unjudged="one cold round over a few thousand rows: start-up and the fixed cost of an epoch "
        "outweigh the rows; the bound is for the full size",
    ),
)


def operators(
    *, repeats: int | None = None, seed: int = 7, quick: bool = False, sizes: Sizes = FULL
) -> Report:
    """Measure everything; `quick`: less of it, one round."""
    size = QUICK if quick else sizes
    rounds = replace(size.rounds, repeats=repeats) if repeats else size.rounds
    spark = measuring_session(quick=quick)
    parts = (
        joins(spark, size.join, rounds, seed),
        comparisons(spark, size.comparison, rounds, seed),
        single_operators(spark, size.single, rounds, seed),
        strategies(spark, replace(size.integers, seed=seed), rounds),
        skew(seed, size.skewed_tuples),
    )
    rows = [row for part in parts for row in part.rows]
    return report_here("operators", seed, rows, [check for part in parts for check in part.checks])
