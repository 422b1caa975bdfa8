"""`penstock bench executors`: executors that follow a load, by each policy, against all of them all the time.

A standalone cluster on this machine with executors of one core each, whose Python has a part of a core: so
several run at once on few cores. Every tuple burns processor time in a function, as much as makes 250 of them
a second an executor's worth. Two loads: *hill* rises within a minute from half an executor's worth to 3.2 and
falls again; in *fan* the input is constant, and a stage in the middle gives five tuples for each instead of
one.
"""

import itertools
import json
import math
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from penstock_lab.bench.ramp_gates import RampGates
from penstock_lab.bench.ramps import DDL, FAN, RampFiles, Ramps
from penstock_lab.bench.waiting import wait_until
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["POLICIES", "SHARE", "executors"]

MOST = 4
COST_S = 0.004
"""The seconds of an executor that a tuple takes: an executor's worth is 250 tuples a second."""

SHARE = 0.3
"""The part of a core that an executor has; four of them leave room for the driver on two cores."""

STATIC, OURS = "static", "penstock"
POLICIES = (STATIC, OURS, "autoscale", "qos", "incremental")

MOST_LATE = 10.0
"""The most windows that may be later than the bound, in per cent."""

MOST_CORES = 0.8
"""The most core seconds of the policy, as a part of those of all executors all the time."""

_KEYS = 100
_SETTLE_S = 5.0  # the first seconds hold the start of the run


@dataclass(frozen=True)
class Case:
    """A load in executors' worth at seconds, for up to `most` executors; `fanned` is when copies begin.

    With `gates` clients push it to gates, and declare between which rates it moves.
    """

    name: str
    load: tuple[tuple[float, float], ...]
    most: int = MOST
    fanned: float = math.inf
    gates: bool = False

    def worth(self, seconds: float) -> float:
        """The executors' worth of load after so many seconds."""
        at, worth = zip(*self.load, strict=True)
        return float(np.interp(seconds, at, worth))

    def expected(self, ramps: Ramps, until_us: int) -> int:
        """The tuples in windows that end before an instant."""
        every = ramps.arrivals(0, ramps.arrived(until_us))
        many = (every - ramps.start_us) / SECOND_US >= self.fanned
        return len(every) + (FAN - 1) * int(many.sum())


_HILL = Case("hill", ((0, 0.5), (30, 0.5), (90, 3.2), (120, 3.2), (150, 0.5), (180, 0.5)))
_GATES = replace(_HILL, name="hill through gates", gates=True)
_FAN = Case("fan", ((0, 0.4), (90, 0.4)), fanned=40.0)
_QUICK = Case("hill", ((0, 0.5), (6, 0.5), (12, 1.4), (22, 1.4), (23, 0.3), (30, 0.3)), most=2)


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


def executors(  # noqa: PLR0913 -- each is one option of the command
    *,
    policies: Sequence[str] = POLICIES,
    bound: float = 8.0,
    share: float = SHARE,
    seed: int = 7,
    quick: bool = False,
    resume: Path | None = None,
) -> Report:
    """Run each load with each policy; `quick`: 30 s, two executors, all of them and our own policy.

    Rows that are measured are kept in the file `resume`, and those that it has are not measured again.
    """
    known = _known(resume)
    wanted = list(_wanted(policies, quick=quick))
    most = max(case.most for case, _ in wanted)
    missing = [each for each in wanted if _key(*each) not in known]
    if missing:
        with standalone_cluster(most, share=share) as spark:
            nodes = Executors(spark.sparkContext)
            say("warm-up")
            _run(spark, nodes, Case("warm-up", ((0, 0.5), (6, 0.5)), most), STATIC, bound, share)
            for case, policy in missing:
                say(f"{case.name}, {policy}: {case.load[-1][0]:g} s of load")
                start = case.most if policy == STATIC else 1
                nodes.request(start)
                wait_until(partial(_there, nodes, start), 60)
                row = {"case": case.name, "policy": policy, **_run(spark, nodes, case, policy, bound, share)}
                known[_key(case, policy)] = row
                if resume is not None:
                    with resume.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    rows = [known[_key(*each)] for each in wanted]
    return report_here("executors", seed, rows, _checks(rows, quick=quick))


