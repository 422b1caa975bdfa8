"""`penstock bench pacing`: what a latency bound costs in processor time, and whether it holds.

The same windows at several rates: with epochs back to back, without a bound, and with bounds. Tuples arrive
by the wall clock, so the latency of a window is the wall clock at its last delivery minus its end; beside it
is what the run itself measures.
"""

import math
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

import penstock as ps
from penstock_lab.bench.data import DDL
from penstock_lab.bench.latency import Deliveries
from penstock_lab.bench.memory import Usage
from penstock_lab.bench.session import measuring_session
from penstock_lab.bench.steady import Rate, SteadySource
from penstock_lab.bench.waiting import wait_until
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["pacing"]

RATES = (1_000, 20_000, 200_000)
BOUNDS = (0.5, 2.0, 10.0)
HELD = 0.99
"""The share of windows that have to keep a bound that epochs back to back keep as well."""

MOST_CORES = 0.25
"""The most cores that 20,000 rows a second with a bound of 10 s may take: a small fraction of one."""

_WARM_UP_EPOCHS = 4
_WARM_UP_S = 5.0


@dataclass(frozen=True)
class Case:
    """A rate with a way to pace it: a bound in seconds, 0 for epochs back to back, None for no bound."""

    rows_per_s: int
    bound: float | None

    @property
    def name(self) -> str:
        """The pace in words."""
        if self.bound is None:
            return "no bound"
        return f"bound {self.bound:g} s" if self.bound else "back to back"

    @property
    def options(self) -> dict[str, Any]:
        """The options of the run."""
        if self.bound is None:
            return {}
        if not self.bound:
            return {"trigger": "0 seconds"}
        return {"qos": ps.QoS(latency=timedelta(seconds=self.bound))}


def pacing(*, seconds: int = 40, keys: int = 1000, seed: int = 7, quick: bool = False) -> Report:
    """Measure each case for `seconds` seconds after its warm-up; `quick`: one rate, one bound, 8 s."""
    rates, bounds = (RATES[1:2], BOUNDS[1:2]) if quick else (RATES, BOUNDS)
    seconds = min(seconds, 8) if quick else seconds
    spark = measuring_session(quick=quick)
    cases = [Case(rate, bound) for rate in rates for bound in (0.0, None, *bounds)]
    rows = [_measured(spark, each, seconds, keys, seed) for each in cases]
    return report_here("pacing", seed, rows, _checks(cases, rows, quick=quick))


def _measured(spark: SparkSession, case: Case, seconds: int, keys: int, seed: int) -> dict[str, Value]:
    say(f"{case.rows_per_s:,} rows/s, {case.name}")
    deliveries = Deliveries()
    rate = Rate(time.time_ns() // 1000, case.rows_per_s, keys, seed)
    # The first epochs are slow, and no measure of what is to come.
    settled = _WARM_UP_S + 3 * (case.bound or 0)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        run = _query(rate).start(
            sink=ps.each(deliveries.record), checkpoint=scratch, session=spark, **case.options
        )
        try:
            since = time.monotonic() + settled
            wait_until(
                lambda: (
                    not run.running or (time.monotonic() > since and len(run.progress) >= _WARM_UP_EPOCHS)
                ),
                math.inf,
            )
            first = time.time_ns() // 1000
            epochs = len(run.progress)
            with Usage() as usage:
                time.sleep(seconds)
            last = time.time_ns() // 1000
            # Windows that end with the measurement are still to come.
            time.sleep(2 * (case.bound or 1.0))
            done = [each for each in run.progress if each.epoch >= epochs]
        finally:
            run.stop()
    found = deliveries.latencies(first, last)
    goal = case.bound or math.inf
    return {
        "rows_per_s": case.rows_per_s,
        "case": case.name,
        "cpu_s_a_minute": round(usage.cpu_s * 60 / seconds, 1),
        "cores": round(usage.cpu_s / seconds, 2),
        "epochs_a_minute": round(len(done) * 60 / (seconds + 2 * (case.bound or 1.0)), 1),
        "windows": len(found),
        "p50_s": _quantile(found, 50),
        "p99_s": _quantile(found, 99),
        "within": round(float(np.mean(np.array(found) <= goal)), 4) if found and case.bound else None,
        "own_p50_s": _quantile([each.latency.p50 for each in done if each.latency], 50),
        "own_p99_s": _quantile([each.latency.most for each in done if each.latency], 99),
    }


def _query(rate: Rate) -> ps.Relation:
    return (
        ps.stream("reports", schema=DDL, time="time", delay="0 seconds", source=SteadySource(rate))
        .group_by("key")
        .window("10 seconds", slide="1 second")
        .agg(reports=ps.count(), mean=ps.avg("value"), top=ps.max("value"))
    )


def _quantile(found: list[float], part: float) -> float | None:
    return round(float(np.percentile(found, part)), 3) if found else None


def _checks(cases: list[Case], rows: list[dict[str, Value]], *, quick: bool) -> list[Check]:
    by_case = dict(zip(cases, rows, strict=True))
    checks = []
    for case, row in by_case.items():
        fastest = by_case[Case(case.rows_per_s, 0.0)]["p99_s"]
        possible = isinstance(fastest, float) and case.bound is not None and fastest <= case.bound
        if case.bound and possible:
            within = row["within"]
            checks.append(
                Check(
                    f"share within {case.bound:g} s at {case.rows_per_s:,} rows/s",
                    within if isinstance(within, float) else 0.0,
                    floor=HELD,
                    source="a bound that epochs back to back keep is kept",
                )
            )
    long = by_case.get(Case(20_000, 10.0))
    if long is not None and not quick:
        checks.append(
            Check(
                "cores at 20,000 rows/s with a bound of 10 s",
                float(long["cores"] or 0),
                ceiling=MOST_CORES,
                source="a small fraction of one",
            )
        )
    return checks
