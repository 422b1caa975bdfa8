"""Session windows through whole runs: against Spark's own, late tuples, stages behind them, rescaling."""

import datetime as dt
import random

import pyarrow.parquet as pq
import pytest

import penstock as ps
from aggregates.cases import cases, column_of, same
from penstock.aggregates.aggregate import Agreement
from rescales import AtRandom
from sessions import interpreting

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TYPES = {"bigint": [None, 3, -7, 12], "double": [None, 0.5, -2.25, 8.0], "string": [None, "", "a", "Ünï"]}
TYPES |= {"boolean": [None, True, False]}
COLUMNS = {column_of(type_, argument): type_ for type_ in TYPES for argument in "ab"}
CASES = [each for each in cases() if set(each.types) <= set(TYPES)]


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark):
    with interpreting(spark):
        yield


def at(seconds):
    return START + dt.timedelta(seconds=seconds)


def test_every_aggregate_over_sessions_is_what_spark_says_of_its_session_window(spark):
    chance = random.Random(4)
    rows = [
        {"time": at(place // 2 + chance.randrange(6)), "k": chance.choice([None, "a", "b", "b", "c"])}
        | {name: chance.choice(TYPES[type_]) for name, type_ in COLUMNS.items()}
        for place in range(240)
    ]
    schema = ", ".join(["time timestamp", "k string", *(f"{name} {type_}" for name, type_ in COLUMNS.items())])
    epochs = [rows[start : start + 60] for start in range(0, len(rows), 60)]
    stream = ps.stream("events", schema, time="time", delay="10 seconds", source=ps.rows(epochs))
    named = {f"r{place}": each for place, each in enumerate(CASES)}
    sink = ps.memory()
    found = stream.group_by("k").session("3 seconds").agg(**{n: each.aggregate for n, each in named.items()})
    run = found.start(sink, channels=2)
    run.wait()
    assert run.counts.late == 0
    batch = spark.createDataFrame(rows, schema).selectExpr("*", "unix_micros(time) AS _t")
    texts = [f"{c.definition.spark_sql([f'`{a}`' for a in c.aggregate.arguments], '_t')} AS {n}" for n, c in named.items()]
    batch.createOrReplaceTempView("batch_events")
    expected = spark.sql(
        "SELECT w.start AS window_start, w.end AS window_end, k, "
        f"{', '.join(texts)} FROM (SELECT *, session_window(time, '3 seconds') AS w FROM batch_events) GROUP BY w, k"
    ).toArrow()
    mine, theirs = (
        {(row["window_start"], row["window_end"], row["k"]): row for row in table.to_pylist()}
        for table in (sink.table(), expected)
    )
    assert len(mine) > 20
    assert mine.keys() == theirs.keys()
    for name, case in named.items():
        loose = None if case.definition.agreement is Agreement.EXACT else 1e3
        for key, row in mine.items():
            if case.definition.agreement is not Agreement.ESTIMATE:
                assert same(row[name], theirs[key][name], loose), (str(case), key, row[name], theirs[key][name])