def _wanted(policies: Sequence[str], *, quick: bool) -> Iterator[tuple[Case, str]]:
    if quick:
        yield from ((_QUICK, each) for each in (STATIC, OURS))
        return
    yield from ((_HILL, each) for each in policies)
    yield _GATES, OURS
    yield from ((_FAN, each) for each in policies if each != STATIC)


def _key(case: Case, policy: str) -> tuple[str, str]:
    return case.name, policy


def _known(resume: Path | None) -> dict[tuple[str, str], dict[str, Value]]:
    if resume is None or not resume.exists():
        return {}
    rows = [json.loads(each) for each in resume.read_text().splitlines()]
    return {(each["case"], each["policy"]): each for each in rows}


def _there(executors: Executors, wanted: int) -> bool:
    return executors.count() == wanted


def _run(  # noqa: PLR0913, PLR0917 -- a cluster, a load, and what follows it
    spark: SparkSession, executors: Executors, case: Case, policy: str, bound: float, share: float
) -> dict[str, Value]:
    points = tuple((at, worth / COST_S) for at, worth in case.load)
    ramps = Ramps(time.time_ns() // 1000 + SECOND_US, points)
    found = Counted()
    grown: list[tuple[float, int]] = []
    told: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch,
        CoreSeconds(executors) as cores,
        RampGates(ramps, Path(scratch, "in"), _KEYS)
        if case.gates
        else RampFiles(ramps, Path(scratch, "in"), _KEYS, case.fanned) as source,
    ):
        live = (
            ps.gates(source.address)
            if isinstance(source, RampGates)
            else ps.files(Path(scratch, "in"), live=True)
        )
        run = _query(live, COST_S * share, case).start(
            sink=ps.each(found.record),
            checkpoint=Path(scratch, "state"),
            session=spark,
            qos=ps.QoS(latency=timedelta(seconds=bound)),
            scaling={"policy": "off" if policy == STATIC else policy},
            executors=(1, case.most),
        )
        try:
            end = ramps.start_us / SECOND_US + ramps.seconds

            def over() -> bool:
                if not told and any("gates forecast" in each.reason for each in run.decisions):
                    told.append(time.time() - ramps.start_us / SECOND_US)
                return not run.running or time.time() > end

            wait_until(over, math.inf)
            wait_until(lambda: not run.running or run.counts.rows >= ramps.total, 10 * bound)
            taken, changes = run.counts.rows, list(run.decisions)
            own = run.latency
        finally:
            run.stop()
        first = ramps.start_us / SECOND_US
        spent = cores.between(first, first + ramps.seconds)
        seen = [count for _, count in cores.seen]
        grown = [(at - first, count) for at, count in cores.seen if at - first > case.fanned]
    for each in changes:
        say(f"  {each}")
    begin = ramps.start_us + int(_SETTLE_S * SECOND_US)
    late = np.array(found.deliveries.latencies(begin, int(end * SECOND_US)))
    row: dict[str, Value] = {
        "tuples": ramps.total,
        "taken": taken,
        "lost": case.expected(ramps, _last_window(found, ramps)) - found.tuples,
        "windows": len(late),
        "late_percent": round(100 * float((late > bound).mean()), 1) if len(late) else None,
        "p50_s": round(float(np.percentile(late, 50)), 2) if len(late) else None,
        "p99_s": round(float(np.percentile(late, 99)), 2) if len(late) else None,
        "core_s": round(spent, 1),
        "executors": f"{min(seen)} to {max(seen)}",
        "changes": sum(each.partitioning == "executors" for each in changes),
        "own_p99_s": None if own is None else round(own.p99, 2),
    }
    if case.gates:
        row["worth_when_foretold"] = round(case.worth(told[0]), 2) if told else None
    if case.fanned < math.inf:
        after = next((at for at, count in grown if count > 1), math.inf)
        row["grown_after_s"] = round(after - case.fanned, 1) if after < math.inf else None
    return row


