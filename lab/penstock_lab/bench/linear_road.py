"""`penstock bench linear-road`: the most expressways of Linear Road that get all answers within five seconds.

For each number of expressways the end of the benchmark's three hours, when traffic is densest, is played by
the clock: the reports of a second arrive as a file, all at the moment of that second, and every answer counts
from then to its delivery. Two minutes of traffic before it are there when the run starts, so that there are
statistics, and the first seconds by the clock are not measured. Afterwards every answer of the whole run is
compared with batch SQL. Beside it, the same reports as windows: segment statistics, and the queries of [004]
without a key.
"""

import math
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import penstock as ps
from penstock_lab.bench.data import SECOND_US
from penstock_lab.bench.memory import Usage
from penstock_lab.bench.session import measuring_session
from penstock_lab.bench.waiting import wait_until
from penstock_lab.linear_road import (
    Traffic,
    Truth,
    Verdict,
    linear_road,
    position_reports,
    report_windows,
    segment_statistics,
)
from penstock_lab.linear_road.traffic import START_US
from penstock_lab.linear_road.validator import ANSWERS
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["BOUND_S", "Answers", "Size", "best_expressways", "linear_road_bench"]

BOUND_S = 5.0
"""The longest time of an answer that the benchmark allows."""

ASKED_S = 3.5
"""The bound that is asked of the run.

Beyond what a run counts, a report waits for a second until its own second is complete and the frontier passes
it; the rest is for epochs that take longer than expected.
"""

TRIALS = 9
"""How many numbers of expressways are measured at most."""

_SHAPES = (("1 minute", None), ("5 minutes", "1 minute"), ("100 seconds", "1 second"))
_RUN_S = 10_800
_GRACE_S = 10.0


@dataclass(frozen=True)
class Size:
    """How a number of expressways is measured.

    `before` seconds of traffic are there at the start; of the `seconds` by the clock that follow, the first
    `settling` are not measured. `factor` seconds of traffic pass in one by the clock.
    """

    seconds: int = 60
    settling: int = 10
    before: int = 120
    factor: float = 1.0

    def traffic(self, expressways: int, seed: int) -> Traffic:
        """The end of the run, with an accident a minute on each expressway, more than the benchmark has."""
        whole = self.before + round((self.seconds + self.settling) * self.factor)
        begin = (_RUN_S - whole) // 60 * 60
        return Traffic(expressways, seconds=whole, begin=begin, run=_RUN_S, accidents=60, seed=seed)


QUICK = Size(seconds=12, settling=6, factor=2.0)


@dataclass
class Answers:
    """What sinks got: each table with the time of its delivery in seconds since 1970."""

    got: list[tuple[float, pa.Table]] = field(default_factory=list)

    def record(self, table: pa.Table, number: int) -> None:  # noqa: ARG002  the sink's signature
        """Take the answers of an epoch."""
        self.got.append((time.time(), table))

    @property
    def table(self) -> pa.Table:
        """All answers; without columns if there are none."""
        return pa.concat_tables([table for _, table in self.got]) if self.got else pa.table({})

    def responses(self, first: int, zero: float, factor: float) -> NDArray[np.float64]:
        """Seconds from the arrival to the delivery of answers to reports from second `first` of the run on.

        Second `first` arrives at `zero` by the clock, and `factor` seconds in each one by the clock.

        >>> at = pa.array([START_US + 61 * SECOND_US], pa.timestamp("us", tz="UTC"))
        >>> Answers([(1003.5, pa.table({"time": at}))]).responses(60, 1000.0, 2.0).tolist()
        [3.0]
        """
        found = [np.zeros(0)]
        for delivered, table in self.got:
            micros = table["time"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()
            second = (micros - START_US) // SECOND_US
            arrived = zero + (second[second >= first] - first) / factor
            found.append(delivered - arrived)
        return np.concatenate(found)


class LiveFiles(AbstractContextManager["LiveFiles"]):
    """Writes each second of traffic as a Parquet file when it is due; a context manager."""

    def __init__(self, reports: pa.Table, first: int, folder: Path, zero: float, factor: float) -> None:
        self._folder, self._zero, self._factor, self._first = folder, zero, factor, first
        second = (reports["time"].cast(pa.int64()).to_numpy() - START_US) // SECOND_US
        bounds = np.searchsorted(second, np.arange(first, second[-1] + 2))
        self._parts = [reports.slice(begin, end - begin) for begin, end in pairwise(bounds)]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._write, name="traffic", daemon=True)

    @property
    def seconds(self) -> float:
        """By the clock."""
        return len(self._parts) / self._factor

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _write(self) -> None:
        for number, part in enumerate(self._parts):
            due = self._zero + number / self._factor
            if self._done.wait(max(0.0, due - time.time())):
                return
            write(part, self._folder, f"{self._first + number:06}")


