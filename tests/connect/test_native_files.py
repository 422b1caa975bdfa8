"""Workers and Spark read the same tuples from Parquet files; what only Spark can read, it reads."""

import datetime as dt
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock.query as ps
from connect.reading import frame_rows, opened, split_rows
from connect.test_sources_contract import EVERY, epochs_of
from penstock.expressions.schema import Schema

TYPES = EVERY + ", names map<string,int>, deep array<struct<a:array<string>,m:map<bigint,date>>>"
PLAIN = "time timestamp, k string, n bigint"
EDGES = {
    "time": [
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    ],
    "local": [dt.datetime(1500, 2, 28, 1), dt.datetime(1582, 10, 10)],  # noqa: DTZ001 -- a time without zone
    "day": [dt.date(1, 1, 1), dt.date(1582, 10, 10)],
    "tiny": [-128, 127],
    "small": [-(2**15), 2**15 - 1],
    "whole": [-(2**31), 2**31 - 1],
    "big": [-(2**63), 2**63 - 1],
    "real": [float("inf"), -0.0],
    "n": [float("-inf"), 5e-324],
    "money": [decimal.Decimal("-999999999999999999.99"), decimal.Decimal("0.01")],
    "k": ["", "žluť \u0000 𝄞"],
    "bytes": [b"", b"\x00\xff"],
    "items": [[], [None, -1]],
    "pair": [{"a": None, "b": "x"}, {"a": 2**62, "b": None}],
    "names": [[], [("a", 1), ("b", None)]],
    "deep": [[None, {"a": [], "m": []}], [{"a": ["x", None], "m": [(1, dt.date(1400, 1, 1))]}]],
}


def every_type():
    """Ordinary values, edges, and a row of nulls."""
    arrow = Schema.parse(TYPES).arrow()
    ordinary = pa.concat_tables(epochs_of(EVERY))
    for field in arrow:
        if field.name not in ordinary.column_names:
            ordinary = ordinary.append_column(field, pa.nulls(ordinary.num_rows, field.type))
    edges = pa.table(
        {
            name: pa.array([*EDGES.get(name, [True, False]), None], arrow.field(name).type)
            for name in arrow.names
        }
    )
    return pa.concat_tables([ordinary, edges.cast(arrow)])


def read_by_spark(spark, paths, schema):
    """A frame as Arrow, so that values beyond Python's and floats are compared as they are."""
    frame = spark.read.schema(schema).parquet(*map(str, paths))
    return frame.select(*Schema.parse(schema).names).toArrow()


def as_text(table):
    """Values as text, in which NaN, -0.0 and times of any year can be compared."""
    plain = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())  # noqa: PLW2901
        plain.append([repr(value) for value in column.to_pylist()])
    return list(zip(*plain, strict=True))


def opened_on(folder, spark, tmp_path, schema, **options):
    reader = opened(ps.files(folder, **options), spark, tmp_path / "own", schema)
    return reader, reader.ahead({}).offset


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.mark.parametrize(
    "written", ["arrow", "no arrow schema", "dictionaries", "large", "views", "milliseconds"]
)
def test_workers_read_what_spark_reads(folder, spark, tmp_path, written):
    rows, names = every_type(), Schema.parse(TYPES).names
    options = {"store_schema": written != "no arrow schema"}
    if written == "dictionaries":
        rows = rows.set_column(rows.column_names.index("k"), "k", rows["k"].dictionary_encode())
    if written in {"large", "views"}:
        texts = pa.large_string() if written == "large" else pa.string_view()
        bytes_ = pa.large_binary() if written == "large" else pa.binary_view()
        rows = rows.set_column(rows.column_names.index("k"), "k", rows["k"].cast(texts))
        rows = rows.set_column(rows.column_names.index("bytes"), "bytes", rows["bytes"].cast(bytes_))
    if written == "milliseconds":
        # To the millisecond below, as Spark would read it.
        times = pa.compute.floor_temporal(rows["time"], unit="millisecond").cast(
            pa.timestamp("ms", "Europe/Berlin")
        )
        rows = rows.set_column(0, "time", times)
    pq.write_table(rows, folder / "a", row_group_size=4, **options)
    pq.write_table(rows.slice(0, 0), folder / "empty", **options)
    with pq.ParquetWriter(folder / "no groups", rows.schema, **options):
        pass
    (folder / "nothing").write_bytes(b"")
    reader, upto = opened_on(folder, spark, tmp_path, TYPES)
    assert not reader.frames(spark, {}, upto)
    read = split_rows(reader, {}, upto, names)
    assert read.schema.types == [each.type for each in Schema.parse(TYPES).arrow()]
    assert str(read.schema.types) == str([each.type for each in Schema.parse(TYPES).arrow()])
    assert all(each.nullable for each in read.schema)
    assert read.num_rows == rows.num_rows
    assert as_text(read) == as_text(read_by_spark(spark, [folder / "a"], TYPES))


