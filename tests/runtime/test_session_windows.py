"""Session windows through whole runs: against Spark's own, late tuples, stages behind them, rescaling."""

import datetime as dt
import random

import pyarrow.parquet as pq
import pytest

import penstock as ps
from aggregates.cases import cases, column_of, same
from penstock.aggregates.aggregate import Agreement
from penstock.runtime.state_view import StateView
from rescales import AtRandom
from sessions import interpreting

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TYPES = {
    "bigint": [None, 3, -7, 12],
    "double": [None, 0.5, -2.25, 8.0],
    "string": [None, "", "a", "Ünï"],
    "boolean": [None, True, False],
}
COLUMNS = {column_of(type_, argument): type_ for type_ in TYPES for argument in "ab"}
# Every aggregate with all of its options, each over the last types that it takes.
ONCE = {each.definition: each for each in cases() if set(each.types) <= set(TYPES)}
NAMED = {f"r{place}": each for place, each in enumerate(ONCE.values())}


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark):
    with interpreting(spark):
        yield


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def clicks(*epochs, **options):
    """A stream of (second, key, value) tuples, one list per epoch."""
    rows = [[{"time": at(t), "k": k, "v": v} for t, k, v in epoch] for epoch in epochs]
    return ps.stream("clicks", "time timestamp, k string, v bigint", "time", source=ps.rows(rows), **options)


