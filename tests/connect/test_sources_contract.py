"""What every source promises: each tuple once, the same again in a replay, and its end if it has one."""

import ast
import datetime as dt
import json
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from connect.own_source import LogSource
from penstock import connect
from penstock.connect import SOURCES
from penstock.errors import BadSource, RunError, WrongType
from penstock.expressions.schema import Schema
from penstock.ingest import Client, Gate

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
PLAIN = "time timestamp, k string, n bigint"
EVERY = (
    "time timestamp, local timestamp_ntz, day date, flag boolean, tiny tinyint, small smallint, whole int, "
    "big bigint, real float, n double, money decimal(20,2), k string, bytes binary, items array<bigint>, "
    "pair struct<a:bigint,b:string>"
)


def epochs_of(schema):
    """Three epochs of tuples; a column that is not of every schema is null in the second."""
    given = {
        "local": dt.datetime(2024, 1, 1, 12),  # noqa: DTZ001 -- a time without zone
        "day": dt.date(2024, 1, 1),
        "flag": True,
        "tiny": -128,
        "small": 7,
        "whole": -1,
        "big": 2**63 - 1,
        "real": 0.5,
        "money": 3,
        "bytes": b"\x00\xff",
        "items": [1, None],
        "pair": {"a": 1, "b": None},
    }
    arrow = Schema.parse(schema).arrow()

    def row(second, n):
        return {"time": START + dt.timedelta(seconds=second), "k": "ab"[n % 2], "n": n} | (
            {} if second == 10 else {name: value for name, value in given.items() if name in arrow.names}
        )

    batches = ([row(0, 1), row(1, 2)], [row(10, 3)], [row(20, 4), row(20, 5)])
    return [pa.Table.from_pylist(batch, arrow) for batch in batches]


@dataclass(frozen=True)
class SourceCase:
    """`make(session, folder, epochs)` is a context that gives a source of these tables."""

    name: str
    make: Callable
    schema: str = PLAIN


def parquet_files(folder, epochs):
    folder.mkdir()
    for number, table in enumerate(epochs):
        pq.write_table(table, folder / f"{number}.parquet")
    return str(folder)


def arrow_files(folder, epochs):
    folder.mkdir()
    for number, table in enumerate(epochs):
        with pa.ipc.new_file(folder / f"{number}.arrow", table.schema) as file:
            file.write_table(table)
    return str(folder)


def json_files(folder, epochs):
    folder.mkdir()
    for number, table in enumerate(epochs):
        lines = [json.dumps(row, default=dt.datetime.isoformat) for row in table.to_pylist()]
        (folder / f"{number}.json").write_text("\n".join(lines))
    return str(folder)


def log_files(folder, epochs):
    folder.mkdir()
    for number, table in enumerate(epochs):
        lines = [f"{row['time'].isoformat()} {row['k']} {row['n']}" for row in table.to_pylist()]
        (folder / f"{number}.log").write_text("\n".join(lines))
    return str(folder)


def frame_of(session, folder, epochs):
    path = parquet_files(folder / "in", epochs)
    reader = session.readStream.schema(Schema.from_arrow(epochs[0].schema).ddl())
    return ps.dataframe(reader.option("maxFilesPerTrigger", 1).parquet(path), bounded=True)


@contextmanager
def gate_with(_session, folder, epochs):
    with Gate("127.0.0.1:0", folder / "gate") as gate:
        with Client(gate.address, "t/one", epochs[0].schema) as client:
            for table in epochs:
                for batch in table.to_batches():
                    client.push(batch)
        yield ps.gates(gate.address, rows_per_epoch=2)


SOURCE_CASES = [
    SourceCase(
        "parquet",
        lambda _, folder, epochs: nullcontext(
            ps.files(parquet_files(folder / "in", epochs), files_per_epoch=1)
        ),
        EVERY,
    ),
    SourceCase(
        "json",
        lambda _, folder, epochs: nullcontext(
            ps.files(json_files(folder / "in", epochs), "json", files_per_epoch=1)
        ),
    ),
    SourceCase(
        "arrow",
        lambda _, folder, epochs: nullcontext(
            ps.files(arrow_files(folder / "in", epochs), "arrow", files_per_epoch=1)
        ),
        EVERY,
    ),
    SourceCase("rows", lambda _s, _f, epochs: nullcontext(ps.rows(epochs)), EVERY),
    SourceCase("dataframe", lambda *given: nullcontext(frame_of(*given)), EVERY),
    SourceCase("gates", gate_with),
    SourceCase("own", lambda _, folder, epochs: nullcontext(LogSource(log_files(folder / "in", epochs)))),
]

every_source = pytest.mark.parametrize("case", SOURCE_CASES, ids=lambda case: case.name)


