"""`penstock bench inlet`: rows a second from gates into a query: filled logs, live, and a backlog.

The query counts and averages over 60 s by 10 s for each of 64 streams. Rows go through everything that a run
has: clients push to a gate, which syncs them before it acknowledges; tasks fetch them over Flight; windows
are delivered to Parquet files and every epoch is committed. Live, the clients take part of the same cores.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import penstock as ps
from penstock_lab.bench import push_servers
from penstock_lab.bench.memory import Usage
from penstock_lab.bench.pushing_clients import Clients, Load
from penstock_lab.bench.session import measuring_session
from penstock_lab.bench.waiting import wait_until
from penstock_lab.reports import Check, Report, Value, report_here, say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FULL", "QUICK", "Size", "inlet"]

STREAMS: Final = 64
CLIENTS: Final = 4
BATCH_ROWS: Final = 10_000
SPACING_US: Final = 1_000
"""Event time between two rows of a stream. A batch is 10 s, so a stream that comes first is never so far
ahead of the last one that a delay of two minutes would not cover it."""
SOURCE: Final = "goal"
_STUCK_S: Final = 1800


@dataclass(frozen=True)
class Size:
    """How many rows each part has; `unjudged` says why its goals are not applied, empty if they are."""

    filled: int
    live: int
    backlog: int
    repeats: int
    unjudged: str = ""


FULL: Final = Size(filled=20_000_000, live=20_000_000, backlog=50_000_000, repeats=3)
QUICK: Final = Size(
    filled=1_280_000, live=1_280_000, backlog=1_920_000, repeats=1, unjudged="seconds, and one round"
)


@dataclass(frozen=True)
class _Taken:
    """How long a run took for its rows, with what processor time and memory; the gate and clients count."""

    rows: int
    wall_s: float
    cpu_s: float
    peak_mb: float

    def row(self, case: str) -> dict[str, Value]:
        return {
            "engine": "penstock",
            "case": case,
            "rows": self.rows,
            "rows_per_s": round(self.rows / self.wall_s),
            "wall_s": round(self.wall_s, 2),
            "cpu_s": round(self.cpu_s, 1),
            "peak_mb": round(self.peak_mb),
        }


def inlet(*, repeats: int | None = None, seed: int = 7, quick: bool = False, size: Size = FULL) -> Report:
    """Measure all three parts; `quick`: fewer rows, one round."""
    size = QUICK if quick else size
    size = replace(size, repeats=repeats or size.repeats)
    session = measuring_session()
    rows: list[dict[str, Value]] = []
    with Clients(CLIENTS) as clients:
        say("a run that warms everything")
        _filled(session, clients, max(size.filled // 10, STREAMS * BATCH_ROWS), seed)
        found: dict[str, list[_Taken]] = {"filled logs": [], "live": []}
        for turn in range(size.repeats):
            for case, measure, count in (("filled logs", _filled, size.filled), ("live", _live, size.live)):
                say(f"{case}, {count:,} rows, round {turn + 1}")
                found[case].append(measure(session, clients, count, seed + turn))
                rows.append(found[case][-1].row(case))
        say(f"a backlog of {size.backlog:,} rows")
        backlog = _filled(session, clients, size.backlog, seed)
        rows.append(backlog.row("backlog"))
    rates = {case: median(each.rows / each.wall_s for each in taken) for case, taken in found.items()}
    most = max(each.peak_mb for each in found["filled logs"])
    checks = [
        _check("rows/s from filled logs", rates["filled logs"], 2.5e6, size),
        _check("rows/s live", rates["live"], 1.2e6, size),
        Check(
            "memory of the backlog over that of the filled logs",
            round(backlog.peak_mb / most, 2),
            SOURCE,
            ceiling=1.5,
            unjudged=size.unjudged,
        ),
    ]
    return report_here("inlet", seed, rows, checks)


def _check(name: str, value: float, floor: float, size: Size) -> Check:
    return Check(name, round(value), SOURCE, floor=floor, unjudged=size.unjudged)


def _loads(address: str, rows: int, seed: int) -> list[Load]:
    """Batches in turn over the streams of each client, with times that go on."""
    streams = [f"reports/vehicle-{each}" for each in range(STREAMS)]
    return [
        Load(
            engine="gate",
            address=address,
            streams=tuple(streams[client::CLIENTS]),
            batches=-(-rows // (BATCH_ROWS * CLIENTS)),
            batch_rows=BATCH_ROWS,
            window=8,
            seed=seed + client,
            spacing_us=SPACING_US,
        )
        for client in range(CLIENTS)
    ]


def _filled(session: "SparkSession", clients: Clients, rows: int, seed: int) -> _Taken:
    """Rows that are all there when the run starts."""
    with push_servers.gate() as address:
        given = clients.push(_loads(address, rows, seed)).rows
        with Usage() as usage:
            began = time.perf_counter()
            with _running(session, address) as run:
                _wait_for(run, given)
            wall = time.perf_counter() - began
        return _Taken(given, wall, usage.cpu_s, usage.peak_mb)


def _live(session: "SparkSession", clients: Clients, rows: int, seed: int) -> _Taken:
    """Rows that come while the run goes on, as fast as clients are acknowledged."""
    with push_servers.gate() as address, _running(session, address) as run, Usage() as usage:
        began = time.perf_counter()
        given = clients.push(_loads(address, rows, seed)).rows
        _wait_for(run, given)
        wall = time.perf_counter() - began
    return _Taken(given, wall, usage.cpu_s, usage.peak_mb)


def _wait_for(run: ps.Run, rows: int) -> None:
    """Wait until the run has committed so many rows, none of them late."""

    def taken() -> bool:
        return run.counts.rows >= rows or not run.running

    if not wait_until(taken, _STUCK_S) or run.counts.rows != rows or run.counts.late:
        run.stop()
        raise RuntimeError(f"{run.counts} of {rows:,} rows were taken")


@contextmanager
def _running(session: "SparkSession", address: str) -> Iterator[ps.Run]:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        reports = ps.stream(
            "reports",
            "time timestamp, lon double, lat double, speed double, kind string, vehicle string",
            time="time",
            delay="2 minutes",
            key="vehicle",
            source=ps.gates(address, stream_column="vehicle"),
        )
        means = (
            reports.group_by("vehicle")
            .window("60 seconds", slide="10 seconds")
            .agg(n=ps.count(), mean=ps.avg("speed"), top=ps.max("speed"))
        )
        place = Path(folder)
        sink, checkpoint = ps.parquet(str(place / "out")), str(place / "state")
        with means.start(sink, checkpoint=checkpoint, session=session) as run:
            yield run
