"""`penstock bench nexmark`: rows per second of each query that can be said, beside Structured Streaming.

Both read the same Parquet files with Spark's file source, take the same number of files an epoch and write
snappy Parquet. What Penstock delivers is compared with Spark's batch answer over all files, row by row; of
results that are updated, what stands at the end. Spark as a stream does not deliver windows that are open at
the end of its input, so its rows may be fewer.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import penstock as ps
from penstock_lab.bench.cost import Cost, cost_of
from penstock_lab.bench.nexmark_queries import MISSING, QUERIES, SIDE, NexmarkQuery
from penstock_lab.bench.session import measuring_session, settings, tuned_settings
from penstock_lab.bench.spark_sink import drain
from penstock_lab.errors import BadBench
from penstock_lab.reports import Check, Report, Value, report_here, say
from penstock_lab.workloads.nexmark import AUCTION, BID, PERSON, Nexmark

__all__ = ["FULL", "QUICK", "NexmarkSize", "nexmark"]

DELAY = "4 seconds"
_DDL = {"person": PERSON, "auction": AUCTION, "bid": BID}


@dataclass(frozen=True)
class NexmarkSize:
    """How much is run: events, so many a second; files of a stream and of an epoch; rounds, one counts."""

    events: int = 2_000_000
    rate: int = 10_000
    files: int = 20
    files_per_epoch: int = 4
    repeats: int = 2
    queries: tuple[str, ...] = tuple(QUERIES)


FULL = NexmarkSize()
QUICK = NexmarkSize(
    events=100_000, rate=1000, files=4, files_per_epoch=2, repeats=1, queries=("q0", "q5", "q17")
)


def nexmark(size: NexmarkSize = FULL, *, seed: int = 7, quick: bool = False) -> Report:
    """Run every query in both engines and compare the answers."""
    _check(size.queries)
    spark = measuring_session(quick=quick)
    house = Nexmark(size.events, size.rate, seed)
    rows: list[dict[str, Value]] = []
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        bench = _Bench(spark, size, house, house.write(Path(scratch) / "data", size.files), Path(scratch))
        spark.createDataFrame(SIDE.to_pandas()).createOrReplaceTempView("side")
        # What is compiled and started once must not count for the first query alone.
        bench.warm_up()
        for name in size.queries:
            say(name)
            ours, theirs, check = bench.compared(name, QUERIES[name])
            rows += [ours, theirs]
            checks.append(check)
    for name, why in MISSING.items():
        rows.append({"query": name, "engine": "penstock", "note": f"not here: {why}"})
    return report_here("nexmark", seed, rows, checks)


def _check(queries: Sequence[str]) -> None:
    for each in queries:
        if each not in QUERIES:
            why = f" (it needs {MISSING[each]})" if each in MISSING else ""
            raise BadBench(f"--queries has {each!r}{why}; give some of {', '.join(QUERIES)}")


@dataclass
class _Bench:
    spark: SparkSession
    size: NexmarkSize
    house: Nexmark
    folders: dict[str, Path]
    scratch: Path
    _runs: int = 0

    def warm_up(self) -> None:
        """Run a query that both engines can say."""
        say("warming up")
        self._run_penstock(QUERIES["q0"], self._place())
        self._run_spark(QUERIES["q0"], self._place())

    def compared(self, name: str, query: NexmarkQuery) -> tuple[dict[str, Value], dict[str, Value], Check]:
        """The rows of both engines, and how many rows of Penstock's answer are not those of the truth."""
        ours, theirs = [], []
        note = ""
        places = [(self._place(), self._place()) for _ in range(self.size.repeats)]
        # By turns, so that a disturbance of the machine hits both alike.
        for own, other in places:
            ours.append(cost_of(self.spark, partial(self._run_penstock, query, own)))
            try:
                theirs.append(cost_of(self.spark, partial(self._run_spark, query, other)))
            except AnalysisException as error:
                note = f"Spark: {str(error).splitlines()[0][:120]}"
        found = ds.dataset(ps.delivered(places[0][0] / "out")).to_table()
        truth = self._truth(query)
        check = Check(
            f"{name}: rows that differ from Spark's batch answer",
            _differing(_standing(found), truth),
            ceiling=0,
            source="the same rows as a batch engine",
        )
        best = min(ours, key=lambda cost: cost.wall_s)
        read = sum(self.house.tables[each].num_rows for each in query.reads)
        mine = _row(name, "penstock", read, best, found.num_rows)
        if not theirs:
            return mine, {"query": name, "engine": "spark", "note": note}, check
        fastest = min(theirs, key=lambda cost: cost.wall_s)
        mine["ratio"] = round(fastest.wall_s / best.wall_s, 2)
        delivered = ds.dataset(
            places[0][1] / "out", format="parquet", exclude_invalid_files=True
        ).count_rows()
        return mine, _row(name, "spark", read, fastest, delivered), check

    def _place(self) -> Path:
        self._runs += 1
        return self.scratch / f"run-{self._runs}"

    def _run_penstock(self, query: NexmarkQuery, place: Path) -> None:
        streams = {
            each: ps.stream(
                each,
                _DDL[each],
                time="date_time",
                delay=DELAY,
                source=ps.files(str(self.folders[each]), files_per_epoch=self.size.files_per_epoch),
            )
            for each in query.reads
        }
        sink = ps.parquet(place / "out", compression="snappy")
        query.penstock(streams).start(sink, place / "state", session=self.spark).wait(live=False)

    def _run_spark(self, query: NexmarkQuery, place: Path) -> None:
        with settings(self.spark, tuned_settings()):
            for each in query.reads:
                frame = (
                    self.spark.readStream.schema(_DDL[each])
                    .option("maxFilesPerTrigger", self.size.files_per_epoch)
                    .parquet(str(self.folders[each]))
                )
                frame.withWatermark("date_time", DELAY).createOrReplaceTempView(each)
            drain(self.spark.sql(query.spark), place / "out", place / "state")

    def _truth(self, query: NexmarkQuery) -> pa.Table:
        with settings(self.spark, tuned_settings()):
            for each in query.reads:
                self.spark.read.schema(_DDL[each]).parquet(str(self.folders[each])).createOrReplaceTempView(
                    each
                )
            return self.spark.sql(query.spark).toArrow()