def write(table: pa.Table, folder: Path, name: str) -> None:
    """A file that appears whole."""
    hidden = folder / f".{name}.parquet"
    pq.write_table(table, hidden, compression="none")
    hidden.rename(folder / f"{name}.parquet")


def linear_road_bench(  # noqa: PLR0913 -- each is one option of the command
    *,
    expressways: Sequence[int] = (),
    first: int = 1,
    trials: int = TRIALS,
    seconds: int = 60,
    windows: bool = True,
    seed: int = 7,
    quick: bool = False,
) -> Report:
    """Measure the given numbers of expressways; by default, search for the largest that keeps the bound.

    The search begins with `first` and measures at most `trials` numbers.
    `quick` measures one expressway at twice the speed, for 12 seconds.
    """
    size = QUICK if quick else Size(seconds=seconds)
    spark = measuring_session(quick=quick)
    say("warm-up")
    _measured(spark, 1, Size(seconds=4, settling=2, before=60, factor=2.0), seed)
    rows: list[dict[str, Value]] = []
    verdicts: list[tuple[int, Verdict]] = []

    def held(number: int) -> bool:
        row, found = _measured(spark, number, size, seed)
        rows.append(row)
        verdicts.extend((number, each) for each in found)
        say(f"  {row['rows_per_s']:,} rows/s, p99 {row['p99_s']} s, max {row['max_s']} s")
        return bool(row["within"])

    given = expressways or ((1,) if quick else ())
    if given:
        kept = [number for number in given if held(number)]
        best = max(kept, default=0)
    else:
        best = best_expressways(held, trials, first)
    checks = _checks(best, verdicts, quick=quick)
    if windows:
        shapes = (("100 seconds", "1 second"),) if quick else _SHAPES
        found = [_windowed(spark, *each, seed=seed, quick=quick) for each in ((None, None), *shapes)]
        rows += [row for row, _ in found]
        checks += [check for _, check in found]
    return report_here("linear-road", seed, rows, checks)


