"""The intake of a stream on Arrow: what fits, what is late, what is rejected and why, and what was seen."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pytest

import penstock.query as ps
from penstock.columns import TIME
from penstock.connect import ARRIVED, CORRUPT, FILE, REASON
from penstock.runtime.dataflow.intake import REJECTS, Intake
from penstock.runtime.dataflow.receipts import StreamSeen

SCHEMA = "time timestamp, k string, n bigint NOT NULL, extra double"
TYPES = pa.schema(
    [("time", pa.timestamp("us", "UTC")), ("k", pa.string()), ("n", pa.int64()), ("extra", pa.float64())]
)
NOW = 1_000_000_000


def intake(*read, schema=SCHEMA, **options):
    return Intake.of(ps.stream("t", schema, "time", **options), read)


def batch(*rows, **more):
    """Rows of (time, k, n), and further columns."""
    names = ("time", "k", "n")
    columns = [
        pa.array([row[place] for row in rows], TYPES.field(name).type) for place, name in enumerate(names)
    ]
    extra = pa.nulls(len(rows), pa.float64())
    given = dict(zip(names, columns, strict=True)) | {"extra": extra} | more
    return pa.RecordBatch.from_pydict(given)


def numbers(taken):
    return taken.rows["n"].to_pylist()


def test_tuples_that_fit_pass_with_their_time():
    taken = intake("k").take(batch((5, "a", 1), (3, None, 2)), None, NOW)
    assert taken.rows.column_names == ["time", "k", "n", TIME]
    assert taken.rows[TIME].to_pylist() == [5, 3]
    assert (taken.rejected, taken.late) == (None, None)
    assert taken.seen == StreamSeen(rows=2, latest=5, earliest=3)


def test_only_what_is_read_or_required_is_kept():
    assert intake().needed == ("time", "n")
    assert intake("extra").needed == ("time", "n", "extra")
    assert intake(key="k").needed == ("time", "k", "n")


def test_tuples_below_the_bound_are_late_as_they_came():
    given, found = batch((5, "a", 1), (3, "b", 2), (4, None, 3)), intake()
    taken = found.take(given, 4, NOW)
    assert numbers(taken) == [1, 3]
    assert taken.late.tolist() == [False, True, False]
    assert taken.seen == StreamSeen(rows=3, latest=5, earliest=3, late=1)
    late = found.late_rows(given, taken.late)
    assert late.schema.equals(TYPES)
    assert late.drop_columns(["time"]).to_pylist() == [{"k": "b", "n": 2, "extra": None}]


@pytest.mark.parametrize("bound", [None, 100])
def test_tuples_without_a_time_or_a_value_are_rejects_and_not_late(bound):
    given, found = batch((None, "a", 1), (7, "b", None), (900, "c", 3)), intake()
    taken = found.take(given, bound, NOW)
    assert numbers(taken) == [3]
    assert taken.rejected.tolist() == [True, True, False]
    assert taken.late is None
    assert taken.seen == StreamSeen(rows=3, latest=900, earliest=900, rejected=2)
    rejects = found.rejects(given, taken.rejected, NOW, "file:/in/a.parquet")
    assert rejects.schema.equals(REJECTS)
    assert rejects["reason"].to_pylist() == [
        "column time is null; expected timestamp",
        "column n is null; expected bigint",
    ]
    assert rejects["file"].to_pylist() == ["file:/in/a.parquet"] * 2
    records = [json.loads(each) for each in rejects["record"].to_pylist()]
    assert [set(each) for each in records] == [{"k", "n"}, {"time", "k"}]


def test_rejects_and_late_tuples_of_one_batch_are_told_apart():
    taken = intake().take(batch((1, "a", None), (2, "b", 2), (9, "c", 3)), 5, NOW)
    assert numbers(taken) == [3]
    assert (taken.rejected.tolist(), taken.late.tolist()) == ([True, False, False], [False, True, False])
    assert taken.seen == StreamSeen(rows=3, latest=9, earliest=2, late=1, rejected=1)


def test_a_batch_of_rejects_says_nothing_of_time():
    taken = intake().take(batch((None, "a", 1), (None, "b", 2)), 5, NOW)
    assert taken.rows.num_rows == 0
    assert taken.seen == StreamSeen(rows=2, rejected=2)


def test_an_empty_batch_is_nothing():
    taken = intake(ahead="1 second", key="k").take(batch(), 5, NOW)
    assert taken.rows.num_rows == 0
    assert taken.seen == StreamSeen()


def test_tuples_too_far_ahead_of_the_clock_are_rejects():
    second = 1_000_000
    found = intake(ahead="10 seconds")
    given = batch((NOW + 10 * second, "a", 1), (NOW + 10 * second + 1, "b", 2), (None, "c", 3))
    taken = found.take(given, None, NOW)
    assert numbers(taken) == [1]
    assert taken.seen.latest == NOW + 10 * second
    reasons = found.rejects(given, taken.rejected, NOW, None)["reason"].to_pylist()
    assert reasons[0].startswith("column time: 1970-01-01 00:16:50.000001")
    assert reasons[0].endswith("is more than 10 seconds ahead of the clock (1970-01-01 00:16:40 UTC)")
    assert reasons[1] == "column time is null; expected timestamp"
    # Without a limit the clock does not matter.
    assert intake().take(given, None, NOW).seen.rejected == 1


def test_records_that_a_source_cannot_read_are_rejects_with_its_reason():
    given = batch(
        (1, "a", 1),
        (None, None, None),
        (3, "c", 3),
        **{CORRUPT: [None, "oops", "half"], REASON: [None, "no number", None], FILE: ["x", "y", None]},
    )
    taken = intake().take(given, None, NOW)
    assert numbers(taken) == [1]
    rejects = intake().rejects(given, taken.rejected, NOW, "z").to_pylist()
    assert rejects == [
        {"reason": "no number", "record": "oops", "file": "y"},
        {"reason": "the record is malformed", "record": "half", "file": "z"},
    ]


@pytest.mark.parametrize(
    ("type_", "values", "names"),
    [
        ("string", ["a", None, "a", "b"], ["a", ""]),
        ("int", [7, None, 7, 8], ["7", ""]),
        ("boolean", [True, None, True, False], ["true", ""]),
        ("date", [dt.date(2024, 1, 2), None, dt.date(2024, 1, 2), None], ["2024-01-02", ""]),
    ],
)
def test_the_streams_behind_a_source_have_their_own_latest_times(type_, values, names):
    found = intake(schema=f"time timestamp, k {type_}, n bigint NOT NULL", key="k")
    given = pa.RecordBatch.from_pydict(
        {
            "time": pa.array([5, 3, 9, 900], TYPES.field("time").type),
            "k": pa.array(values),
            "n": pa.array([1, 2, 3, None]),
        }
    )
    # What is rejected promises nothing; what is late is part of its stream.
    taken = found.take(given, 4, NOW)
    assert taken.seen.parts == dict(zip(names, [9, 3], strict=True))
    assert taken.seen.late == 1


@pytest.mark.parametrize("keys", [["", None], [None, ""]])
def test_null_and_the_empty_text_are_one_stream(keys):
    taken = intake(key="k").take(batch((9, keys[0], 1), (3, keys[1], 2)), None, NOW)
    assert taken.seen.parts == {"": 9}


def test_what_was_seen_adds_up():
    one = StreamSeen(2, 9, 3, 1, 0, 100, 200, {"a": 9, "b": 3})
    other = StreamSeen(1, 5, 5, 0, 1, None, None, {"b": 5})
    assert one + other == StreamSeen(3, 9, 3, 1, 1, 100, 200, {"a": 9, "b": 5})
    assert StreamSeen() + one == one + StreamSeen() == one


def test_arrivals_are_told_where_a_source_knows_them():
    given = batch((1, "a", 1), (2, "b", 2), **{ARRIVED: [70, 50]})
    seen = intake().take(given, None, NOW).seen
    assert (seen.arrived_first, seen.arrived_last) == (50, 70)


def test_rejects_of_any_type_are_shown(spark):
    schema = (
        "time timestamp, b binary, a array<int>, s struct<x:int,y:string>, m map<string,int>, "
        "d decimal(9,2), l timestamp_ntz, day date, f double, t tinyint, ok boolean"
    )
    found = intake(schema=schema)
    frame = spark.sql(
        "SELECT cast(NULL AS timestamp) AS time, cast('é' AS binary) AS b, array(1, NULL) AS a, "
        "named_struct('x', 1, 'y', cast(NULL AS string)) AS s, map('k', 1) AS m, 1.50BD AS d, "
        "timestamp_ntz '2024-01-02 03:04:05' AS l, date '2024-01-02' AS day, 0.5D AS f, 3Y AS t, true AS ok"
    )
    (given,) = frame.toArrow().to_batches()
    (record,) = found.rejects(given, np.array([True]), NOW, None)["record"].to_pylist()
    shown = json.loads(record)
    assert set(shown) == {"b", "a", "s", "m", "d", "l", "day", "f", "t", "ok"}
    assert (shown["a"], shown["s"], shown["m"]) == ([1, None], {"x": 1}, {"k": 1})
    assert (shown["day"], shown["f"], shown["t"], shown["ok"]) == ("2024-01-02", 0.5, 3, True)
