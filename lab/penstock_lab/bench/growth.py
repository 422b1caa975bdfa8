"""`penstock bench growth`: Penstock as windows overlap more, keys multiply and time passes."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from penstock_lab.bench import results
from penstock_lab.bench.data import DataSet
from penstock_lab.bench.engines import PENSTOCK, Job, WindowSpan, measure, start_penstock
from penstock_lab.bench.growth_plot import EpochRecord, draw
from penstock_lab.bench.session import measuring_session
from penstock_lab.reports import Check, Report, Value, report_here, say

OVERLAPS = (1, 10, 100, 1000)
KEYS = (1_000, 10_000, 100_000, 1_000_000)
EPOCH_TIME_CEILING = 1.25
# State rises until a compaction and falls with it, so peaks are compared: they vary by 3 % with the keys that
# occur. Of the 30 panes that are open, two that are never dropped are 7 %.
STATE_CEILING = 1.05


@dataclass(frozen=True)
class LongRun:
    """A run of many small epochs: its windows, and how many early and late epochs are compared.

    The early part has `part` epochs and begins after `part` epochs, when the state of the windows is full.
    """

    epochs: int
    part: int
    window: WindowSpan

    @property
    def early(self) -> slice:
        """The epochs after the first part."""
        return slice(self.part, 2 * self.part)

    @property
    def late(self) -> slice:
        """The last epochs."""
        return slice(-self.part, None)


LONG = LongRun(epochs=300, part=50, window=WindowSpan(30, 1))
QUICK = LongRun(epochs=30, part=10, window=WindowSpan(10, 1))
QUICK_ROWS = 50_000
QUICK_UNJUDGED = (
    "in 30 epochs the JVM still warms up, and peaks of the state differ by one pane of 20 with the moment "
    "of a compaction; the ceiling is for 300 epochs"
)


@dataclass(frozen=True)
class Bench:
    """What the three parts share."""

    spark: SparkSession
    data: Path
    scratch: Path
    seed: int

    def measure(self, case: str, data: DataSet, window: WindowSpan) -> dict[str, Value]:
        """One row of the report: Penstock over the whole data set, two files an epoch."""
        folder = data.write(self.data)
        with tempfile.TemporaryDirectory(dir=self.scratch) as place:
            job = _job(folder, Path(place), window, files_per_epoch=2)
            cost = measure(PENSTOCK, self.spark, job)
            rows_out = results.count(job.output)
        say(f"{case}: {data.rows / cost.wall_s:,.0f} rows/s")
        return {
            "engine": PENSTOCK.name,
            "case": case,
            "rows_per_s": round(data.rows / cost.wall_s),
            "cpu_s": round(cost.cpu_s, 2),
            "wall_s": round(cost.wall_s, 3),
            "peak_mb": round(cost.peak_mb),
            "rows": data.rows,
            "rows_out": rows_out,
        }


def growth(  # noqa: PLR0913  each is one option of the command
    *,
    rows: int = 1_000_000,
    epochs: int = 300,
    seed: int = 7,
    quick: bool = False,
    data_dir: Path | None = None,
    plot: Path | None = None,
) -> Report:
    """Measure the three growths, and draw them into one figure if `plot` names a file."""
    long = QUICK if quick else replace(LONG, epochs=epochs)
    rows = min(rows, QUICK_ROWS) if quick else rows
    key_counts = KEYS[:-1] if quick else KEYS
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        bench = Bench(measuring_session(quick=quick), data_dir or Path(scratch, "data"), Path(scratch), seed)
        _warm_up(bench)
        overlaps = {factor: over_overlap(bench, rows, factor) for factor in OVERLAPS}
        keys = {count: over_keys(bench, rows, count) for count in key_counts}
        records = over_epochs(bench, long)
    if plot is not None:
        draw(plot, _rates(overlaps), _rates(keys), records)
    table = (*overlaps.values(), *keys.values(), *_epoch_rows(records, long))
    return report_here("growth", seed, table, checks(records, long, QUICK_UNJUDGED if quick else ""))


def over_overlap(bench: Bench, rows: int, factor: int) -> dict[str, Value]:
    """The same tuples in windows of `factor` seconds sliding by one second."""
    data = DataSet(rows=rows, seconds=1000, keys=1000, seed=bench.seed)
    return bench.measure(f"{factor} s by 1 s", data, WindowSpan(factor, 1))


def over_keys(bench: Bench, rows: int, keys: int) -> dict[str, Value]:
    """60 s windows sliding by 10 s over `keys` keys."""
    data = DataSet(rows=rows, seconds=200, keys=keys, seed=bench.seed)
    return bench.measure(f"60 s by 10 s, {keys:,} keys", data, WindowSpan(60, 10))


def over_epochs(bench: Bench, long: LongRun) -> list[EpochRecord]:
    """One file of one second an epoch: what each epoch took and left."""
    epochs = long.epochs
    say(f"{epochs} epochs")
    data = DataSet(rows=epochs * 5_000, seconds=epochs, keys=1000, seed=bench.seed, rows_per_file=5_000)
    folder = data.write(bench.data)
    with tempfile.TemporaryDirectory(dir=bench.scratch) as place:
        run = start_penstock(bench.spark, _job(folder, Path(place), long.window, files_per_epoch=1))
        run.wait()
        records = [EpochRecord(e.epoch, e.seconds, e.state_rows, e.state_bytes) for e in run.progress]
    # The epochs after the input's last close what is open; their state says nothing about growth.
    return records[:epochs]


def checks(records: Sequence[EpochRecord], long: LongRun = LONG, unjudged: str = "") -> tuple[Check, ...]:
    """The late epochs against the early ones: median of the time, peak of the state.

    A JVM that is still warming up in the early epochs hides some growth of the time.
    """
    # With fewer epochs the two parts would overlap.
    enough = len(records) >= 3 * long.part
    early, late = (records[long.early], records[long.late]) if enough else ([], [])
    time = _ratio(median, [r.seconds for r in early], [r.seconds for r in late])
    state = _ratio(max, [r.state_rows for r in early], [r.state_rows for r in late])
    source = f"the last {long.part} epochs against the epochs {long.part} to {2 * long.part}"
    return (
        Check("growth of the epoch time", time, source, ceiling=EPOCH_TIME_CEILING, unjudged=unjudged),
        Check("growth of the state rows", state, source, ceiling=STATE_CEILING, unjudged=unjudged),
    )


def _ratio(
    figure: Callable[[Sequence[float]], float], early: Sequence[float], late: Sequence[float]
) -> float | None:
    if not early or not late or figure(early) == 0:
        return None
    return round(figure(late) / figure(early), 3)


def _epoch_rows(records: Sequence[EpochRecord], long: LongRun) -> list[dict[str, Value]]:
    window = f"{long.window.size} s by {long.window.slide} s"
    return [
        {
            "engine": PENSTOCK.name,
            "case": f"epochs {part[0].epoch} to {part[-1].epoch}, {window}",
            "epoch_s": round(median(r.seconds for r in part), 4),
            "peak_state_rows": max(r.state_rows for r in part),
            "peak_state_mb": round(max(r.state_bytes for r in part) / 2**20, 2),
        }
        for part in (records[long.early], records[long.late])
        if part
    ]


def _rates(rows: dict[int, dict[str, Value]]) -> dict[int, float]:
    return {at: float(row["rows_per_s"] or 0) for at, row in rows.items()}


def _job(folder: Path, place: Path, window: WindowSpan, files_per_epoch: int) -> Job:
    return Job(folder, place / "out", place / "state", window, files_per_epoch)


def _warm_up(bench: Bench) -> None:
    data = DataSet(rows=100_000, seconds=100, keys=1000, seed=bench.seed, rows_per_file=20_000)
    bench.measure("warm-up, 10 s by 1 s", data, WindowSpan(10, 1))
