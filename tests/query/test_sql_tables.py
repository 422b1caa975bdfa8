import pytest

import penstock.query as ps
from penstock.errors import BadExpression, BadName, BadWindow, QueryError

REPORTS = ps.stream("reports", "time timestamp, vehicle string, speed double, kind string", time="time")
TOLLS = ps.stream("tolls", "time timestamp, car string, paid double", time="time")
COUNTS = REPORTS.group_by("vehicle").window("1 minute").agg(n=ps.count())
COUNTED = "SELECT vehicle, count(*) AS n FROM reports [RANGE 1 MINUTE] GROUP BY vehicle"


def sql(text, **named):
    return ps.sql(text, REPORTS, TOLLS, **named)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM reports", REPORTS),
        ("SELECT r.* FROM reports AS r", REPORTS),
        ("SELECT vehicle, speed * 3.6 AS kmh FROM reports", REPORTS.select("vehicle", kmh="speed * 3.6")),
        ("SELECT *, speed > 9 AS fast FROM reports", REPORTS.select(*REPORTS.schema.names, fast="speed > 9")),
        ("SELECT speed FROM reports WHERE kind = 'a'", REPORTS.where("kind = 'a'").select("speed")),
        ("SELECT speed, time FROM reports", REPORTS.select("speed", "time")),
        (
            "SELECT CASE WHEN speed > 9 THEN 'fast' ELSE 'slow' END AS pace FROM reports",
            REPORTS.select(pace="CASE WHEN speed > 9 THEN 'fast' ELSE 'slow' END"),
        ),
        ("FROM reports SELECT speed", REPORTS.select("speed")),
        ("SELECT trim(FROM kind) AS a FROM reports", REPORTS.select(a="trim(FROM kind)")),
        (
            "SELECT vehicle IS DISTINCT FROM kind AS odd, speed FROM reports",
            REPORTS.select(odd="vehicle IS DISTINCT FROM kind", speed="speed"),
        ),
    ],
)
def test_a_plain_select(text, expected):
    assert sql(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT vehicle, max(n) AS most FROM ({COUNTED}) AS c [RANGE 1 HOUR] GROUP BY vehicle",
        f"SELECT c.vehicle, max(c.n) AS most FROM ({COUNTED}) [RANGE 1 HOUR] AS c GROUP BY c.vehicle",
        f"SELECT vehicle, max(n) AS most FROM ({COUNTED}) [RANGE 1 HOUR] GROUP BY vehicle",
        f"SELECT vehicle, max(n) AS most FROM (SELECT * FROM ({COUNTED})) AS b [RANGE 1 HOUR] GROUP BY 1",
        f"WITH c AS ({COUNTED}) SELECT vehicle, max(n) AS most FROM c [RANGE 1 HOUR] GROUP BY vehicle",
        f"""WITH a AS (SELECT * FROM reports), b AS ({COUNTED.replace("reports", "a")})
            SELECT vehicle, max(n) AS most FROM b [RANGE 1 HOUR] GROUP BY vehicle""",
    ],
)
def test_a_window_over_windows(text):
    assert sql(text) == COUNTS.group_by("vehicle").window("1 hour").agg(most=ps.max("n"))


def test_a_named_relation():
    assert sql("SELECT n FROM Counts WHERE n > 1", counts=COUNTS) == COUNTS.where("n > 1").select("n")


def test_the_bounds_of_a_sub_querys_windows_are_columns_like_others():
    found = sql(f"SELECT window_start, n, window_end AS till FROM ({COUNTED}) AS c")
    assert found == COUNTS.select(n="n", till="window_end")


def test_sub_queries_as_sides_of_a_join():
    found = sql(f"""
        SELECT c.vehicle, n, total FROM ({COUNTED}) AS c
        JOIN (SELECT car, sum(paid) AS total FROM tolls [RANGE 1 HOUR] GROUP BY car) AS t
        ON c.vehicle = t.car WITHIN 1 HOUR
    """)
    totals = TOLLS.group_by("car").window("1 hour").agg(total=ps.sum("paid"))
    pairs = COUNTS.join(totals, {"vehicle": "car"}, within="1 hour", suffixes=("", "_t"))
    assert found == pairs.select("vehicle", "n", "total")


def test_a_table_of_with_goes_before_a_stream_of_its_name():
    found = sql("WITH tolls AS (SELECT speed FROM reports) SELECT * FROM tolls")
    assert found == REPORTS.select("speed")


def test_a_table_of_with_is_seen_inside_sub_queries():
    found = sql("WITH a AS (SELECT speed FROM reports) SELECT * FROM (SELECT speed AS v FROM a) AS b")
    assert found == REPORTS.select("speed").select(v="speed")


CARS = (REPORTS.select(car="vehicle"), TOLLS.select("car"), REPORTS.select(car="kind"))


