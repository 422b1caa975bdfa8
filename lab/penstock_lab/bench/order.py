"""`penstock bench order`: what a bound on disorder costs in delay, and what the merge costs ([004] §3.2).

One of eight channels takes ten times as long as the others, as on a slow node: it sleeps, so the number of
cores does not matter. Every epoch closes the same number of windows over all keys. The delay of a result is
counted from the first result of its epoch; `delay_share` is the mean delay over the time from the first to
the last, which does not depend on how fast this machine is today.

Then mergers alone, without Spark: files of all channels, read, cut into windows and merged.
"""

import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import penstock as ps
from penstock.connect import EpochId, Output, ResultFile, ResultFormat
from penstock.operators.kernel import WindowEnds
from penstock.routing import realised_disorder
from penstock.runtime.merger import Merger
from penstock.state.storage import Location
from penstock_lab.bench.session import slotted_session
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["FULL", "QUICK", "OrderSize", "merge_costs", "order"]

BOUNDS = (0, 10, 100, math.inf)
CHANNELS = 8
SLOWER = 10
SMALL_MARGIN = 1.5
"""The most that an ordered merge may cost, in costs of an unordered one."""

_DDL = "time timestamp, key bigint"
_US = 1_000_000
_START = 1_700_000_000
_SCHEMA = pa.schema([("window_start", pa.timestamp("us", "UTC")), ("key", pa.int64()), ("n", pa.int64())])


@dataclass(frozen=True)
class OrderSize:
    """How much is run: epochs, the first of which is not measured, windows of each, a channel's seconds."""

    epochs: int = 5
    windows: int = 20
    keys: int = 256
    seconds: float = 0.2
    merged_windows: int = 400
    repeats: int = 9


FULL = OrderSize()
QUICK = OrderSize(epochs=3, keys=64, seconds=0.1, merged_windows=100, repeats=3)


def order(size: OrderSize = FULL, *, seed: int = 7, quick: bool = False) -> Report:
    """Measure delays and disorder on Spark, then the cost of merging."""
    spark = slotted_session(CHANNELS, quick=quick)
    delayed = [_delayed(spark, size, bound) for bound in BOUNDS]
    say("mergers alone")
    merged = merge_costs(size, seed)
    return report_here("order", seed, [*delayed, *merged], _checks(delayed, merged))


def paced(seconds: float, batch: Any) -> Any:
    """Take so long for the windows of a channel, and ten times as long where key 0 is."""
    keys = batch["key"].to_numpy(zero_copy_only=False)
    time.sleep(seconds * (SLOWER if (keys == 0).any() else 1))
    return batch.select(["key", "n"])


@dataclass
class _Given:
    """When each batch came, and of which window it is; a function for `ps.each`."""

    batches: dict[int, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, table: pa.Table, number: int) -> None:
        start = table["window_start"][0].value
        self.batches[number].append((time.perf_counter(), start))


def _delayed(spark: SparkSession, size: OrderSize, bound: float) -> dict[str, Value]:
    say(f"disorder {bound:g}")
    given = _Given()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        run = _query(size).start(
            ps.each(given),
            Path(scratch) / "state",
            session=spark,
            channels=CHANNELS,
            disorder=bound,
            control="off",
        )
        run.wait(live=False)
    epochs = [sorted(each) for number, each in sorted(given.batches.items()) if number % 2 == 0][1:]
    delays, shares, disorders = [], [], []
    for each in epochs:
        times = np.array([at for at, _ in each])
        delays.append(times - times[0])
        shares.append((times - times[0]) / (times[-1] - times[0]))
        disorders.append(realised_disorder([start for _, start in each]))
    return {
        "case": _named(bound),
        "batches": sum(map(len, epochs)),
        "mean_delay_s": round(float(np.concatenate(delays).mean()), 3),
        "delay_share": round(float(np.concatenate(shares).mean()), 4),
        "disorder": max(disorders),
        "told_disorder": run.disorder,
    }