class FailsOnce:
    """Keeps what it gets by number; fails after it has kept its second delivery, once."""

    def __init__(self):
        self.tables = {}
        self.failed = None

    def __call__(self, table, number):
        if self.failed is not None and number == self.failed:
            assert sorted_rows([table]) == sorted_rows([self.tables[number]])
        self.tables[number] = table
        if len(self.tables) == 2 and self.failed is None:
            self.failed = number
            raise OSError("no space left")


def sorted_rows(tables):
    return sorted((row for table in tables for row in table.to_pylist()), key=lambda row: row["n"])


def finish(run, rows, *, bounded):
    if bounded:
        run.wait()
        return
    end = time.monotonic() + 120
    while run.running and run.counts.rows < rows:
        assert time.monotonic() < end
        time.sleep(0.05)
    run.stop()


def test_the_suite_knows_every_source(spark, tmp_path):
    made = set()
    for case in SOURCE_CASES:
        folder = tmp_path / case.name
        folder.mkdir()
        with case.make(spark, folder, epochs_of(case.schema)) as source:
            made.add(type(source))
    assert set(SOURCES) <= made


@every_source
def test_each_tuple_comes_once_and_a_replay_brings_the_same(case, spark, tmp_path):
    epochs, sink = epochs_of(case.schema), FailsOnce()
    with case.make(spark, tmp_path, epochs) as source:
        stream = ps.stream("t", case.schema, "time", source=source)
        options = {"checkpoint": tmp_path / "state", "session": spark}
        with pytest.raises(RunError, match="no space left"):
            finish(stream.start(ps.each(sink), **options), 5, bounded=source.bounded)
        run = stream.start(ps.each(sink), **options)
        finish(run, 5, bounded=source.bounded)
        assert run.counts.rows == 5
        assert sorted_rows(sink.tables.values()) == sorted_rows(epochs)
        assert len(sink.tables) > 2


@every_source
def test_a_source_is_a_value_that_prints_short(case, spark, tmp_path):
    with case.make(spark, tmp_path, epochs_of(case.schema)) as source:
        assert "\n" not in repr(source)
        assert len(repr(source)) < 60 + len(str(tmp_path))
        one = ps.stream("t", case.schema, "time", source=source)
        assert hash(one.source) == hash(ps.stream("t", case.schema, "time", source=source).source)


def test_a_line_that_the_own_source_cannot_read_is_rejected(spark, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.log").write_text("2024-01-01T00:00:00Z a 1\noops\n")
    stream = ps.stream("t", PLAIN, "time", source=LogSource(str(tmp_path / "in")))
    run = stream.start(ps.memory(), checkpoint=tmp_path / "state", session=spark)
    run.wait()
    assert (run.counts.rows, run.counts.rejected, run.counts.results) == (2, 1, 1)


def test_the_own_source_is_asked_whether_it_fits():
    with pytest.raises(BadSource, match="a log has the columns time, k, n"):
        ps.stream("t", "time timestamp, v int", "time", source=LogSource("in"))


@pytest.mark.parametrize(
    ("columns", "error", "reason"),
    [
        (["value AS k"], BadSource, "no column 'time'"),
        (["timestamp AS time", "value AS k"], WrongType, "declared string, but the DataFrame has bigint"),
    ],
)
def test_the_columns_of_a_dataframe_are_checked_when_a_run_starts(columns, error, reason, spark):
    frame = spark.readStream.format("rate").load().selectExpr(*columns)
    stream = ps.stream("t", "time timestamp, k string", "time", source=ps.dataframe(frame))
    with pytest.raises(error, match=reason):
        stream.start(ps.memory(), session=spark)


@dataclass(frozen=True)
class Wrong(ps.Source):
    """Opens something that is no reader."""

    bounded: bool = True

    def open(self, context):
        return context.session.range(1)


def test_what_a_source_opens_is_a_reader(spark):
    stream = ps.stream("t", PLAIN, "time", source=Wrong())
    with pytest.raises(BadSource, match="gave a DataFrame, expected a Reader"):
        stream.start(ps.memory(), session=spark)


def test_a_source_needs_a_hash():
    @dataclass
    class Loose(ps.Source):
        bounded: bool = True

        def open(self, context):
            raise NotImplementedError

    with pytest.raises(BadSource, match="make it a frozen dataclass"):
        ps.stream("t", PLAIN, "time", source=Loose())


def test_declaring_imports_no_spark():
    # What a module imports when it is imported.
    folder = Path(connect.__file__).parent
    for path in folder.rglob("*.py"):
        names = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                names |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module)
        heavy = {name for name in names if name.split(".")[0] in {"pyspark", "deltalake", "rich"}}
        assert not heavy, (path, heavy)