@pytest.mark.parametrize("place", ["{}", "SELECT * FROM ({}) AS t", "WITH t AS ({}) SELECT * FROM t"])
def test_union_all(place):
    text = """SELECT vehicle AS car FROM reports UNION ALL SELECT car FROM tolls
              UNION ALL (SELECT kind AS car FROM reports)"""
    assert sql(place.format(text)) == CARS[0].union(CARS[1], CARS[2])


def test_a_union_takes_the_letter_case_of_its_first_part():
    found = sql("SELECT vehicle AS Car, time FROM reports UNION ALL SELECT CAR, time FROM tolls")
    assert [each.schema.names for each in found.inputs] == [("Car", "time"), ("Car", "time")]


def test_each_side_of_a_union_has_its_own_window():
    count = "SELECT count(*) AS n FROM"
    found = sql(f"{count} reports [RANGE 1 HOUR] UNION ALL {count} tolls [RANGE 1 DAY]")
    hours, days = REPORTS.window("1 hour"), TOLLS.window("1 day")
    assert found == hours.agg(n=ps.count()).union(days.agg(n=ps.count()))


def test_with_before_a_union():
    found = sql(
        "WITH a AS (SELECT car FROM tolls) SELECT * FROM a UNION ALL SELECT car FROM a WHERE car > 'b'"
    )
    cars = TOLLS.select("car")
    assert found == cars.union(cars.where("car > 'b'"))


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        (
            "SELECT speed FROM reports UNION SELECT paid FROM tolls",
            BadExpression,
            "every row forever.*write UNION ALL",
        ),
        ("SELECT speed FROM reports UNION DISTINCT SELECT speed FROM reports", BadExpression, "UNION ALL"),
        ("SELECT speed FROM reports EXCEPT SELECT paid FROM tolls", BadExpression, "UNION ALL is the only"),
        (
            "SELECT speed FROM reports UNION ALL SELECT paid FROM tolls",
            BadExpression,
            r"\(speed\) and \(paid\)",
        ),
        (
            "SELECT speed, kind FROM reports UNION ALL SELECT kind, speed FROM reports",
            BadExpression,
            "same order",
        ),
        (
            "SELECT speed FROM reports UNION ALL SELECT paid AS speed FROM tolls ORDER BY 1",
            BadExpression,
            "UNION",
        ),
        ("SELECT car FROM tolls UNION ALL SELECT speed AS car FROM reports", QueryError, "cast one"),
        ("WITH RECURSIVE a AS (SELECT * FROM a) SELECT * FROM a", BadExpression, "RECURSIVE"),
        ("WITH a(b) AS (SELECT car FROM tolls) SELECT * FROM a", BadExpression, "alias only"),
        ("SELECT * FROM (SELECT car FROM tolls) AS t(b)", BadExpression, "alias only"),
        ("SELECT * FROM (SELECT car FROM tolls LIMIT 3) AS t", BadExpression, "LIMIT"),
        ("SELECT * FROM (tolls)", BadExpression, "a SELECT in parentheses"),
        ("SELECT * FROM range(5)", BadExpression, "FROM must name"),
        (
            "SELECT speed FROM reports WHERE speed > 1 OR vehicle IN (SELECT car FROM tolls)",
            BadExpression,
            "FROM or WITH",
        ),
        ("SELECT (SELECT max(paid) FROM tolls) AS m FROM reports", BadExpression, "FROM or WITH"),
        ("SELECT speed, count(*) AS c FROM reports", BadExpression, "neither in GROUP BY"),
        ("SELECT speed + 1 FROM reports", BadName, "AS name"),
        ("SELECT speed AS a, kind AS A FROM reports", BadName, "rename one with AS"),
        ("SELECT * EXCEPT (speed) FROM reports", BadExpression, "name the ones you want"),
        (f"SELECT n AS window_end FROM ({COUNTED})", BadName, "window_end"),
        ("SELECT arr[RANGE 5] AS a FROM reports", BadWindow, "belongs in FROM"),
        ("INSERT INTO tolls SELECT * FROM tolls", BadExpression, "not a single SELECT"),
        ("FROM reports |> WHERE speed > 1", BadExpression, r"\|> is not supported"),
        ("SELECT speed FROM a", BadName, "the streams are reports, tolls"),
        (7, BadExpression, "put it in quotes"),
    ],
)
def test_refuses(text, error, reason):
    with pytest.raises(error, match=reason):
        sql(text)


def test_a_relation_has_to_have_a_name():
    with pytest.raises(BadName, match="pass it under one"):
        ps.sql("SELECT * FROM counts", COUNTS)


def test_a_name_is_given_once():
    with pytest.raises(BadName, match="two streams"):
        ps.sql("SELECT * FROM tolls", TOLLS, ps.stream("tolls", "t timestamp", time="t"))
    with pytest.raises(BadName, match="already the name of a stream"):
        sql("SELECT * FROM tolls", Tolls=COUNTS)