def _row(name: str, engine: str, read: int, cost: Cost, results: int) -> dict[str, Value]:
    return {
        "query": name,
        "engine": engine,
        "rows_per_s": round(read / cost.wall_s),
        "wall_s": round(cost.wall_s, 2),
        "cpu_s": round(cost.cpu_s, 2),
        "peak_mb": round(cost.peak_mb),
        "results": results,
    }


def _standing(found: pa.Table) -> pa.Table:
    """What all changes add up to, where results are updated."""
    if "change" not in found.column_names:
        return found
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("found", found)
        query = (
            "SELECT * EXCLUDE (change) FROM found WHERE change <> 'retract' EXCEPT ALL "
            "SELECT * EXCLUDE (change) FROM found WHERE change = 'retract'"
        )
        return database.sql(query).to_arrow_table()


def _differing(found: pa.Table, truth: pa.Table) -> int:
    """The rows that only one of two tables has, however often; by the columns of the truth."""
    with duckdb.connect() as database:
        database.register("found", _plain(found.select(truth.column_names)))
        database.register("truth", _plain(truth))
        query = (
            "SELECT (SELECT count(*) FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM truth)) + "
            "(SELECT count(*) FROM (SELECT * FROM truth EXCEPT ALL SELECT * FROM found))"
        )
        row: Any = database.execute(query).fetchone()
    return int(row[0])


def _plain(table: pa.Table) -> pa.Table:
    """Times as microseconds: the engines name their zones differently."""
    columns = [
        column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)
