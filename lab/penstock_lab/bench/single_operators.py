"""Aggregate and map of [002] §IV.B, from files to files: rows a second of whole runs.

The aggregate counts calls and averages their duration by district over a minute that advances every ten
seconds. The map turns start and end of a call into its duration and its place into kilometres, once as an
expression and once as a Python function over Arrow.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import penstock as ps
from penstock.query import Relation
from penstock_lab.bench import results
from penstock_lab.bench.cost import cost_of
from penstock_lab.bench.data import first_files, write_files
from penstock_lab.bench.timing import Measured, Rounds
from penstock_lab.reports import Value, say
from penstock_lab.workloads import CallRecords
from penstock_lab.workloads.calls import CALL_COLUMNS

__all__ = ["QUERIES", "OperatorSize", "single_operators"]

WARM_UP_FILES = 2
_SECONDS = "(unix_micros(stop) - unix_micros(start)) / 1000000"


@dataclass(frozen=True)
class OperatorSize:
    """`calls` over `seconds`, a file for each `calls_per_file`."""

    calls: int
    seconds: int
    calls_per_file: int
    files_per_epoch: int


def aggregate(calls: Relation) -> Relation:
    """Calls and their mean duration by district."""
    length = calls.select("district", length=_SECONDS)
    windows = length.group_by("district").window("1 minute", slide="10 seconds")
    return windows.agg(calls=ps.count(), mean=ps.avg("length"))


def sql_map(calls: Relation) -> Relation:
    """Duration and place as expressions."""
    return calls.select("caller", "called", length=_SECONDS, east="x / 1000", north="y / 1000")


def python_map(calls: Relation) -> Relation:
    """The same as a Python function over Arrow."""
    schema = "caller bigint, called bigint, length double, east double, north double"
    return calls.map(_mapped, schema)


def _mapped(batch: Any) -> Any:
    start, stop = (pc.cast(batch[name], pa.int64()) for name in ("start", "stop"))
    columns = {
        "caller": batch["caller"],
        "called": batch["called"],
        "length": pc.divide(pc.cast(pc.subtract(stop, start), pa.float64()), 1e6),
        "east": pc.divide(batch["x"], 1000.0),
        "north": pc.divide(batch["y"], 1000.0),
    }
    return pa.RecordBatch.from_pydict(columns)


QUERIES: Mapping[str, Callable[[Relation], Relation]] = {
    "aggregate by district, 60 s by 10 s": aggregate,
    "map, an expression": sql_map,
    "map, a Python function over Arrow": python_map,
}


def single_operators(spark: SparkSession, size: OperatorSize, rounds: Rounds, seed: int) -> Measured:
    """All queries in turn, each as the best of several rounds."""
    say(f"single operators: {size.calls:,} calls over {size.seconds:,} s")
    best: dict[str, dict[str, Value]] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        records = CallRecords(size.calls, size.seconds, seed=seed)
        folder = write_files(Path(scratch, "calls"), lambda: records.table, size.calls_per_file)
        few = first_files(folder, WARM_UP_FILES)
        for turn in rounds.turns:
            for case in QUERIES:
                row = _round(spark, case, folder if turn else few, size)
                if not turn:
                    continue
                say(f"{case}, round {turn}: {row['rows_per_s']:,} rows/s")
                best[case] = min(best.get(case, row), row, key=lambda each: float(each["wall_s"] or 0))
    return Measured(tuple(best.values()), ())


def _round(spark: SparkSession, case: str, folder: Path, size: OperatorSize) -> dict[str, Value]:
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        cost = cost_of(spark, partial(_run, spark, case, folder, Path(place), size.files_per_epoch))
        rows_out = results.count(Path(place, "out"))
    return {
        "engine": "penstock",
        "case": case,
        "rows_per_s": round(size.calls / cost.wall_s),
        "cpu_s": round(cost.cpu_s, 2),
        "wall_s": round(cost.wall_s, 3),
        "peak_mb": round(cost.peak_mb),
        "rows": size.calls,
        "rows_out": rows_out,
    }


def _run(spark: SparkSession, case: str, folder: Path, place: Path, files_per_epoch: int) -> None:
    source = ps.files(str(folder), files_per_epoch=files_per_epoch)
    calls = ps.stream("calls", CALL_COLUMNS, time="time", delay="1 second", source=source)
    sink = ps.parquet(str(place / "out"))
    QUERIES[case](calls).start(sink, checkpoint=str(place / "state"), session=spark).wait()
