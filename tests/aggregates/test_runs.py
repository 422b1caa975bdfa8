"""Aggregates in whole runs on Spark: formed in channels or on the map side, in sliding windows."""

import datetime as dt

import pyarrow as pa
import pytest

import penstock as ps
from oracle import Shape, windows

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SECOND = 1_000_000
SCHEMA = "time timestamp, k string, n int, x double, b boolean"
ROWS = [
    [(1, "a", 1, 0.5, True), (2, "a", 2, None, None), (2, "b", None, 1.5, False), (5, "a", 7, -2.0, True)],
    [(3, "a", 2, 9.0, False), (6, "b", 4, 1.5, None), (6, "b", 3, 1.5, True), (7, None, 5, 4.0, True)],
    [(9, "a", 1, 3.0, True), (9, "b", 8, 2.5, False), (8, "a", 7, 8.0, None), (12, "a", None, None, None)],
]
WANTED = {
    "every": (ps.bool_and("b"), "bool_and(b)"),
    "any": (ps.bool_or("b"), "bool_or(b)"),
    "most": (ps.max_by("x", "n"), "arg_max_null(x, row(n, x IS NOT NULL, x)) FILTER (n IS NOT NULL)"),
    "least": (ps.min_by("n", "x"), "arg_min_null(n, row(x, n IS NOT NULL, n)) FILTER (x IS NOT NULL)"),
    "spread": (ps.var_pop("x"), "var_pop(x)"),
    "deviation": (ps.stddev_pop("n"), "stddev_pop(n)"),
    "related": (ps.corr("n", "x"), "corr(x, n)"),
    "kinds": (ps.count_distinct("n"), "count(DISTINCT n)"),
    "pairs": (ps.count_distinct("n", "x"), "count(DISTINCT (n, x)) FILTER (n IS NOT NULL AND x IS NOT NULL)"),
}
LISTS = {
    "all": (ps.array_agg("n"), "coalesce(list(n ORDER BY time, n) FILTER (n IS NOT NULL), [])"),
    "two": (ps.array_agg("n", limit=2), "coalesce(list(n ORDER BY time, n) FILTER (n IS NOT NULL), [])[:2]"),
}


def run(wanted, folder):
    epochs = [
        [
            dict(
                zip(
                    ("time", "k", "n", "x", "b"),
                    (EPOCH + dt.timedelta(seconds=row[0]), *row[1:]),
                    strict=True,
                )
            )
            for row in rows
        ]
        for rows in ROWS
    ]
    stream = ps.stream("t", SCHEMA, time="time", delay="1 minute", source=ps.rows(epochs))
    sink = ps.memory()
    query = stream.group_by("k").window("6 seconds", slide="2 seconds").agg(**wanted)
    query.start(sink, checkpoint=folder, channels=2).wait()
    return {(row["window_start"], row["k"]): row for row in sink.table().to_pylist()}


def expected(wanted):
    rows = [
        {"time": time * SECOND, "k": k, "n": n, "x": x, "b": b}
        for epoch in ROWS
        for time, k, n, x, b in epoch
    ]
    fields = [
        ("time", pa.int64()),
        ("k", pa.string()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("b", pa.bool_()),
    ]
    table = pa.Table.from_pylist(rows, schema=pa.schema(fields))
    found = windows(
        Shape(6 * SECOND, 2 * SECOND), table, ["k"], {name: sql for name, (_, sql) in wanted.items()}
    )
    return {
        (EPOCH + dt.timedelta(microseconds=row["window_start"]), row["k"]): row for row in found.to_pylist()
    }


def plain(value):
    """DuckDB has NaN where Spark has null, and NaN equals nothing."""
    return None if value != value else value  # noqa: PLR0124


@pytest.mark.parametrize(
    "chosen", [WANTED, {**WANTED, **LISTS}, {**LISTS, "sketch": None}], ids=["map", "channel", "lists"]
)
def test_runs_equal_a_batch_engine(spark, tmp_path, chosen):
    compared = {name: pair for name, pair in chosen.items() if pair}
    # A sketch can be formed by Spark only, so that array_agg() gets its rows in lists.
    sketch = {"sketch": ps.approx_count_distinct("n")} if "sketch" in chosen else {}
    found = run({name: call for name, (call, _) in compared.items()} | sketch, str(tmp_path))
    wanted = expected(compared)
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        for name in compared:
            assert found[key][name] == pytest.approx(plain(row[name])), (key, name)
