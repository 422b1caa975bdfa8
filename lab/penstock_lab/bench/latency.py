"""`penstock bench latency`: how long after a window could close its result is delivered, at a steady rate.

A window can close when the first tuple at or after its end (plus the stream's delay, here none) has arrived.
Tuples arrive by the wall clock, so that moment is the window's end itself, and the latency of a window is
the wall clock at its last delivery minus its end. Epochs run back to back, and at the pace of the default.
"""

import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import penstock as ps
from penstock_lab.bench.data import DDL, SECOND_US
from penstock_lab.bench.memory import Usage
from penstock_lab.bench.session import measuring_session
from penstock_lab.bench.steady import Rate, SteadySource
from penstock_lab.bench.waiting import wait_until
from penstock_lab.reports import Check, Report, Value, report_here, say

WARM_UP_S = 10
WARM_UP_EPOCHS = 5
CEILING_S = 1.5
CASES: Mapping[str, tuple[Mapping[str, str], Mapping[int, float]]] = {
    "back to back": ({"trigger": "0 seconds"}, {50: 0.25, 99: 0.45}),
    "default pace": ({}, {99: CEILING_S}),
}
"""The options of each case, and how many seconds these percentiles may be at 20,000 rows/s."""


@dataclass
class Deliveries:
    """When each window's last result came, filled by the sink; `clock` gives nanoseconds since 1970."""

    clock: Callable[[], int] = time.time_ns
    _at_us: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, table: pa.Table, epoch: int) -> None:  # noqa: ARG002  the sink's signature
        """Note the wall clock for all windows of a table."""
        moment = self.clock() // 1000
        ends = pc.unique(table.column("window_end").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))
        with self._lock:
            self._at_us.update((end, moment) for end in ends.to_pylist())

    def ends(self) -> list[int]:
        """The ends of all windows that came, in microseconds."""
        with self._lock:
            return sorted(self._at_us)

    def latencies(self, first_us: int, last_us: int) -> list[float]:
        """Seconds from the end of a window to its delivery, for windows that end in [first, last]."""
        with self._lock:
            return [(at - end) / SECOND_US for end, at in self._at_us.items() if first_us <= end <= last_us]


def latency(
    *, rows_per_s: int = 20_000, seconds: int = 60, keys: int = 1000, seed: int = 7, quick: bool = False
) -> Report:
    """Measure 10 s windows sliding by 1 s for `seconds` seconds (`quick`: 15); the first 10 are warm-up."""
    seconds = min(seconds, 15) if quick else seconds
    if seconds <= WARM_UP_S:
        raise ValueError(f"seconds is {seconds}, but the first {WARM_UP_S} are warm-up: give more than that")
    spark = measuring_session(quick=quick)
    _warm_up(spark, Rate(time.time_ns() // 1000, rows_per_s, keys, seed))
    rows: list[dict[str, Value]] = []
    checks: list[Check] = []
    for case, (options, ceilings) in CASES.items():
        say(f"{rows_per_s:,} rows/s for {seconds} s, {case}")
        rate = Rate(time.time_ns() // 1000, rows_per_s, keys, seed)
        row, measured = _case(spark, rate, seconds, options)
        rows.append({"engine": "penstock", "case": f"10 s by 1 s, {keys:,} keys, {case}", **row})
        checks += _checks(case, measured, seconds - WARM_UP_S, ceilings)
    return report_here("latency", seed, rows, checks)


def _case(
    spark: SparkSession, rate: Rate, seconds: int, options: Mapping[str, str]
) -> tuple[dict[str, Value], list[float]]:
    deliveries, end_us = Deliveries(), rate.start_us + seconds * SECOND_US
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch, Usage() as usage:
        given: dict[str, Any] = {"checkpoint": scratch, "session": spark, **options}
        run = _query(rate).start(sink=ps.each(deliveries.record), **given)
        # Windows that end with the measurement are not delivered yet: wait twice the ceiling for them.
        _sleep_until(end_us + int(2 * CEILING_S * SECOND_US))
        epoch_s = [epoch.seconds for epoch in run.progress]
        run.stop()
    measured = deliveries.latencies(rate.start_us + WARM_UP_S * SECOND_US, end_us)
    return {
        "rows_per_s": rate.rows_per_s,
        "windows": len(measured),
        **_percentiles(measured),
        "epochs": len(epoch_s),
        "epoch_s": round(fmean(epoch_s), 3) if epoch_s else None,
        "cpu_s": round(usage.cpu_s, 2),
        "wall_s": seconds,
        "peak_mb": round(usage.peak_mb),
    }, measured


def _query(rate: Rate) -> ps.Relation:
    return (
        ps.stream("reports", schema=DDL, time="time", delay="0 seconds", source=SteadySource(rate))
        .group_by("key")
        .window("10 seconds", slide="1 second")
        .agg(reports=ps.count(), mean=ps.avg("value"), top=ps.max("value"))
    )


def _warm_up(spark: SparkSession, rate: Rate) -> None:
    """Run a few epochs first, so that starting the JVM and the Python workers is not measured."""
    say("warm-up")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        run = _query(rate).start(sink=ps.each(Deliveries().record), checkpoint=scratch, session=spark)
        wait_until(lambda: not run.running or len(run.progress) >= WARM_UP_EPOCHS, math.inf)
        run.stop()


def _sleep_until(moment_us: int) -> None:
    time.sleep(max(0.0, moment_us / SECOND_US - time.time()))


def _percentiles(measured: Sequence[float]) -> dict[str, Value]:
    if not measured:
        return {"p50_s": None, "p99_s": None, "max_s": None}
    p50, p99, top = (round(float(value), 3) for value in np.percentile(measured, [50, 99, 100]))
    return {"p50_s": p50, "p99_s": p99, "max_s": top}


def _checks(
    case: str, measured: Sequence[float], expected: int, ceilings: Mapping[int, float]
) -> Iterator[Check]:
    # Without this check, windows that never came would improve the others.
    name = f"windows delivered, {case}"
    yield Check(name, len(measured), "a window ends every second", floor=expected)
    for percentile, ceiling in ceilings.items():
        found = round(float(np.percentile(measured, percentile)), 3) if measured else None
        yield Check(f"p{percentile} latency, s, {case}", found, "goal at 20,000 rows/s", ceiling=ceiling)
