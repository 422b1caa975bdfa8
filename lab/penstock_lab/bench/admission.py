"""`penstock bench admission`: strategies of admission on live gates of a limited speed.

Clients push at the rates of a workload of [000] to gates that take a limited number of rows a second. The
engine "learnt" is a controller that nobody told it, the others are tuned by hand. A controller admits and
redirects their streams and starts and stops gates, all of them real processes. A reader takes every row and
commits, so that emptied gates can go; each row holds its own number, so whatever is lost, doubled or out of
order shows. Beside each live figure stands the one of the simulation, which runs the same policy on the same
rates.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from penstock.control.admission import AdmissionRecording, AdmissionSetup, Seen
from penstock.ingest import Client, Connection
from penstock.ingest.directory.journal import recordings
from penstock.ingest.reader import GateWatch, Gathering, InletReader, Offsets
from penstock.ingest.security.access import Access
from penstock.ingest.wire import Endpoint
from penstock.ingest.wire.protocol import GateListRequest
from penstock.state.storage import Location
from penstock_lab.algorithms.bin_bounds import lower_bound
from penstock_lab.reports import Check, Report, Value, report_here, say
from penstock_lab.simulate.gates import GateCosts, simulate_gates
from penstock_lab.workloads.rates import SECONDS, Rates, rates_of

__all__ = ["FULL", "QUICK", "Size", "admission"]

INLET: Final = "live"
SCHEMA: Final = pa.schema([("n", pa.int64())])
READ: Final = pa.schema([("stream", pa.string()), ("n", pa.int64())])
LEARNT, OURS = "learnt", "penstock"
STRATEGIES: Final = ("ard", "drf-m", OURS, LEARNT)
MOST_GATES: Final = 8
HEADROOM: Final = 0.9
"""The part of what gates can do that whoever tunes by hand gives them: at all of it no queue shrinks."""
COMING: Final = "coming"
"""The workload sfvar, with streams that come and go."""
TICKS: Final = 2
"""Pushes of each stream in a second."""
GROUPS: Final = 5
"""Streams push in so many groups, one after the other, so that the load of a gate is even."""
MARGIN: Final = 0.2
"""Strategies that redirect within this part of each other in the simulation are in no order."""
START_S: Final = 3.0
"""What a gate takes to start, for the simulation."""
_PENSTOCK: Final = (sys.executable, "-c", "from penstock.cli import main; main()")
_PATIENCE_S: Final = 180.0
_TIMES: Final = ("period", "low_period", "high_period")
_RATES: Final = ("min_rate", "max_rate", "expected_rate", "burst_peak")


@dataclass(frozen=True)
class Size:
    """How much is measured; `unjudged` says why the order of strategies is not judged, if it is not."""

    streams: int
    periods: int
    seconds: float
    """Of a period."""
    capacity: float
    share: float = 0.1
    """Of the workload's rates: a small machine is to be kept busy by streams and gates, not by rows."""
    workloads: tuple[str, ...] = ("sfvar", "bursty", COMING)
    unjudged: str = ""

    @property
    def warm_up(self) -> int:
        """The first periods, in which streams arrive."""
        return max(self.periods // 10, 2)


FULL: Final = Size(200, 60, 3.0, 1000.0)
QUICK: Final = Size(12, 12, 1.0, 200.0, workloads=("sfvar",), unjudged="too few streams and periods")


def admission(size: Size, *, strategies: Sequence[str] = STRATEGIES, seed: int = 7) -> Report:
    """Measure every strategy on every workload, one after the other."""
    rows: list[Mapping[str, Value]] = []
    for workload in size.workloads:
        made = _scaled(_drawn(workload, size, seed), size)
        for strategy in strategies:
            say(f"{workload}, {strategy}: {size.streams} streams for {size.periods * size.seconds:g} s")
            rows.append(_measured(size, strategy, made, seed))
    return report_here("admission", seed, rows, _checks(size, rows))


def _measured(size: Size, strategy: str, made: Rates, seed: int) -> Mapping[str, Value]:
    optimal = np.array([lower_bound(each, size.capacity) for each in np.nan_to_num(made.rows)])
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        with _controller(Path(folder), size, strategy) as address, _Counting(address) as counting:
            course = _drive(address, made, size)
            counting.until(course.pushed)
        learnt = _Learnt.of(recordings(Location.of(folder)))
    delays = [each.seconds for each in course.redirections]
    p50, p99 = np.percentile(delays, [50, 99]) * 1000 if delays else (0.0, 0.0)
    return {
        "case": made.name,
        "engine": strategy,
        "redirections": len(delays),
        "simulated": _simulated(size, OURS if strategy == LEARNT else strategy, made, seed),
        "buffered_rows": sum(each.rows for each in course.redirections),
        "p50_ms": round(float(p50), 1),
        "p99_ms": round(float(p99), 1),
        "gates": round(float(np.mean(course.gates)), 2),
        "optimal": round(float(optimal[size.warm_up :].mean()), 2),
        "late_percent": round(100 * course.late / max(course.acknowledged, 1), 3),
        "first_period": learnt.first,
        "price_off": round(learnt.off, 2),
        "waiting_rows": round(float(np.mean(course.waiting))),
        "rows": sum(course.pushed.values()),
        "lost": counting.lost(course.pushed),
        "doubled": counting.doubled,
    }


@dataclass(frozen=True)
class _Learnt:
    """What a recording tells: the period of the first decision, and how far off the first prices were."""

    first: int
    off: float

    @classmethod
    def of(cls, found: Sequence[AdmissionRecording]) -> "_Learnt":
        periods = [each for recording in found for each in recording.periods]
        first = seen = 0
        for each in periods:
            if each.decisions and (seen or any(told["kind"] == "start" for told in each.decisions)):
                break
            seen += isinstance(each.seen, Seen)
            first = seen
        last: dict[str, float] = {}
        then: dict[str, float] = {}
        for each in periods:
            if isinstance(each.seen, Seen) and each.seen.prices is not None:
                rate = np.nan_to_num(each.seen.declared["expected_rate"])
                whole = float(np.mean(each.seen.capacity))
                last = dict(
                    zip(each.seen.streams, (each.seen.prices.work(rate) / whole).tolist(), strict=True)
                )
                then = {**last, **then}
        ratios = [max(then[each] / now, now / then[each]) for each, now in last.items() if now > 0]
        return cls(first, float(np.quantile(ratios, 0.99)) if ratios else 1.0)


def _drawn(workload: str, size: Size, seed: int) -> Rates:
    """The rates of a workload; of those that come and go, NaN while a stream is not there."""
    rng = np.random.default_rng(seed)
    if workload != COMING:
        return rates_of(workload, rng, size.periods, streams=size.streams)
    made = rates_of("sfvar", rng, size.periods, streams=size.streams)
    starts = rng.integers(-size.periods, size.periods, size.streams)
    ends = starts + rng.integers(size.periods // 4, size.periods, size.streams)
    at = np.arange(size.periods)[:, None]
    return Rates(COMING, np.where((at >= starts) & (at < ends), made.rows, np.nan), made.declared)


def _simulated(size: Size, strategy: str, made: Rates, seed: int) -> int:
    setup = AdmissionSetup(HEADROOM * size.capacity, strategy, size.seconds, size.seconds / 2)
    costs = GateCosts(size.capacity, size.seconds, 0.05, START_S, bound=size.seconds / 2)
    rng = np.random.default_rng(seed)
    found = simulate_gates(setup.policy(), np.nan_to_num(made.rows), costs, rng, declared=made.declared)
    return int(found.after(size.warm_up).redirections.sum())


def _scaled(made: Rates, size: Size) -> Rates:
    """The workload with lower rates, and with times in the seconds of this measurement."""
    scales = dict.fromkeys(_TIMES, size.seconds / SECONDS) | dict.fromkeys(_RATES, size.share)
    declared = {name: each * scales.get(name, 1.0) for name, each in made.declared.items()}
    return Rates(made.name, made.rows * size.share, declared)


def _metadata(declared: Mapping[str, Any], stream: int) -> dict[str, Any]:
    known = {name: float(each[stream]) for name, each in declared.items() if not np.isnan(each[stream])}
    said: dict[str, Any] = dict(known)
    if "transition" in said:
        said["transition"] = "jump" if said["transition"] < 0.5 else "trend"
    return said


@contextmanager
def _controller(folder: Path, size: Size, strategy: str) -> Iterator[str]:
    """A controller that starts and stops gates; its address."""
    tuned = {} if strategy == LEARNT else {"capacity": HEADROOM * size.capacity, "strategy": strategy}
    options = tuned | {
        "address": "127.0.0.1:0",
        "folder": folder,
        "period": size.seconds,
        "wait-seconds": size.seconds / 2,
        "gates-to": MOST_GATES,
        "gate-port": 0,
        "gate-option": f"--rows-per-second={size.capacity}",
    }
    command = [*_PENSTOCK, "controller", *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "controller.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603 -- ours
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if "ready at" not in said:
                raise RuntimeError((folder / "controller.log").read_text()[-2000:])
            yield said.split()[-1]
        finally:
            process.terminate()
            process.wait(60)


@dataclass
class _Course:
    """What a drive saw after the first periods."""

    pushed: dict[str, int] = field(default_factory=dict)
    redirections: list[Any] = field(default_factory=list)
    gates: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    acknowledged: int = 0
    late: int = 0


class _Pushing:
    """A stream of the drive: its client while it is there, and when its rows were pushed."""

    def __init__(self, connection: Connection, number: int, metadata: Mapping[str, Any]) -> None:
        self._connection, self._metadata = connection, metadata
        self.stream = f"{INLET}/{number:03d}"
        self.client: Client | None = None
        self.due = self.pushed = 0.0
        self._open: deque[tuple[int, float]] = deque()
        self.redirections: list[Any] = []

    def push(self, rate: float, seconds: float, now: float) -> None:
        """The rows of so many seconds; without a rate (NaN) the stream is not there."""
        if np.isnan(rate):
            self.close()
            return
        if self.client is None:
            self.client = Client(self._connection, self.stream, SCHEMA, self._metadata, buffer_rows=1_000_000)
            self.due = float(self.client.sequence)
        self.due += rate * seconds
        numbers = np.arange(self.client.sequence, int(self.due), dtype=np.int64)
        if len(numbers):
            self.client.push(pa.record_batch([pa.array(numbers)], schema=SCHEMA))
            self.pushed = self.client.sequence
            self._open.append((self.client.sequence, now))

    def acknowledged(self, now: float, bound: float) -> tuple[int, int]:
        """Rows that were acknowledged since the last look, and those of them that waited too long."""
        if self.client is None:
            return 0, 0
        upto, rows, late = self.client.acknowledged, 0, 0
        while self._open and self._open[0][0] <= upto:
            rows += 1
            late += now - self._open.popleft()[1] > bound
        return rows, late

    def flush(self) -> None:
        """Wait until its gate has been started and has taken what there is."""
        if self.client is not None:
            self.client.flush(_PATIENCE_S)

    def moves(self) -> int:
        """The redirections so far."""
        return len(self.redirections) + (len(self.client.redirections) if self.client is not None else 0)

    def close(self) -> None:
        """Wait until all is acknowledged."""
        if self.client is not None:
            self.client.close(_PATIENCE_S)
            self.redirections += self.client.redirections
            self.client = None
            self._open.clear()


def _drive(address: str, made: Rates, size: Size) -> _Course:
    course = _Course()
    with Endpoint(address) as controller, Connection(address) as connection:
        _until(lambda: len(controller.ask(GateListRequest()).gates) >= 1)
        streams = [_Pushing(connection, n, _metadata(made.declared, n)) for n in range(size.streams)]
        for n, each in enumerate(streams):
            each.push(made.rows[0][n], 1 / TICKS, 0.0)
        for each in streams:
            each.flush()
        before: dict[str, int] = {}
        start, each_s = time.monotonic(), 1 / (TICKS * GROUPS)
        for tick in range(int(size.periods * size.seconds / each_s)):
            period = min(int(tick * each_s / size.seconds), size.periods - 1)
            for n in range(tick % GROUPS, size.streams, GROUPS):
                streams[n].push(made.rows[period][n], 1 / TICKS, time.monotonic())
            judged = period >= size.warm_up
            for each in streams:
                rows, late = each.acknowledged(time.monotonic(), size.seconds / 2)
                course.acknowledged += rows * judged
                course.late += late * judged
            if (tick + 1) % round(size.seconds / each_s) == 0 and period >= size.warm_up - 1:
                if not before:
                    before = {each.stream: each.moves() for each in streams}
                course.gates.append(sum(g["streams"] > 0 for g in controller.ask(GateListRequest()).gates))
                course.waiting.append(connection.unacknowledged())
            time.sleep(max(start + (tick + 1) * each_s - time.monotonic(), 0.0))
        for each in streams:
            each.close()
            course.redirections += each.redirections[before.get(each.stream, 0) :]
        course.pushed = {each.stream: int(each.pushed) for each in streams if each.pushed}
    return course


class _Counting:
    """A reader that takes every row once, as a run does, counts it by its number, and commits."""

    def __init__(self, address: str) -> None:
        self._watch = GateWatch([address], Access(), INLET)
        self._reader = InletReader(self._watch, INLET, "bench", patience=60)
        self._gathering = Gathering(INLET, Access(), READ, "stream", patience=60)
        self.counted: dict[str, int] = {}
        self.doubled = 0
        self.missed = 0
        self._error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)
        self._reader.close()

    def until(self, pushed: Mapping[str, int]) -> None:
        """Wait until every row that was pushed has been read, or nothing comes any more."""
        _until(lambda: self._error is not None or self.counted == dict(pushed), raising=False)
        if self._error is not None:
            raise self._error

    def lost(self, pushed: Mapping[str, int]) -> int:
        """Rows that were pushed and did not come."""
        return self.missed + sum(
            max(rows - self.counted.get(stream, 0), 0) for stream, rows in pushed.items()
        )

    def _run(self) -> None:
        at = Offsets.of({})
        try:
            while not self._stop.wait(0.5):
                self._reader.commit(at)
                end = self._reader.latest(at, None)
                for task in self._reader.tasks(at, end, 1):
                    for batch in self._gathering.rows(task):
                        self._count(batch)
                at = end
        except Exception as error:  # noqa: BLE001 -- raised again by `until`
            self._error = error

    def _count(self, batch: Any) -> None:
        coded = batch.column("stream").dictionary_encode()
        names, codes = coded.dictionary.to_pylist(), coded.indices.to_numpy()
        numbers = batch.column("n").to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        for first, last in pairwise(edges):
            stream, found = names[codes[first]], numbers[first:last]
            known = self.counted.get(stream, 0)
            # In order and without a gap each number is one above the last.
            jumps = np.diff(found, prepend=known - 1) - 1
            self.missed += int(jumps[jumps > 0].sum())
            self.doubled += int(-jumps[jumps < 0].sum())
            self.counted[stream] = int(found[-1]) + 1


def _until(true: Any, *, raising: bool = True) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not true():
        if time.monotonic() > end:
            if raising:
                raise RuntimeError(f"nothing came for {_PATIENCE_S:g} s")
            return
        time.sleep(0.1)


def _checks(size: Size, rows: Sequence[Mapping[str, Value]]) -> list[Check]:
    checks = []
    for row in rows:
        name = f"{row['case']}, {row['engine']}"
        checks.append(Check(f"rows lost, {name}", _number(row["lost"]), "exactly once", ceiling=0))
        checks.append(Check(f"rows doubled, {name}", _number(row["doubled"]), "exactly once", ceiling=0))
    for workload in size.workloads:
        checks += _learnt_checks(size, workload, [row for row in rows if row["case"] == workload])
    for workload in (each for each in size.workloads if each != COMING):
        own = [row for row in rows if row["case"] == workload and row["engine"] != LEARNT]
        if len(own) > 1:
            wrong = sum(_wrong_order(first, second) for first, second in combinations(own, 2))
            checks.append(
                Check(
                    f"pairs of strategies in another order, {workload}",
                    wrong,
                    "the order of redirections in the simulation",
                    ceiling=0,
                    unjudged=size.unjudged,
                )
            )
    return checks


def _learnt_checks(size: Size, workload: str, rows: Sequence[Mapping[str, Value]]) -> list[Check]:
    """What a controller that nobody tuned has to do as well as one that somebody did."""
    known = {str(row["engine"]): row for row in rows}
    if LEARNT not in known:
        return []
    ours = {name: _number(value) for name, value in known[LEARNT].items() if isinstance(value, int | float)}
    source = "admission acts by default"
    ceilings = {
        "periods until the first decision": (ours["first_period"], 3.0),
        "gates over the bound": (round(ours["gates"] / ours["optimal"], 3), 1.2),
        "batches that wait beyond the bound, %": (ours["late_percent"], 1.0),
        "price of what is declared, first period to last, times": (ours["price_off"], 2.0),
    }
    if OURS in known:
        tuned = max(_number(known[OURS]["redirections"]), 1.0)
        ceilings["redirections over hand-tuned"] = (round(ours["redirections"] / tuned, 3), 1.1)
    return [
        Check(f"{name}, {workload}", value, source, ceiling=most, unjudged=size.unjudged)
        for name, (value, most) in ceilings.items()
    ]


def _wrong_order(first: Mapping[str, Value], second: Mapping[str, Value]) -> bool:
    """Whether one redirects less in the simulation, by more than a margin, and the other one does live."""
    if _number(first["simulated"]) > _number(second["simulated"]):
        first, second = second, first
    ordered = _number(first["simulated"]) < (1 - MARGIN) * _number(second["simulated"])
    return ordered and _number(first["redirections"]) > _number(second["redirections"])


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)