def test_every_aggregate_over_sessions_is_what_spark_says_of_its_session_window(spark):
    chance = random.Random(4)
    rows = [
        {"time": at(place // 2 + chance.randrange(6)), "k": chance.choice([None, "a", "b", "b", "c"])}
        | {name: chance.choice(TYPES[type_]) for name, type_ in COLUMNS.items()}
        for place in range(240)
    ]
    schema = ", ".join(["time timestamp, k string", *(f"{name} {type_}" for name, type_ in COLUMNS.items())])
    epochs = [rows[start : start + 60] for start in range(0, len(rows), 60)]
    stream = ps.stream("events", schema, time="time", delay="10 seconds", source=ps.rows(epochs))
    sink = ps.memory()
    aggregates = {name: each.aggregate for name, each in NAMED.items()}
    run = stream.group_by("k").session("3 seconds").agg(**aggregates).start(sink, channels=2)
    run.wait()
    assert run.counts.late == 0
    spark.createDataFrame(rows, schema).selectExpr("*", "unix_micros(time) AS _t").createOrReplaceTempView(
        "b"
    )
    texts = [
        f"{case.definition.spark_sql([f'`{each}`' for each in case.aggregate.arguments], '_t')} AS {name}"
        for name, case in NAMED.items()
    ]
    # Over session_window itself Spark counts distinct values wrongly (five booleans): it gives the bounds.
    bounds = (
        "SELECT w.start AS s, w.end AS e, k AS of FROM (SELECT session_window(time, '3 seconds') AS w, k "
    )
    bounds += "FROM b) GROUP BY w, k"
    expected = spark.sql(
        f"SELECT s AS window_start, e AS window_end, k, {', '.join(texts)} "
        f"FROM b JOIN ({bounds}) ON k <=> of AND time >= s AND time < e GROUP BY s, e, k"
    )
    mine, theirs = (
        {(row["window_start"], row["window_end"], row["k"]): row for row in table.to_pylist()}
        for table in (sink.table(), expected.toArrow())
    )
    assert len(mine) > 20
    assert mine.keys() == theirs.keys()
    for name, case in NAMED.items():
        scale = None if case.definition.agreement is Agreement.EXACT else 1e3
        for key, row in mine.items():
            # Groups are so small that estimates have hardly an error, but they need not be equal.
            told = (str(case), key, row[name], theirs[key][name])
            assert case.definition.agreement is Agreement.ESTIMATE or same(*told[2:], scale), told


def test_late_tuples_are_judged_by_open_sessions_and_set_aside_as_they_came(tmp_path):
    # gap 5 s, no delay. After the second epoch the frontier is at 20: a has [0] closed and [12 … 20] open,
    # b has [1] closed. a: 3 is late, 9 joins 12. b: 14 is late, 15 starts a session that may still go on.
    stream = clicks(
        [(0, "a", 1), (1, "b", 1)],
        [(12, "a", 2), (16, "a", 2), (20, "a", 2)],
        [(3, "a", 3), (9, "a", 4), (14, "b", 5)],
        [(15, "b", 6), (40, "b", 7)],
    )
    found = stream.group_by("k").session("5 seconds").agg(n=ps.count(), total=ps.sum("v"))
    hours = found.group_by("k").window("1 minute").agg(sessions=ps.count(), longest=ps.max("n"))
    sessions, counted = ps.memory(), ps.memory()
    run = ps.outputs(found, hours).start(sessions, counted, channels=3, checkpoint=tmp_path)
    run.wait()
    rows = [tuple(row.values()) for row in sessions.table().to_pylist()]
    assert sorted(rows) == [
        (at(0), at(5), "a", 1, 1),
        (at(1), at(6), "b", 1, 1),
        (at(9), at(25), "a", 4, 10),
        (at(15), at(20), "b", 1, 6),
        (at(40), at(45), "b", 1, 7),
    ]
    late = pq.read_table(tmp_path / "late" / "into-stage-0").to_pylist()
    assert sorted((row["k"], row["time"], row["v"]) for row in late) == [("a", at(3), 3), ("b", at(14), 5)]
    assert (run.counts.late, run.counts.rows) == (2, 10)
    totals = {row["k"]: (row["sessions"], row["longest"]) for row in counted.table().to_pylist()}
    assert totals == {"a": (2, 4), "b": (3, 1)}


def test_late_tuples_after_steps_of_spark_that_leave_columns_behind_are_set_aside(tmp_path):
    stream = clicks([(0, "a b", 1), (1, "b", 2)], [(20, "a", 3)], [(3, "b", 4)])
    words = stream.explode(w="split(k, ' ')").select("w", twice="v * 2")
    sink = ps.memory()
    run = words.group_by("w").session("5 seconds").agg(n=ps.count()).start(sink, checkpoint=tmp_path)
    run.wait()
    assert sorted((row["w"], row["n"]) for row in sink.table().to_pylist()) == [("a", 1), ("a", 1), ("b", 2)]
    (late,) = pq.read_table(tmp_path / "late" / "into-stage-0").to_pylist()
    assert (late["w"], late["twice"], run.counts.late) == ("b", 8, 1)


def counted(rows):
    return {"n": [rows.num_rows]}


def test_rescaling_changes_nothing(tmp_path):
    chance = random.Random(5)
    epochs = [
        [(9 * e + chance.randrange(20), f"k{chance.randrange(12)}", chance.randrange(4)) for _ in range(40)]
        for e in range(6)
    ]
    sink, called = ps.memory(), ps.memory()
    sessions = clicks(*epochs, delay="20 seconds").group_by("k").session("4 seconds")
    found = ps.outputs(sessions.agg(n=ps.count()), sessions.apply(counted, "n bigint"))
    run = found.start(sink, called, channels=4, policy=AtRandom(3, every=1, most=6), checkpoint=tmp_path)
    run.wait()
    assert sum(each.rows for each in run.decisions) > 0
    expected, last = [], {}
    for time, key, _ in sorted(row for epoch in epochs for row in epoch):
        if key not in last or time > last[key][1] + 4:
            last[key] = [time, time, 0]
            expected.append((key, last[key]))
        last[key][1:] = time, last[key][2] + 1
    for each in (sink, called):
        rows = [tuple(row.values()) for row in each.table().to_pylist()]
        assert sorted(rows) == sorted((at(first), at(end + 4), key, n) for key, (first, end, n) in expected)
    assert StateView(tmp_path).manifest() is not None
