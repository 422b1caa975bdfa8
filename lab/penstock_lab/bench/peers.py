"""`penstock bench peers`: the same queries over the same files in Penstock, Spark, DuckDB and Polars.

Spark is Structured Streaming in a session with the same settings as Penstock's, with the same files an epoch.
DuckDB and Polars run in batch: what the rows cost without epochs, state and commits. Engines take turns,
medians count. A streaming engine keeps its process and its JVM for all rounds; the first one warms them and
does not count. A batch engine has a fresh process for each run, and warms it with the first files. What every
run delivered is compared with DuckDB's answer over the same files; of Spark the windows that the rows alone
close, for it leaves others open at the end.

Two further sections measure epochs in the middle of a warm run, without its start and its end: small ones,
and epochs of many sizes.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from penstock_lab.bench import results
from penstock_lab.bench.batch_engines import cost_alone, has_polars, run_alone
from penstock_lab.bench.cost import Cost, cost_of
from penstock_lab.bench.data import DataSet
from penstock_lab.bench.engines import Job
from penstock_lab.bench.epoch_cost import EPOCH_ENGINES, epoch_cost
from penstock_lab.bench.joins import JoinSize
from penstock_lab.bench.own_jvms import OwnJvms
from penstock_lab.bench.peer_cases import CASES, SIXTY_BY_TEN, Case, EpochSize, Files
from penstock_lab.bench.peer_queries import BATCH, STREAMING, JoinQuery, PeerJob, PeerQuery, WindowQuery
from penstock_lab.bench.peer_report import Run, agreement, case_row, epoch_goals, epoch_row, goals
from penstock_lab.bench.results import Delivered
from penstock_lab.bench.timing import Measured, Rounds
from penstock_lab.errors import BadBench
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["ENGINES", "FULL", "PARTS", "QUICK", "EpochSize", "PeerSize", "peers"]

SMALL_EPOCHS = "small-epochs"
EPOCH_SIZES = "epoch-sizes"
PARTS = (*(case.option for case in CASES), SMALL_EPOCHS, EPOCH_SIZES)
ENGINES = (*STREAMING, *BATCH)
DEFAULT_ENGINES = ("penstock", "spark", "duckdb", "polars")

_WARM_UP_PART = 0.1


@dataclass(frozen=True)
class PeerSize:
    """How much of everything is measured.

    Every case runs with every size of epochs in `epoch_rows`, and has other goals for the second one. Of the
    `sweep` Spark gets the epochs of up to `spark_most` rows.
    """

    reports: DataSet
    calls: JoinSize
    epoch_rows: tuple[int, ...]
    small: EpochSize
    sweep: tuple[EpochSize, ...]
    spark_most: int
    rounds: Rounds


FULL = PeerSize(
    DataSet(rows=10_000_000, seconds=2000, keys=16_384, seed=7),
    JoinSize(calls=2_000_000, seconds=2000, calls_per_file=100_000, files_per_epoch=5),
    epoch_rows=(1_000_000, 5_000_000),
    small=EpochSize(20_000, warm=200, counted=50),
    sweep=(
        EpochSize(1_000, warm=20, counted=50),
        EpochSize(10_000, warm=20, counted=50),
        EpochSize(100_000, warm=5, counted=20),
        EpochSize(1_000_000, warm=2, counted=5),
        EpochSize(10_000_000, warm=1, counted=1),
    ),
    spark_most=1_000_000,
    rounds=Rounds(3),
)
QUICK = PeerSize(
    DataSet(rows=40_000, seconds=100, keys=500, seed=7, rows_per_file=5_000),
    JoinSize(calls=10_000, seconds=100, calls_per_file=2_500, files_per_epoch=1),
    epoch_rows=(20_000, 40_000),
    small=EpochSize(2_000, warm=3, counted=3),
    sweep=(EpochSize(1_000, warm=2, counted=4), EpochSize(10_000, warm=1, counted=2)),
    spark_most=1_000,
    rounds=Rounds(
        1,
        warm=False,
        unjudged="one cold round over a few thousand rows, whose fixed cost outweighs the rows; "
        "the goal is for the full size",
    ),
)


def peers(  # noqa: PLR0913 -- each is one option of the command
    size: PeerSize = FULL,
    *,
    only: Sequence[str] = PARTS,
    engines: Sequence[str] | None = None,
    seed: int = 7,
    quick: bool = False,
    data_dir: Path | None = None,
) -> Report:
    """Measure some parts on some engines; by default all parts, on all engines that are installed."""
    _known("--only", only, PARTS)
    chosen = _engines(engines)
    size = replace(size, reports=replace(size.reports, seed=seed))
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch, OwnJvms(quick=quick) as jvms:
        data = data_dir or Path(scratch, "data")
        bench = Bench(jvms, size, chosen, Path(scratch), data)
        parts = [
            compare(bench, case, number)
            for number in range(len(size.epoch_rows))
            for case in CASES
            if case.option in only
        ]
        if SMALL_EPOCHS in only:
            parts.append(small_epochs(bench))
        if EPOCH_SIZES in only:
            parts.append(epoch_sizes(bench))
    rows = [row for part in parts for row in part.rows]
    return report_here("peers", seed, rows, [check for part in parts for check in part.checks])


def _known(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    for each in given:
        if each not in known:
            raise BadBench(f"{option} has {each!r}; give some of {', '.join(known)}")


def _engines(given: Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        missing = () if has_polars() else ("polars",)
        for each in missing:
            say(f"{each} is not installed, so it is left out; pip install {each} adds it")
        return tuple(each for each in DEFAULT_ENGINES if each not in missing)
    _known("--engines", given, ENGINES)
    if "polars" in given and not has_polars():
        raise BadBench("--engines has 'polars', which is not installed; pip install polars, or leave it out")
    return tuple(given)


@dataclass(frozen=True)
class Bench:
    """What all parts share: JVMs, the size, the engines, a folder for outputs and one for data."""

    jvms: OwnJvms
    size: PeerSize
    engines: tuple[str, ...]
    scratch: Path
    data: Path
    _answers: dict[tuple[PeerQuery, Files], tuple[Delivered, Delivered]] = field(default_factory=dict)

    def files(self, case: Case) -> Files:
        """The streams of a case, written once."""
        if isinstance(case.query, JoinQuery):
            return Files.of_calls(self.size.calls, self.data, self.size.reports.seed)
        return Files.of_reports(self.size.reports, self.data)

    def answer(self, query: PeerQuery, files: Files, *, settled: bool) -> Delivered:
        """What DuckDB gives for all files; `settled`: only what no end of the input is needed for."""
        if (query, files) not in self._answers:
            with tempfile.TemporaryDirectory(dir=self.scratch) as place:
                output = Path(place, "out")
                run_alone(query.batch("duckdb", files.folders, output))
                answers = query.delivered(output, None), query.delivered(output, files.settled_us)
                self._answers[query, files] = answers
        return self._answers[query, files][settled]

    def run(self, engine: str, query: PeerQuery, files: Files, epoch_rows: int) -> Run:
        """One run of one engine over all files."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as place:
            job = PeerJob(files.folders, Path(place, "run"), files.each_epoch(epoch_rows))
            if engine in STREAMING:
                cost = self.jvms.cost(engine, partial(_whole_run, query, engine, job))
            else:
                few = files.first(_WARM_UP_PART).folders
                cost = cost_alone(
                    query.batch(engine, few, Path(place, "few")), query.batch(engine, job.sources, job.output)
                )
            return self._seen(engine, query, files, cost, job.output)

    def run_epochs(self, engine: str, size: EpochSize, files: Files) -> Run:
        """One run of a streaming engine, of which only the counted epochs are measured, each on its own."""
        query = WindowQuery(SIXTY_BY_TEN)
        with tempfile.TemporaryDirectory(dir=self.scratch) as place:
            job = query.job(PeerJob(files.folders, Path(place), files.each_epoch(size.rows)))
            cost = self.jvms.cost(engine, partial(_warm_epochs, engine, job, size))
            return self._seen(engine, query, files, cost, job.output)

    def _seen(self, engine: str, query: PeerQuery, files: Files, cost: Cost, output: Path) -> Run:
        # Spark does not deliver windows that are open at the end of its input.
        settled = engine.startswith("spark")
        got = query.delivered(output, files.settled_us if settled else None)
        expected = self.answer(query, files, settled=settled)
        return Run(files, cost, results.count(output), got, expected)