def _query(size: OrderSize) -> ps.Relation:
    rows = []
    for epoch in range(size.epochs):
        # The last window of an epoch closes with the first tuple of the next.
        seconds = np.repeat(_START + epoch * size.windows + np.arange(size.windows), size.keys)
        keys = np.tile(np.arange(size.keys), size.windows)
        times = pa.array(seconds * _US, pa.timestamp("us", tz="UTC"))
        rows.append(pa.table({"time": times, "key": keys}))
    return (
        ps.stream("rows", _DDL, time="time", source=ps.rows(rows))
        .group_by("key")
        .window("1 second")
        .agg(n=ps.count())
        .map(partial(paced, size.seconds), "key bigint, n bigint")
    )


class _Counting:
    """A receiver that counts batches."""

    def __init__(self, disorder: int | None) -> None:
        self.disorder = disorder
        self.batches = 0

    def give(self, epoch: EpochId, rows: pa.Table) -> None:
        del epoch, rows
        self.batches += 1


def merge_costs(size: OrderSize, seed: int) -> list[dict[str, Value]]:
    """Processor time of a merger for each batch, for each bound; channels finish one after another."""
    rng = np.random.default_rng(seed)
    starts = np.arange(size.merged_windows) * _US + _START * _US
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        target = ResultFormat(Location.of(scratch), "arrow")
        files = [_file(target, starts, size.keys // CHANNELS) for _ in range(CHANNELS)]
        arrivals = rng.permutation(CHANNELS).tolist()
        best: dict[float, float] = dict.fromkeys(BOUNDS, math.inf)
        batches = 0
        for _ in range(size.repeats):
            # By turns, so that a disturbance of the machine hits all of them alike.
            for bound in BOUNDS:
                counting = _Counting(None if bound == math.inf else int(bound))
                cost = _merged(target, starts, files, arrivals, counting)
                best[bound] = min(best[bound], cost / counting.batches)
                batches = counting.batches
    return [
        {"case": f"merge, {_named(bound)}", "batches": batches, "us_a_batch": round(cost * _US, 2)}
        for bound, cost in best.items()
    ]


def _file(target: ResultFormat, starts: Any, keys: int) -> Output:
    file = ResultFile(target, _SCHEMA)
    windows = pa.array(np.repeat(starts, keys), pa.int64()).cast(_SCHEMA.field(0).type)
    values = np.tile(np.arange(keys), len(starts))
    file.write(pa.table([windows, values, values], schema=_SCHEMA))
    file.close()
    receipt = file.receipt()
    assert receipt is not None
    return receipt


def _merged(
    target: ResultFormat, starts: Any, files: Sequence[Output], arrivals: Sequence[int], to: _Counting
) -> float:
    began = time.process_time()
    merger = Merger(EpochId(0), target, _SCHEMA, ("window_start",), [to])
    merger.begin(WindowEnds((starts + _US).tolist(), _US), len(files))
    for channel in arrivals:
        merger.channel(channel, [files[channel]])
    merger.end(list(enumerate(files)), windowed=True)
    return time.process_time() - began


def _named(bound: float) -> str:
    return "k = ∞" if bound == math.inf else f"k = {bound:g}"


def _checks(delayed: Sequence[dict[str, Value]], merged: Sequence[dict[str, Value]]) -> list[Check]:
    checks = []
    for bound, row in zip(BOUNDS, delayed, strict=True):
        if bound < math.inf:
            checks.append(
                Check(
                    f"realised disorder, {row['case']}",
                    _number(row["disorder"]),
                    ceiling=bound,
                    source="[004] §2.5: results out of order are within k of each other",
                )
            )
            checks.append(
                Check(
                    f"disorder that the run tells, {row['case']}",
                    _number(row["told_disorder"]),
                    ceiling=bound,
                    source="Run.disorder",
                )
            )
    for less, more in pairwise(delayed):
        checks.append(
            Check(
                f"delay, {more['case']} over {less['case']}",
                round(_number(more["delay_share"]) / _number(less["delay_share"]), 3),
                ceiling=0.99,
                source="one channel slowed 10 times: the delay falls with k",
            )
        )
    costs = [_number(row["us_a_batch"]) for row in merged]
    checks.append(
        Check(
            "cost of the ordered merge over the unordered",
            round(costs[0] / costs[-1], 2),
            ceiling=SMALL_MARGIN,
            source="[004] §3.2: with ordered delivery, cost increases by a small margin",
        )
    )
    return checks


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)
