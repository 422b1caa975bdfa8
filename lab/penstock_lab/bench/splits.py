"""`penstock bench splits`: how much more a tuple costs with the splits of [000] than with plain routing.

The split stage is the route as a native expression, the repartition by it, and a sink that takes the rows and
does nothing. Both ways take turns over the same rows in memory; their cost is the processor time of their
tasks, and the overhead is the median over the rounds of the one divided by the other. The paper measured
17 % for frequency-aware and 4 % for rate-aware partitioning ([000] §6.4.4) with the upkeep of the
statistics; here the statistics are not part of the stage.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from penstock.runtime.spark.routes import plain_pane_column, rate_pane_column, route_column, sub_key_column
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark users know

from penstock.routing import Hashes, PaneHistory, PlainPanes, Ring, plan_panes, split_hot_keys, split_panes
from penstock_lab.bench.session import measuring_session
from penstock_lab.bench.split_data import PANE, SplitData
from penstock_lab.bench.task_time import TaskTime, task_time
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["splits"]

CHANNELS = 16
HOT_KEYS = 200
QUICK_ROWS = 200_000
QUICK_REPEATS = 3
QUICK_UNJUDGED = (
    f"the median of {QUICK_REPEATS} rounds over {QUICK_ROWS:,} rows is uncertain by more than the ceiling"
)
CHANNEL = "channel"
STAGE, ALONE = "split stage", "expression alone"


@dataclass(frozen=True)
class Split:
    """A split with plain routing of the same kind, and the most that it may cost on top."""

    name: str
    plain: Column
    aware: Column
    ceiling: float


def splits(*, rows: int = 10_000_000, repeats: int = 5, seed: int = 7, quick: bool = False) -> Report:
    """Measure both splits; `quick`: fewer rows and rounds."""
    if quick:
        rows, repeats = min(rows, QUICK_ROWS), min(repeats, QUICK_REPEATS)
    data = SplitData(rows, seed)
    spark = measuring_session(quick=quick)
    table: list[Mapping[str, Value]] = []
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        say(f"{data.rows:,} rows")
        frame = _in_memory(spark, data.write(Path(scratch)))
        for split in (_by_key(spark, data), _by_pane(data)):
            for measure, job in ((STAGE, _stage), (ALONE, _alone)):
                plain, aware = _take_turns(spark, frame, split, job, repeats)
                table += _rows(split, measure, data.rows, plain, aware)
                if measure == STAGE:
                    checks.append(_check(split, plain, aware, QUICK_UNJUDGED if quick else ""))
        frame.unpersist()
    return report_here("splits", seed, table, checks)


def _by_key(spark: SparkSession, data: SplitData) -> Split:
    ring = Ring(CHANNELS)
    hottest = data.frequencies[:HOT_KEYS]
    router = split_hot_keys(_hashes(spark, HOT_KEYS), hottest, ring)
    hashes = F.xxhash64("key")
    aware = sub_key_column(hashes, F.monotonically_increasing_id(), router)
    return Split("frequency-aware keys", route_column(hashes, ring.arrays), aware, ceiling=0.17)


def _by_pane(data: SplitData) -> Split:
    shares, _ = split_panes(PaneHistory.start(CHANNELS), data.sizes)
    panes = F.col("pane")
    aware = rate_pane_column(panes, F.monotonically_increasing_id(), plan_panes(0, shares))
    return Split("rate-aware panes", plain_pane_column(panes, PlainPanes(CHANNELS)), aware, ceiling=0.04)


def _hashes(spark: SparkSession, keys: int) -> Hashes:
    """Spark's hashes of the keys 0, 1, 2 and so on."""
    rows = spark.range(keys).select(F.xxhash64("id").alias("hash")).collect()
    return np.array([row["hash"] for row in rows], np.int64).view(np.uint64)


def _in_memory(spark: SparkSession, folder: Path) -> DataFrame:
    """The rows with the id of their pane, cached, so that reading costs as little as it can."""
    frame = spark.read.parquet(str(folder)).withColumn("pane", F.expr(f"time div {PANE}L"))
    frame = frame.persist()
    frame.count()
    return frame


def _stage(frame: DataFrame, route: Column) -> None:
    routed = frame.withColumn(CHANNEL, route).repartitionById(CHANNELS, F.col(CHANNEL))
    routed.write.format("noop").mode("overwrite").save()


def _alone(frame: DataFrame, route: Column) -> None:
    frame.select(route.alias(CHANNEL)).agg(F.max(CHANNEL)).collect()


def _take_turns(
    spark: SparkSession,
    frame: DataFrame,
    split: Split,
    job: Callable[[DataFrame, Column], None],
    repeats: int,
) -> tuple[list[TaskTime], list[TaskTime]]:
    """Both ways in turn, in alternating order; two rounds before them warm the compiler of the JVM."""
    taken: tuple[list[TaskTime], list[TaskTime]] = ([], [])
    for turn in range(-2, repeats):
        order = (0, 1) if turn % 2 else (1, 0)
        for way in order:
            column = (split.plain, split.aware)[way]
            cost = task_time(spark, partial(job, frame, column))
            if turn >= 0:
                taken[way].append(cost)
    return taken


def _ratios(plain: list[TaskTime], aware: list[TaskTime]) -> list[float]:
    return [more.cpu_s / less.cpu_s - 1 for less, more in zip(plain, aware, strict=True)]


def _rows(
    split: Split, measure: str, rows: int, plain: list[TaskTime], aware: list[TaskTime]
) -> list[dict[str, Value]]:
    ratios = _ratios(plain, aware)
    say(f"{split.name}, {measure}: {median(ratios):+.1%}, from {min(ratios):+.1%} to {max(ratios):+.1%}")
    over = {"overhead": median(ratios), "lowest": min(ratios), "highest": max(ratios)}
    return [
        {
            "split": split.name,
            "measure": measure,
            "route": name,
            "cpu_ns": round(median(each.cpu_s for each in costs) / rows * 1e9, 1),
            "wall_ns": round(median(each.wall_s for each in costs) / rows * 1e9, 1),
            **{each: round(ratio, 4) if costs is aware else None for each, ratio in over.items()},
            "rounds": len(costs),
        }
        for name, costs in (("plain", plain), ("aware", aware))
    ]


def _check(split: Split, plain: list[TaskTime], aware: list[TaskTime], unjudged: str) -> Check:
    return Check(
        f"{split.name}: cost of a tuple above plain routing",
        round(median(_ratios(plain, aware)), 4),
        "[000] §6.4.4",
        ceiling=split.ceiling,
        unjudged=unjudged,
    )