def _whole_run(query: PeerQuery, engine: str, job: PeerJob, spark: SparkSession) -> Cost:
    return cost_of(spark, partial(query.run, engine, spark, job))


def _warm_epochs(engine: str, job: Job, size: EpochSize, spark: SparkSession) -> Cost:
    with EPOCH_ENGINES[engine](spark, job, size.rows) as running:
        return epoch_cost(running, size.warm, size.counted)


def compare(bench: Bench, case: Case, number: int) -> Measured:
    """One case on all engines in turns, with the epochs of that number in `PeerSize.epoch_rows`."""
    epoch_rows = bench.size.epoch_rows[number]
    section = f"epochs of {epoch_rows:,} rows"
    whole = bench.files(case)
    # With other epochs everything has run before.
    rounds = bench.size.rounds if number == 0 else replace(bench.size.rounds, warm=False)
    engines = [each for each in bench.engines if each not in case.absent]
    runs: dict[str, list[Run]] = {engine: [] for engine in engines}
    for turn in rounds.turns:
        for engine in engines:
            if turn == 0 and engine in BATCH:
                continue
            files = whole.first(case.spark_part) if engine.startswith("spark") else whole
            ran = bench.run(engine, case.query, files, epoch_rows)
            say(f"{section}, {case.name}: {engine}, round {turn}: {1e6 / ran.wall_us:,.0f} rows/s")
            if turn:
                runs[engine].append(ran)
    rows = [case_row(section, case, engine, whole, epoch_rows, runs[engine]) for engine in engines]
    absent = [
        {"section": section, "case": case.name, "engine": engine, "note": why}
        for engine, why in case.absent.items()
        if engine in bench.engines
    ]
    name = f"{case.name}, {section}"
    checks = [*goals(case, name, number, runs, rounds.unjudged), *agreement(name, runs)]
    return Measured((*rows, *absent), tuple(checks))


