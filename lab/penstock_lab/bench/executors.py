"""`penstock bench executors`: executors that follow a load, against all of them all the time.

A standalone cluster on this machine with executors of one core each. Every tuple takes a function a fixed
time of waiting, as a call to another system does, so that an executor's worth of load is the same on any
machine.
The load rises to nearly four executors' worth and falls again. The same load is run twice: with all executors
there, and with a policy that starts from one.
"""

import itertools
import math
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import penstock as ps
from penstock.runtime.spark.executors import Executors
from penstock_lab.bench.cluster import standalone_cluster
from penstock_lab.bench.data import SECOND_US
from penstock_lab.bench.latency import Deliveries
from penstock_lab.bench.ramps import DDL, RampFiles, Ramps
from penstock_lab.bench.waiting import wait_until
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["executors"]

MOST = 4
COST_S = 0.004
"""The seconds that a tuple takes: an executor's worth is 250 tuples a second."""

LONGEST_LATE_S = 30.0
"""The most seconds of the whole in which results may be later than the bound."""

MOST_CORES = 0.8
"""The most core seconds of the policy, as a part of those of all executors all the time."""

_KEYS = 100
# Seconds, and executors' worth.
_LOAD = ((0, 0.5), (40, 0.5), (100, 3.2), (150, 3.2), (200, 0.5), (240, 0.5))
_QUICK = ((0, 0.5), (10, 0.5), (20, 1.4), (35, 1.4), (36, 0.5), (40, 0.5))


@dataclass
class Counted:
    """What a sink got: when each window came, and how many tuples all of them hold."""

    deliveries: Deliveries = field(default_factory=Deliveries)
    tuples: int = 0

    def record(self, table: pa.Table, epoch: int) -> None:
        """Take the results of an epoch."""
        self.deliveries.record(table, epoch)
        self.tuples += pc.sum(table.column("n")).as_py() or 0


class CoreSeconds:
    """How many executors there are over time, looked at twice a second."""

    def __init__(self, executors: Executors) -> None:
        self._executors = executors
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="core-seconds", daemon=True)
        self.seen: list[tuple[float, int]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def between(self, first: float, last: float) -> float:
        """The sum of executors times seconds."""
        inside = [(at, count) for at, count in self.seen if first <= at <= last]
        return sum(count * (after - at) for (at, count), (after, _) in itertools.pairwise(inside))

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            self.seen.append((time.time(), self._executors.count()))


def executors(*, policy: str = "penstock", bound: float = 8.0, seed: int = 7, quick: bool = False) -> Report:
    """Run the load with all executors and with the policy; `quick`: 40 s, up to two executors."""
    most, load = (2, _QUICK) if quick else (MOST, _LOAD)
    rows: list[dict[str, Value]] = []
    with standalone_cluster(most) as spark:
        nodes = Executors(spark.sparkContext)
        say("warm-up")
        _run(spark, nodes, ((0, 0.5), (15, 0.5)), {"scaling": "off"}, bound)
        for name in ("all the time", policy):
            say(f"{name}: {load[-1][0]} s of load")
            start = most if name == "all the time" else 1
            nodes.request(start)
            wait_until(partial(_there, nodes, start), 60)
            options = {"scaling": "off"} if name == "all the time" else {"scaling": policy}
            measured = _run(spark, nodes, load, {**options, "executors": (1, most)}, bound)
            rows.append({"case": name, **measured})
    return report_here("executors", seed, rows, _checks(rows, bound, quick=quick))


def _there(executors: Executors, wanted: int) -> bool:
    return executors.count() == wanted


def _run(
    spark: SparkSession,
    executors: Executors,
    load: tuple[tuple[float, float], ...],
    options: dict[str, Any],
    bound: float,
) -> dict[str, Value]:
    points = tuple((at, worth / COST_S) for at, worth in load)
    ramps = Ramps(time.time_ns() // 1000 + SECOND_US, points)
    found = Counted()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch,
        CoreSeconds(executors) as cores,
        RampFiles(ramps, Path(scratch, "in"), _KEYS),
    ):
        run = _query(Path(scratch, "in")).start(
            sink=ps.each(found.record),
            checkpoint=Path(scratch, "state"),
            session=spark,
            channels=MOST,
            qos=ps.QoS(latency=timedelta(seconds=bound)),
            **options,
        )
        try:
            end = ramps.start_us / SECOND_US + ramps.seconds
            wait_until(lambda: not run.running or time.time() > end, math.inf)
            wait_until(lambda: not run.running or run.counts.rows >= ramps.total, 10 * bound)
            taken, changes = run.counts.rows, list(run.decisions)
            own = run.latency
        finally:
            run.stop()
        first = ramps.start_us / SECOND_US
        spent = cores.between(first, first + ramps.seconds)
        seen = [count for _, count in cores.seen]
    for each in changes:
        say(f"  {each}")
    # The first seconds hold the start of the run.
    late = np.array(found.deliveries.latencies(ramps.start_us + 5 * SECOND_US, int(end * SECOND_US)))
    open_ = ramps.arrived(_last_window(found, ramps))
    return {
        "tuples": ramps.total,
        "taken": taken,
        "lost": open_ - found.tuples,
        "core_s": round(spent, 1),
        "executors": f"{min(seen)} to {max(seen)}",
        "changes": sum(each.partitioning == "executors" for each in changes),
        "windows": len(late),
        "p50_s": round(float(np.percentile(late, 50)), 2) if len(late) else None,
        "p99_s": round(float(np.percentile(late, 99)), 2) if len(late) else None,
        "late_s": float((late > bound).sum()),
        "own_p99_s": None if own is None else round(own.p99, 2),
    }


def _query(folder: Path) -> ps.Relation:
    source = ps.files(folder, live=True)
    stream = ps.stream("calls", schema=DDL, time="time", delay="0 seconds", source=source)
    return stream.map(_waits, "key bigint").group_by("key").window("1 second").agg(n=ps.count())


def _waits(rows: pa.RecordBatch) -> pa.RecordBatch:
    """As long as a call to another system for each tuple."""
    time.sleep(rows.num_rows * COST_S)
    return rows.select(["key"])


def _last_window(found: Counted, ramps: Ramps) -> int:
    """The end of the last window that was delivered: all tuples before it have to be in the results."""
    ends = found.deliveries.ends()
    return max(ends) - 1 if ends else ramps.start_us


def _checks(rows: list[dict[str, Any]], bound: float, *, quick: bool) -> list[Check]:
    always, ours = rows
    checks = [
        Check(f"tuples lost, {each['case']}", float(each["lost"]), ceiling=0.0, source="exactly once")
        for each in rows
    ]
    if not quick:
        checks += [
            Check(
                f"seconds with results later than {bound:g} s",
                ours["late_s"],
                ceiling=LONGEST_LATE_S,
                source="the bound holds while executors come and go",
            ),
            Check(
                "core seconds, as a part of all executors all the time",
                round(ours["core_s"] / always["core_s"], 3),
                ceiling=MOST_CORES,
                source="executors follow the load",
            ),
            Check("changes", float(ours["changes"]), floor=2.0, source="out and in"),
        ]
    return checks