def test_only_some_columns_in_any_order(folder, spark, tmp_path):
    rows = every_type()
    pq.write_table(rows, folder / "a")
    reader, upto = opened_on(folder, spark, tmp_path, TYPES)
    for names in (["pair", "time"], ["n"], ["deep", "names", "k"]):
        assert as_text(split_rows(reader, {}, upto, names)) == as_text(rows.select(names))


def test_files_that_spark_wrote_are_read_by_workers(folder, spark, tmp_path):
    pq.write_table(every_type(), folder / "a")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        spark.read.schema(TYPES).parquet(str(folder)).coalesce(1).write.parquet(str(folder / "out"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    reader, upto = opened_on(folder / "out", spark, tmp_path, TYPES)
    assert not reader.frames(spark, {}, upto)
    names = Schema.parse(TYPES).names
    assert as_text(split_rows(reader, {}, upto, names)) == as_text(every_type())


TIME = pa.array([0, 1], pa.timestamp("us", "UTC"))
ROWS = pa.table({"time": TIME, "k": ["a", "b"], "n": [1, 2]})


def with_column(name, values, number=2):
    return ROWS.set_column(number, name, values)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (ROWS.drop_columns("n"), {}),
        (with_column("N", ROWS["n"]), {}),
        (with_column("n", ROWS["n"].cast(pa.int32())), {}),
        (with_column("n", ROWS["n"].cast(pa.uint32())), {}),
        (ROWS, {"use_deprecated_int96_timestamps": True}),
        (with_column("time", TIME.cast(pa.timestamp("us")), 0), {}),
        (
            ROWS.replace_schema_metadata(
                {"org.apache.spark.version": "4.0.0", "org.apache.spark.legacyDateTime": ""}
            ),
            {},
        ),
        (
            ROWS.replace_schema_metadata(
                {"org.apache.spark.version": "4.0.0", "org.apache.spark.legacyINT96": ""}
            ),
            {},
        ),
        (ROWS.replace_schema_metadata({"org.apache.spark.version": "2.4.8"}), {}),
    ],
    ids=["missing", "case", "narrower", "unsigned", "INT96", "local", "legacy", "legacy96", "old"],
)
def test_spark_reads_files_that_need_its_rules(folder, spark, tmp_path, rows, options):
    pq.write_table(rows, folder / "a", **options)
    pq.write_table(ROWS, folder / "b")
    reader, upto = opened_on(folder, spark, tmp_path, PLAIN)
    assert split_rows(reader, {}, upto, ["n"])["n"].to_pylist() == [1, 2]
    assert {split.file for split in reader.splits({}, upto, 2)} == {str(folder / "b")}
    (frame,) = reader.frames(spark, {}, upto)
    assert frame.columns == ["time", "k", "n"]
    assert as_text(frame.toArrow()) == as_text(read_by_spark(spark, [folder / "a"], PLAIN))