def small_epochs(bench: Bench) -> Measured:
    """Epochs of a few thousand rows in a run that is long warm."""
    size = bench.size.small
    section = f"60 s by 10 s, small epochs after {size.warm} others"
    runs = _take_turns(bench, section, size, _streaming(bench))
    rows = [epoch_row(section, size, engine, of_engine) for engine, of_engine in runs.items()]
    checks = agreement(f"{section}, {size.rows:,} rows", runs)
    if "penstock" in runs:
        checks += epoch_goals(size, runs["penstock"], bench.size.rounds.unjudged)
    return Measured(tuple(rows), tuple(checks))


def epoch_sizes(bench: Bench) -> Measured:
    """What an epoch costs by its number of rows; the largest ones in Penstock alone."""
    section = "60 s by 10 s, an epoch by its rows"
    rows: list[Mapping[str, Value]] = []
    checks: list[Check] = []
    for size in bench.size.sweep:
        few = size.rows <= bench.size.spark_most
        engines = [each for each in _streaming(bench) if few or each == "penstock"]
        runs = _take_turns(bench, section, size, engines)
        rows += [epoch_row(section, size, engine, of_engine) for engine, of_engine in runs.items()]
        checks += agreement(f"{section}, {size.rows:,} rows", runs)
    return Measured(tuple(rows), tuple(checks))


def _streaming(bench: Bench) -> list[str]:
    return [engine for engine in bench.engines if engine in STREAMING]


def _take_turns(bench: Bench, section: str, size: EpochSize, engines: Sequence[str]) -> dict[str, list[Run]]:
    files = Files.of_reports(size.data(bench.size.reports), bench.data)
    runs: dict[str, list[Run]] = {engine: [] for engine in engines}
    for turn in range(bench.size.rounds.repeats):
        for engine in engines:
            ran = bench.run_epochs(engine, size, files)
            runs[engine].append(ran)
            say(
                f"{section}, {size.rows:,} rows: {engine}, round {turn + 1}: "
                f"{ran.cost.wall_s:.3f} s, {ran.cost.cpu_s:.3f} CPU s"
            )
    return runs