def _query(source: ps.Source, seconds: float, case: Case) -> ps.Relation:
    stream = ps.stream("calls", schema=DDL, time="time", delay="0 seconds", source=source)
    burning = partial(_burns, seconds)
    if case.fanned == math.inf:
        # What reads from gates takes many rows at once, and would burn for all of them in one task.
        burnt = stream.map(burning, "key bigint", channels=case.gates)
        return burnt.group_by("key").window("1 second").agg(n=ps.count())
    passed = stream.map(_passes, "key bigint, copies bigint", channels=True)
    more = (passed.where(f"copies >= {each}") for each in range(2, FAN + 1))
    return (
        passed.union(*more)
        .map(burning, "key bigint", channels=True)
        .group_by("key")
        .window("1 second")
        .agg(n=ps.count())
    )


def _passes(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.select(["key", "copies"])


def _burns(seconds: float, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Keep the processor busy for so long for each tuple."""
    end = time.thread_time() + rows.num_rows * seconds
    while time.thread_time() < end:
        math.sqrt(2.0)
    return rows.select(["key"])


def _last_window(found: Counted, ramps: Ramps) -> int:
    """The end of the last window that was delivered: all tuples before it have to be in the results."""
    ends = found.deliveries.ends()
    return max(ends) - 1 if ends else ramps.start_us


def _checks(rows: Sequence[Mapping[str, Any]], *, quick: bool) -> list[Check]:
    checks = [
        Check(
            f"tuples lost, {each['case']}, {each['policy']}",
            float(each["lost"]),
            ceiling=0.0,
            source="exactly once",
        )
        for each in rows
    ]
    found = {(each["case"], each["policy"]): each for each in rows}
    ours, always = found.get(("hill", OURS)), found.get(("hill", STATIC))
    if quick or ours is None or always is None:
        return checks
    others = [each["late_percent"] for (case, name), each in found.items()
              if case == "hill" and name not in {OURS, STATIC}]  # fmt: skip
    checks += [
        Check(
            "hill: windows later than the bound, %",
            ours["late_percent"],
            ceiling=MOST_LATE,
            source="the bound holds while executors come and go",
        ),
        Check(
            "hill: core seconds, as a part of all executors all the time",
            round(ours["core_s"] / always["core_s"], 3),
            ceiling=MOST_CORES,
            source="executors follow the load",
        ),
        Check("hill: changes", float(ours["changes"]), floor=2.0, source="out and in"),
    ]
    checks += _gates_checks(found.get((_GATES.name, OURS)), always["core_s"])
    if others:
        checks.append(
            Check(
                "hill: late windows above the best other policy, points",
                round(ours["late_percent"] - min(others), 1),
                ceiling=0.0,
                source="our policy is the default",
            )
        )
    fan = found.get(("fan", OURS))
    if fan is not None:
        checks.append(
            Check(
                "fan: seconds from more tuples in the middle to another executor",
                math.inf if fan["grown_after_s"] is None else fan["grown_after_s"],
                ceiling=20.0,
                source="before the backlog exceeds an epoch, and the start of an executor",
            )
        )
    return checks


def _gates_checks(row: Mapping[str, Any] | None, always: float) -> list[Check]:
    """What is asked of a run that its gates tell what to expect."""
    if row is None:
        return []
    foretold = math.inf if row["worth_when_foretold"] is None else row["worth_when_foretold"]
    ceilings = {
        "load at a decision by their forecast, executors' worth": (foretold, 1.0),
        "windows later than the bound, %": (row["late_percent"], 5.0),
        "core seconds, as a part of all executors all the time": (
            round(row["core_s"] / always, 3),
            MOST_CORES,
        ),
    }
    source = "gates say what comes"
    return [
        Check(f"through gates: {name}", value, source, ceiling=most)
        for name, (value, most) in ceilings.items()
    ]
