"""What `penstock bench peers` reports of its runs: medians over rounds, goals, and whether engines agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from penstock_lab.bench.cost import Cost
from penstock_lab.bench.peer_cases import Case, EpochSize, Files
from penstock_lab.bench.peer_queries import STREAMING
from penstock_lab.bench.results import Delivered
from penstock_lab.reports import Check, Value

__all__ = ["Run", "Runs", "agreement", "case_row", "epoch_goals", "epoch_row", "goals"]

EPOCH_S = 0.16
EPOCH_CPU_S = 0.3
_GOAL = "goal"
_SAME = "every engine gives the same rows over the same files"


@dataclass(frozen=True)
class Run:
    """One run of one engine: what it took, and what it delivered beside what it had to deliver."""

    files: Files
    cost: Cost
    rows_out: int
    got: Delivered
    expected: Delivered

    @property
    def wall_us(self) -> float:
        """Microseconds a row by the clock."""
        return self.cost.wall_s / self.files.rows * 1e6

    @property
    def cpu_us(self) -> float:
        """Microseconds of processor time a row."""
        return self.cost.cpu_s / self.files.rows * 1e6


Runs = Mapping[str, Sequence[Run]]


def case_row(  # noqa: PLR0913, PLR0917 -- a row in full
    section: str, case: Case, engine: str, whole: Files, epoch_rows: int, runs: Sequence[Run]
) -> dict[str, Value]:
    """One engine in one case."""
    files = runs[0].files
    part = f"the first {files.rows:,} of {whole.rows:,} rows; compared per row"
    return {
        "section": section,
        "case": case.name,
        "engine": engine,
        "rows": files.rows,
        "epoch_rows": min(epoch_rows, files.rows) if engine in STREAMING else None,
        "rows_per_s": round(median(1e6 / run.wall_us for run in runs)),
        "wall_s": round(median(run.cost.wall_s for run in runs), 3),
        "cpu_s": round(median(run.cost.cpu_s for run in runs), 2),
        "cpu_us_per_row": round(median(run.cpu_us for run in runs), 3),
        "peak_mb": round(max(run.cost.peak_mb for run in runs)),
        "rows_out": runs[-1].rows_out,
        "note": part if files.rows < whole.rows else None,
    }


def epoch_row(section: str, size: EpochSize, engine: str, runs: Sequence[Run]) -> dict[str, Value]:
    """One engine with epochs of one size."""
    return {
        "section": section,
        "engine": engine,
        "epoch_rows": size.rows,
        "warm_epochs": size.warm,
        "epochs": size.counted,
        "epoch_s": round(median(run.cost.wall_s for run in runs), 4),
        "epoch_cpu_s": round(median(run.cost.cpu_s for run in runs), 4),
        "peak_mb": round(max(run.cost.peak_mb for run in runs)),
        "rows_out": runs[-1].rows_out,
    }


def goals(case: Case, name: str, number: int, runs: Runs, unjudged: str) -> list[Check]:
    """The goals of a case, as far as the engines that ran allow to judge them."""
    if "penstock" not in runs:
        return []
    wall = {engine: median(run.wall_us for run in of_engine) for engine, of_engine in runs.items()}
    cpu = {engine: median(run.cpu_us for run in of_engine) for engine, of_engine in runs.items()}
    checks = []
    if "duckdb" in runs and case.over_duckdb:
        most, over = case.over_duckdb[number], round(cpu["penstock"] / cpu["duckdb"], 2)
        checks.append(Check(f"CPU over DuckDB's, {name}", over, _GOAL, ceiling=most, unjudged=unjudged))
    if case.cpu_s is not None and number == 0:
        what = f"CPU seconds for 10,000,000 rows, {name}"
        checks.append(
            Check(what, round(10 * cpu["penstock"], 2), _GOAL, ceiling=case.cpu_s, unjudged=unjudged)
        )
    if "spark" in runs and case.over_spark is not None and number == 0:
        for what, each in (("time", wall), ("CPU", cpu)):
            over = round(each["spark"] / each["penstock"], 2)
            checks.append(
                Check(
                    f"Spark's {what} over ours, {name}", over, _GOAL, floor=case.over_spark, unjudged=unjudged
                )
            )
    return checks


def epoch_goals(size: EpochSize, runs: Sequence[Run], unjudged: str) -> list[Check]:
    """The goals of a small epoch."""
    wall = round(median(run.cost.wall_s for run in runs), 3)
    cpu = round(median(run.cost.cpu_s for run in runs), 3)
    what = f"of an epoch of {size.rows:,} rows after {size.warm} others"
    return [
        Check(f"seconds {what}", wall, _GOAL, ceiling=EPOCH_S, unjudged=unjudged),
        Check(f"CPU seconds {what}", cpu, _GOAL, ceiling=EPOCH_CPU_S, unjudged=unjudged),
    ]


def agreement(name: str, runs: Runs) -> list[Check]:
    """Every round of every engine against DuckDB's answer over the same files, by count and checksum."""
    if not runs:
        return []
    least = min(run.expected.rows for of_engine in runs.values() for run in of_engine)
    compared = Check(f"rows compared, {name}", least, _SAME, floor=1)
    wrong = {engine: sum(run.got != run.expected for run in of_engine) for engine, of_engine in runs.items()}
    return [
        compared,
        *(
            Check(f"rounds of {engine} that differ from DuckDB's answer, {name}", count, _SAME, ceiling=0)
            for engine, count in wrong.items()
        ),
    ]