def test_nested_fields_that_differ_go_to_spark(folder, spark, tmp_path):
    schema = "time timestamp, s struct<a:bigint,b:string>"
    for name, struct in (("a", {"b": "x", "a": 1}), ("b", {"a": 1, "b": "x"}), ("c", {"a": 1})):
        pq.write_table(pa.table({"time": TIME[:1], "s": [struct]}), folder / name)
    reader, upto = opened_on(folder, spark, tmp_path, schema)
    assert {split.file for split in reader.splits({}, upto, 2)} == {str(folder / "b")}
    rows = {row["s"] for row in frame_rows(reader, spark, {}, upto)}
    assert rows == {(1, "x"), (1, None)}


def test_lists_of_an_older_form_go_to_spark(folder, spark, tmp_path):
    """A list without the group `element`, as older writers have it."""
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        frame = spark.sql("SELECT timestamp '2024-01-01' AS time, array(1L, NULL) AS l")
        frame.coalesce(1).write.mode("overwrite").parquet(str(folder))
    finally:
        spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    reader, upto = opened_on(folder, spark, tmp_path, "time timestamp, l array<bigint>")
    assert not reader.splits({}, upto, 2)
    assert [row["l"] for row in frame_rows(reader, spark, {}, upto)] == [[1, None]]


def test_columns_of_the_path_go_to_spark(folder, spark, tmp_path):
    for day in (1, 2):
        for name in ("day", "other"):
            (folder / f"{name}={day}").mkdir()
            pq.write_table(ROWS.slice(day - 1, 1), folder / f"{name}={day}" / "a")
    (folder / "deep" / "day=3").mkdir(parents=True)
    pq.write_table(ROWS.slice(0, 1), folder / "deep" / "day=3" / "a")
    reader, upto = opened_on(folder, spark, tmp_path, PLAIN + ", day int")
    assert not reader.splits({}, upto, 2)
    rows = {(row["n"], row["day"]) for row in frame_rows(reader, spark, {}, upto)}
    assert rows == {(1, 1), (2, 2), (1, 3), (1, None), (2, None)}
    plain = opened(ps.files(folder), spark, tmp_path / "plain", PLAIN)
    upto = plain.ahead({}).offset
    assert sorted(split_rows(plain, {}, upto, ["n"])["n"].to_pylist()) == [1, 1, 1, 2, 2]
    assert not plain.frames(spark, {}, upto)


def test_options_and_other_calendars_leave_files_to_spark(folder, spark, tmp_path):
    pq.write_table(ROWS, folder / "a")
    reader, upto = opened_on(folder, spark, tmp_path, PLAIN, options={"mergeSchema": "true"})
    assert not reader.splits({}, upto, 2)
    assert len(frame_rows(reader, spark, {}, upto)) == 2
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    try:
        legacy = opened(ps.files(folder), spark, tmp_path / "legacy", PLAIN)
        assert not legacy.splits({}, legacy.ahead({}).offset, 2)
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")


def test_names_that_look_like_patterns(folder, spark, tmp_path):
    for number, name in enumerate(["a b", "%20", "[x]", "{y}", "ž", "*"]):
        rows = ROWS.slice(number % 2, 1)
        pq.write_table(rows, folder / name)
        pq.write_table(rows.drop_columns("k"), folder / f"{name}.spark")
    reader, upto = opened_on(folder, spark, tmp_path, PLAIN)
    assert sorted(split_rows(reader, {}, upto, ["n"])["n"].to_pylist()) == [1, 1, 1, 2, 2, 2]
    assert sorted(row["n"] for row in frame_rows(reader, spark, {}, upto)) == [1, 1, 1, 2, 2, 2]


def test_orc_files_are_read_by_spark(folder, spark, tmp_path):
    pq.write_table(ROWS, folder / "a")
    spark.read.parquet(str(folder)).write.orc(str(folder / "orc"))
    reader, upto = opened_on(folder / "orc", spark, tmp_path, PLAIN, format="orc")
    assert sorted(row["n"] for row in frame_rows(reader, spark, {}, upto)) == [1, 2]
