"""`penstock bench windows`: Penstock against Spark's own two ways to aggregate sliding windows.

Before anything is timed, every engine runs each case over the same few files: that warms the JVM and the
Python workers for all of them alike, and what they delivered must agree. Then the engines take turns, round
after round. The quick form has no rounds: it reports those first, cold runs. The baselines get fewer epochs
than Penstock where they would take many minutes; every engine is stated in rows a second of its own run.
Penstock also delivers the windows that are open at the end of the input, which Spark never does, so Penstock
writes more.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from penstock_lab.bench import results
from penstock_lab.bench.cost import Cost
from penstock_lab.bench.data import DataSet, first_files
from penstock_lab.bench.engines import (
    ENGINES,
    PENSTOCK,
    SPARK_CHAINED,
    SPARK_WINDOW,
    Engine,
    Job,
    WindowSpan,
    measure,
)
from penstock_lab.bench.session import measuring_session
from penstock_lab.reports import Check, Report, Value, report_here, say

# Spark's window() takes 100 µs or more of processor time for a row at a hundredfold overlap, and pays for a
# pair of window and key: few rows, few keys. The rows span more than a minute, so that Spark closes windows.
QUICK_ROWS = 20_000
QUICK_SECONDS = 100
QUICK_KEYS = 1000
QUICK_ROWS_PER_FILE = 1250
QUICK_UNJUDGED = (
    "one cold run over epochs of a few thousand rows, whose fixed cost outweighs the rows; "
    "the floor is for epochs of 1,000,000 rows"
)


@dataclass(frozen=True)
class Case:
    """A window to measure, how many epochs the baselines get, and the ratio to Spark that must hold.

    Spark pays for each pair of window and key that an epoch touches, so a row costs it less in a larger
    epoch (measured warm at 100 s by 1 s: 101 to 106 µs of processor time at 100,000 rows an epoch, 77 to 93
    at 1,000,000). The baselines therefore run whole epochs of the size that Penstock runs.

    The rows that all engines share to be compared span `common_seconds` of event time, in the quick form
    `quick_common_seconds`: long enough for Spark to close windows.
    """

    name: str
    window: WindowSpan
    floor: float
    baseline_epochs: int
    common_seconds: int
    quick_common_seconds: int


CASES = (
    Case(
        "100 s by 1 s", WindowSpan(100, 1), 25, baseline_epochs=1, common_seconds=40, quick_common_seconds=12
    ),
    Case(
        "60 s by 10 s", WindowSpan(60, 10), 4, baseline_epochs=5, common_seconds=120, quick_common_seconds=30
    ),
    Case(
        "60 s tumbling",
        WindowSpan(60, 60),
        1.5,
        baseline_epochs=10,
        common_seconds=200,
        quick_common_seconds=80,
    ),
)


@dataclass(frozen=True)
class Timing:
    """One timed run of one engine."""

    rows: int
    rows_out: int
    cost: Cost

    @property
    def rows_per_s(self) -> float:
        """Input rows a second, from the start of the query to its last commit."""
        return self.rows / self.cost.wall_s


@dataclass(frozen=True)
class Bench:
    """What all cases share: the session, the data set on disk, a scratch folder for outputs, and the form."""

    spark: SparkSession
    data: DataSet
    folder: Path
    scratch: Path
    files_per_epoch: int
    quick: bool = False

    def job(self, place: Path, window: WindowSpan, files: int, files_per_epoch: int) -> Job:
        """A job over the first `files` files that keeps its output and its state in `place`."""
        return Job(
            source=first_files(self.folder, files),
            output=place / "out",
            checkpoint=place / "state",
            window=window,
            files_per_epoch=files_per_epoch,
        )


def windows(  # noqa: PLR0913  each is one option of the command
    *,
    rows: int = 10_000_000,
    seconds: int = 2000,
    keys: int = 16_384,
    seed: int = 7,
    repeats: int = 3,
    quick: bool = False,
    files_per_epoch: int = 10,
    data_dir: Path | None = None,
) -> Report:
    """Measure all cases on all engines; `quick`: fewer rows and keys, smaller epochs, one cold run."""
    rows_per_file = DataSet.rows_per_file
    if quick:
        rows, seconds, keys = min(rows, QUICK_ROWS), min(seconds, QUICK_SECONDS), min(keys, QUICK_KEYS)
        rows_per_file = QUICK_ROWS_PER_FILE
    data = DataSet(rows=rows, seconds=seconds, keys=keys, seed=seed, rows_per_file=rows_per_file)
    table: list[dict[str, Value]] = []
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        say(f"data: {rows:,} rows, {data.files} files")
        folder = data.write(data_dir or Path(scratch, "data"))
        bench = Bench(measuring_session(quick=quick), data, folder, Path(scratch), files_per_epoch, quick)
        for case in CASES:
            agreement, timings = compare_engines(bench, case)
            checks.extend(agreement)
            if not quick:
                timings = time_case(bench, case, repeats)
            table.extend(_row(case, engine, timings[engine.name]) for engine in ENGINES)
            checks.append(_ratio(case, timings, QUICK_UNJUDGED if quick else ""))
    return report_here("windows", seed, table, checks)


def compare_engines(bench: Bench, case: Case) -> tuple[list[Check], dict[str, list[Timing]]]:
    """Run every engine over the same few files and compare the windows that all had to deliver.

    Those are the windows up to the last one that both Spark engines delivered: at the end of the input
    Spark leaves open what Penstock closes. The timings are those of cold runs.
    """
    common_seconds = case.quick_common_seconds if bench.quick else case.common_seconds
    common_rows = bench.data.rows * common_seconds // bench.data.seconds
    files = min(bench.data.files, max(2, common_rows // bench.data.rows_per_file))
    # Spark closes windows from the second epoch on: two are enough for the quick form.
    files_per_epoch = -(-files // 2) if bench.quick else 1
    outputs: dict[str, Path] = {}
    timings: dict[str, list[Timing]] = {}
    with tempfile.TemporaryDirectory(dir=bench.scratch) as place:
        for engine in ENGINES:
            say(f"{case.name}: {engine.name}, first run and comparison")
            job = bench.job(Path(place, engine.name), case.window, files, files_per_epoch)
            timings[engine.name] = [_timing(bench, engine, job, files)]
            outputs[engine.name] = job.output
        return _compare(case, outputs), timings


def time_case(bench: Bench, case: Case, repeats: int) -> dict[str, list[Timing]]:
    """Time the engines in turns, so that a slow minute of the machine meets all of them."""
    baseline_files = min(bench.data.files, case.baseline_epochs * bench.files_per_epoch)
    timings: dict[str, list[Timing]] = {engine.name: [] for engine in ENGINES}
    for turn in range(repeats):
        for engine in ENGINES:
            files = bench.data.files if engine is PENSTOCK else baseline_files
            timing = _time(bench, engine, case.window, files)
            timings[engine.name].append(timing)
            say(f"{case.name}: {engine.name}, round {turn + 1}: {timing.rows_per_s:,.0f} rows/s")
    return timings


def _time(bench: Bench, engine: Engine, window: WindowSpan, files: int) -> Timing:
    with tempfile.TemporaryDirectory(dir=bench.scratch) as place:
        return _timing(bench, engine, bench.job(Path(place), window, files, bench.files_per_epoch), files)


def _timing(bench: Bench, engine: Engine, job: Job, files: int) -> Timing:
    rows = min(bench.data.rows, files * bench.data.rows_per_file)
    cost = measure(engine, bench.spark, job)
    return Timing(rows=rows, rows_out=results.count(job.output), cost=cost)


def _compare(case: Case, outputs: dict[str, Path]) -> list[Check]:
    ends = [results.last_end(outputs[engine.name]) for engine in (SPARK_WINDOW, SPARK_CHAINED)]
    # A baseline that delivered nothing leaves nothing to compare, which fails the check on rows compared.
    until = min(0 if end is None else end for end in ends)
    source = "every engine gives the same windows over the same rows"
    expected = results.delivered(outputs[SPARK_WINDOW.name], until)
    checks = [Check(f"rows compared, {case.name}", expected.rows, source, floor=1)]
    for engine in ENGINES:
        if engine is SPARK_WINDOW:
            continue
        got = results.delivered(outputs[engine.name], until)
        versus = f"{engine.name} and {SPARK_WINDOW.name}, {case.name}"
        checks.append(
            Check(f"difference in rows, {versus}", abs(got.rows - expected.rows), source, ceiling=0)
        )
        same = float(got.checksum == expected.checksum)
        checks.append(Check(f"same checksum, {versus}", same, source, floor=1))
    return checks


def _row(case: Case, engine: Engine, timings: list[Timing]) -> dict[str, Value]:
    best = max(timings, key=lambda timing: timing.rows_per_s)
    return {
        "engine": engine.name,
        "case": case.name,
        "rows_per_s": round(best.rows_per_s),
        "rows_per_s_median": round(median(timing.rows_per_s for timing in timings)),
        "cpu_s": round(best.cost.cpu_s, 2),
        "wall_s": round(best.cost.wall_s, 3),
        "peak_mb": round(max(timing.cost.peak_mb for timing in timings)),
        "rows": best.rows,
        "rows_out": best.rows_out,
    }


def _ratio(case: Case, timings: dict[str, list[Timing]], unjudged: str) -> Check:
    ours, theirs = (
        max(timing.rows_per_s for timing in timings[engine.name]) for engine in (PENSTOCK, SPARK_WINDOW)
    )
    return Check(
        f"ratio to Spark, {case.name}",
        round(ours / theirs, 2),
        "the floor promised against Spark's window() on the same machine",
        floor=case.floor,
        unjudged=unjudged,
    )