def best_expressways(held: Callable[[int], bool], most: int = TRIALS, first: int = 1) -> int:
    """The largest number for which `held` is true, to an eighth: doubled until it fails, then between.

    At most `most` numbers are tried, from `first` on.

    >>> best_expressways(lambda number: number <= 21)
    20
    """
    low, high, trial = 0, 0, first
    for _ in range(most):
        if held(trial):
            low = trial
        else:
            high = trial
        if high and high - low <= max(1, low // 8):
            break
        trial = (low + high) // 2 if high else 2 * low
    return low


def _measured(
    spark: SparkSession, expressways: int, size: Size, seed: int
) -> tuple[dict[str, Value], list[Verdict]]:
    """A number of expressways by the clock: its figures, and its answers against the truth if all came."""
    say(f"L = {expressways}: traffic")
    traffic = size.traffic(expressways, seed)
    reports, history = traffic.reports, traffic.history
    first = traffic.begin + size.before
    early = int(np.searchsorted(reports["time"].cast(pa.int64()).to_numpy(), START_US + first * SECOND_US))
    answers = {name: Answers() for name in ANSWERS}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        folder, known = Path(scratch, "in"), Path(scratch, "history")
        folder.mkdir()
        known.mkdir()
        write(history, known, "0")
        write(reports.slice(0, early), folder, "000000")
        road = linear_road(ps.files(folder, live=True), ps.files(known, live=True))
        run = road.query.start(
            *(ps.each(each.record) for each in answers.values()),
            checkpoint=Path(scratch, "state"),
            session=spark,
            qos=ps.QoS(latency=timedelta(seconds=ASKED_S)),
        )
        try:
            wait_until(lambda: not run.running or run.counts.rows >= early + history.num_rows, math.inf)
            say(f"  {early:,} rows of traffic taken; {size.seconds + size.settling} s by the clock")
            zero = time.time() + 1.0
            with LiveFiles(reports.slice(early), first, folder, zero, size.factor) as files:
                since, end = zero + size.settling, zero + files.seconds
                wait_until(lambda: not run.running or time.time() > since, math.inf)
                epochs = len(run.progress)
                with Usage() as usage:
                    wait_until(lambda: not run.running or time.time() > end, math.inf)
                complete = reports.num_rows + history.num_rows
                done = wait_until(lambda: not run.running or run.counts.rows >= complete, _GRACE_S)
                done = done and run.running
            epoch_s = [each.seconds for each in run.progress[epochs:]]
        finally:
            run.stop()
    measured_from = first + round(size.settling * size.factor)
    responses = np.concatenate(
        [each.responses(measured_from, zero + size.settling, size.factor) for each in answers.values()]
    )
    until = (START_US // SECOND_US) + traffic.begin + traffic.seconds - 1
    verdicts = _verdicts(reports, history, until, answers) if done else []
    live = pc.sum(pc.greater_equal(reports["time"].cast(pa.int64()), START_US + measured_from * SECOND_US))
    wall = files.seconds - size.settling
    within = done and len(responses) > 0 and float(responses.max()) <= BOUND_S
    return {
        "case": f"L = {expressways}",
        "expressways": expressways,
        "rows_per_s": round(live.as_py() / wall),
        "answers": len(responses),
        "p50_s": _rounded(responses, 50),
        "p99_s": _rounded(responses, 99),
        "max_s": _rounded(responses, 100),
        "within": within,
        "epochs": len(epoch_s),
        "epoch_s": round(float(np.mean(epoch_s)), 2) if epoch_s else None,
        "cpu_s": round(usage.cpu_s, 1),
        "cores": round(usage.cpu_s / wall, 2),
        "wall_s": round(wall, 1),
        "peak_mb": round(usage.peak_mb),
    }, verdicts


def _verdicts(reports: pa.Table, history: pa.Table, until: int, answers: dict[str, Answers]) -> list[Verdict]:
    say("  validation")
    with Truth(reports, history, until) as truth:
        return [truth.verdict(name, given.table) for name, given in answers.items()]


def _rounded(values: NDArray[np.float64], part: float) -> float | None:
    return round(float(np.percentile(values, part)), 2) if len(values) else None


def _checks(best: int, verdicts: list[tuple[int, Verdict]], *, quick: bool) -> list[Check]:
    checks = [
        Check(
            f"most expressways with all answers within {BOUND_S:g} s",
            float(best),
            "Linear Road: the rating of a system is this number",
            floor=1.0,
            unjudged="a short run of a JVM without its optimising compiler" if quick else "",
        )
    ]
    for name in ANSWERS:
        own = [each for _, each in verdicts if each.name == name]
        checks += [
            Check(
                f"{name}: answers that are missing or wrong",
                float(sum(each.missing + each.wrong for each in own)) if own else None,
                "batch SQL over the same input",
                ceiling=0.0,
            ),
            Check(
                f"{name}: answers compared",
                float(sum(each.expected for each in own)),
                "a comparison of nothing would always hold",
                floor=1.0,
            ),
        ]
    return checks


def _windowed(
    spark: SparkSession, size: str | None, slide: str | None, *, seed: int, quick: bool
) -> tuple[dict[str, Value], Check]:
    """Windows over reports of one expressway, as fast as they go: without a key, or segment statistics."""
    case = "segment statistics" if size is None else f"reports without a key, {size} by {slide or size}"
    say(case)
    seconds = 300 if quick else 1200
    traffic = Traffic(1, seconds=seconds, begin=_RUN_S - 1200, run=_RUN_S, seed=seed)
    sink = ps.memory()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        folder = Path(scratch, "in")
        folder.mkdir()
        count = traffic.reports.num_rows
        parts = np.linspace(0, count, 7).astype(int)
        for number, (begin, end) in enumerate(pairwise(parts)):
            write(traffic.reports.slice(begin, end - begin), folder, f"{number}")
        reports = position_reports(ps.files(folder, files_per_epoch=2))
        query = segment_statistics(reports) if size is None else report_windows(reports, size, slide)
        with Usage() as usage:
            began = time.perf_counter()
            query.start(sink, checkpoint=Path(scratch, "state"), session=spark).wait()
            wall = time.perf_counter() - began
    with Truth(traffic.reports, traffic.history) as truth:
        wrong = (
            truth.wrong_statistics(sink.table())
            if size is None
            else truth.wrong_windows(sink.table(), size, slide or size)
        )
    row: dict[str, Value] = {
        "case": case,
        "rows_per_s": round(count / wall),
        "answers": sink.table().num_rows,
        "cpu_s": round(usage.cpu_s, 1),
        "wall_s": round(wall, 1),
        "peak_mb": round(usage.peak_mb),
    }
    check = Check(f"{case}: rows that are missing or wrong", float(wrong), "batch SQL", ceiling=0.0)
    return row, check
