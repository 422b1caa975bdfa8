"""Statements as in Flink and Spark through whole runs give the rows of Spark's batch queries."""

import datetime as dt
import random
from collections import Counter

import pytest

import penstock as ps

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SEED = 19
SCHEMA = "time timestamp, road string, kind string, speed double"
HOP = "TABLE(HOP(TABLE reports, DESCRIPTOR(time), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS))"
SPARK = "SELECT *, window.start AS window_start, window.end AS window_end FROM (SELECT *, window(time, '10 seconds', '5 seconds') AS window FROM reports)"  # noqa: E501 -- one statement

STATEMENTS = {
    "sets": (
        f"""SELECT road, kind, GROUPING(kind) AS g, count(*) FILTER (WHERE speed > 40) AS fast,
                   sum(DISTINCT round(speed / 20)) AS some, median(speed) AS middle, mode(kind) AS usual
            FROM {HOP} GROUP BY ROLLUP(road, kind), window_start, window_end""",
        """SELECT window_start, window_end, road, kind, grouping(kind) AS g,
                  count(*) FILTER (WHERE speed > 40) AS fast, sum(DISTINCT round(speed / 20)) AS some,
                  median(speed) AS middle, mode(kind, true) AS usual
           FROM assigned GROUP BY window_start, window_end, ROLLUP(road, kind)""",
    ),
    "top": (
        f"""SELECT road, speed, r FROM (
                SELECT *, ROW_NUMBER() OVER
                    (PARTITION BY window_start, window_end, road ORDER BY speed DESC) AS r
                FROM {HOP}) WHERE r <= 2""",
        """SELECT window_start, window_end, road, speed, r FROM (
               SELECT *, ROW_NUMBER() OVER
                   (PARTITION BY window_start, window_end, road ORDER BY speed DESC) AS r
               FROM assigned) WHERE r <= 2""",
    ),
    "busiest": (
        f"""SELECT road, c, r FROM (
                SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY c DESC, road) AS r
                FROM (SELECT road, count(*) AS c FROM {HOP} GROUP BY road, window_start, window_end))
            WHERE r <= 2""",
        """SELECT window_start, window_end, road, c, r FROM (
               SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY c DESC, road) AS r
               FROM (SELECT window_start, window_end, road, count(*) AS c FROM assigned
                     GROUP BY window_start, window_end, road)) WHERE r <= 2""",
    ),
    "assigned": (
        f"SELECT window_start, window_end, road, speed FROM {HOP} WHERE speed > 50",
        "SELECT time, window_start, window_end, road, speed FROM assigned WHERE speed > 50",
    ),
    "roads": (
        f"SELECT DISTINCT road FROM {HOP}",
        "SELECT DISTINCT window_start, window_end, road FROM assigned",
    ),
}


def rows(seed):
    draw = random.Random(seed)
    speeds = draw.sample(range(100), 90)
    return [
        {
            "time": START + dt.timedelta(seconds=draw.randrange(40)),
            "road": draw.choice(["a", "b", None]),
            "kind": draw.choice("xyz"),
            "speed": float(speed),
        }
        for speed in speeds
    ]


def counted(names, given):
    return Counter(tuple(_rounded(row[name]) for name in names) for row in given)


def _rounded(value):
    return round(value, 9) if isinstance(value, float) else value


def test_results_are_those_of_a_batch_query(spark):
    given = rows(SEED)
    epochs = [given[:30], given[30:60], given[60:]]
    reports = ps.stream("reports", SCHEMA, "time", delay="1 minute", source=ps.rows(epochs))
    relations = {name: ps.sql(ours, reports) for name, (ours, _) in STATEMENTS.items()}
    sinks = {name: ps.memory() for name in relations}
    ps.outputs(*relations.values()).start(*sinks.values()).wait()
    spark.createDataFrame(given, SCHEMA).createOrReplaceTempView("reports")
    spark.sql(SPARK).createOrReplaceTempView("assigned")
    for name, (_, theirs) in STATEMENTS.items():
        expected = spark.sql(theirs)
        found = sinks[name].table().to_pylist()
        wanted = expected.toArrow().to_pylist()
        assert set(expected.columns) <= set(relations[name].schema.names) | {"time"}, name
        names = [each for each in expected.columns if each in relations[name].schema.names]
        assert counted(names, found) == counted(names, wanted), f"{name}, seed {SEED}"


@pytest.mark.parametrize("kind", ["session", "cumulate", "rows"])
def test_top_goes_with_windows_of_every_kind(kind, spark):
    given = [
        {"time": START + dt.timedelta(seconds=t), "road": road, "kind": "x", "speed": float(speed)}
        for t, road, speed in [(0, "a", 3), (1, "a", 9), (2, "b", 5), (3, "a", 7), (30, "a", 1)]
    ]
    reports = ps.stream("reports", SCHEMA, "time", source=ps.rows([given]))
    keyed = reports.group_by("road")
    windowed = {
        "session": lambda: keyed.session("5 seconds"),
        "cumulate": lambda: keyed.cumulate("4 seconds", "2 seconds"),
        "rows": lambda: keyed.window(3, rows=True),
    }[kind]()
    sink = ps.memory()
    windowed.top(1, by="speed").start(sink).wait()
    found = sorted((row["road"], row["speed"], row["rank"]) for row in sink.table().to_pylist())
    session = [("a", 1.0, 1), ("a", 9.0, 1), ("b", 5.0, 1)]
    cumulated = [("a", 1.0, 1), ("a", 9.0, 1), ("a", 9.0, 1), ("b", 5.0, 1)]
    assert found == {"session": session, "cumulate": cumulated, "rows": [("a", 9.0, 1)]}[kind]
