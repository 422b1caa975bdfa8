"""What names mean, by rows: the same text in Penstock and in DuckDB, with and without aliases."""

import datetime as dt
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

import penstock as ps
from fuzz.local import run_local
from penstock.errors import BadExpression, BadWindow, UnknownColumn

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TYPES = {"timestamp": pa.timestamp("us", "UTC"), "string": pa.string(), "int": pa.int32()}


def at(second):
    return NOON + dt.timedelta(seconds=second)


# Times, keys and values are such that no two tables, sides or levels can be exchanged without a difference.
TABLES = {
    "w": (
        "t timestamp, page string, x int, y int",
        [
            (at(0), "A", 1, 9),
            (at(5), "B", 2, 1),
            (at(8), "C", 3, 4),
            (at(9), "C", 7, 3),
            (at(30), None, 5, 5),
        ],
    ),
    "v": (
        "t timestamp, page string, x int, z int",
        [
            (at(2), "A", 4, 1),
            (at(6), "C", 3, 2),
            (at(7), "C", 9, 3),
            (at(40), "D", 2, 4),
            (at(41), None, 5, 5),
        ],
    ),
    "u": (
        "ut timestamp, page string, z int",
        [(at(11), "A", 1), (at(15), "C", 3), (at(17), "C", 2), (at(18), "E", 8)],
    ),
}

# A pair of braces stands where a bound has to be, which DuckDB neither needs nor knows.
TEXTS = [
    # The table of the sub-query is the one around it: an alias is all that tells them apart.
    "SELECT page, x FROM w WHERE EXISTS (SELECT * FROM w AS i WHERE i.page = w.page AND i.x > w.x) {}",
    "SELECT page, x FROM w AS o WHERE EXISTS (SELECT * FROM w WHERE w.page = o.page AND w.x > o.x) {}",
    "SELECT page, x FROM w AS o WHERE EXISTS (SELECT * FROM w AS i WHERE i.page = o.page AND i.x > o.x) {}",
    "SELECT page, x FROM w WHERE NOT EXISTS (SELECT * FROM w AS i WHERE i.page = w.page AND i.x > w.x) {}",
    "SELECT page, x FROM w WHERE x IN (SELECT y FROM w AS i) {}",
    "SELECT page, x FROM w WHERE x IN (SELECT i.y FROM w AS i WHERE i.page = w.page) {}",
    "SELECT page, x FROM w WHERE x NOT IN (SELECT i.y FROM w AS i WHERE i.y < w.y) {}",
    # An inner table has the name of an outer one, or an inner column hides an outer one.
    "SELECT page, x FROM w WHERE EXISTS (SELECT * FROM v AS w WHERE w.page = page AND w.x > y) {}",
    "SELECT page, x FROM w WHERE EXISTS (SELECT * FROM v WHERE v.page = w.page AND x > y) {}",
    "SELECT page, x FROM w WHERE EXISTS (SELECT * FROM v WHERE page = w.page AND v.x = w.x) {}",
    "SELECT page, x FROM w WHERE x IN (SELECT x FROM v AS w WHERE w.z > y - 4) {}",
    (
        "SELECT v.page, v.x FROM w AS v "
        "WHERE EXISTS (SELECT 1 FROM v AS w WHERE w.page = v.page AND w.z >= v.y) "
        "{}"
    ),
    # After a join, by columns of any of its tables.
    (
        "SELECT w.page, z FROM w JOIN v ON w.page = v.page {} "
        "WHERE EXISTS (SELECT 1 FROM u WHERE u.page = v.page AND u.z < v.z) {}"
    ),
    (
        "SELECT w.page, v.z FROM w LEFT JOIN v ON w.page = v.page {} "
        "WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.page = v.page AND u.z < w.x) {}"
    ),
    # A time is that of its table.
    "SELECT w.t AS one, v.t AS other FROM w JOIN v ON w.page = v.page {}",
    "SELECT v.t AS one, ut FROM v FULL JOIN u ON v.page = u.page {}",
    "SELECT w.page, ut FROM w JOIN u ON w.page = u.page AND ut > t {} WHERE ut < t + INTERVAL 8 SECONDS",
    # Bounds on the times of any table on the way.
    (
        "SELECT w.t AS a, v.t AS b, ut AS c FROM w "
        "JOIN v ON w.page = v.page AND v.t BETWEEN w.t - INTERVAL '3' SECOND AND w.t + INTERVAL '3' SECOND "
        "JOIN u ON u.page = v.page AND ut BETWEEN v.t AND v.t + INTERVAL '10' SECOND"
    ),
    (
        "SELECT w.t AS a, v.t AS b, ut AS c FROM w "
        "LEFT JOIN v ON w.page = v.page AND v.t >= w.t - INTERVAL 3 SECONDS "
        "AND v.t <= w.t + INTERVAL 3 SECONDS "
        "LEFT JOIN u ON u.page = v.page AND u.ut BETWEEN v.t AND v.t + INTERVAL '9' SECOND"
    ),
    (
        "SELECT a.t AS one, b.t AS two, c.t AS three FROM v AS a "
        "JOIN v AS b ON a.page = b.page AND b.t BETWEEN a.t AND a.t + INTERVAL '1' SECOND "
        "JOIN v AS c ON c.page = a.page AND b.t BETWEEN c.t AND c.t + INTERVAL '1' SECOND"
    ),
    # Sub-queries and WITH have scopes of their own.
    "WITH w AS (SELECT t, page, x + 10 AS x FROM v) SELECT page, x FROM w WHERE x > 13",
    (
        "SELECT o.page, o.x FROM (SELECT t, page, y AS x FROM w) AS o "
        "WHERE EXISTS (SELECT 1 FROM v WHERE v.page = o.page AND v.x > o.x) {}"
    ),
    "SELECT W.Page, `x` FROM w WHERE X > 1",
    # Keys of both sides, merged by USING and each for itself.
    "SELECT page, w.page AS one, v.page AS other FROM w FULL JOIN v USING (page) {}",
    "SELECT w.page AS one, v.page AS other, z FROM w RIGHT JOIN v ON w.page = v.page {}",
    "SELECT w.x AS one, v.x AS other FROM w FULL JOIN v ON w.x = v.x {}",
    "SELECT * FROM w JOIN u USING (page) {}",
]


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in arrow_tables().items():
            connection.register(name, table)
        yield connection


def arrow_tables():
    found = {}
    for name, (schema, rows) in TABLES.items():
        columns = [each.split() for each in schema.split(", ")]
        arrays = [
            pa.array(values, TYPES[kind])
            for values, (_, kind) in zip(zip(*rows, strict=True), columns, strict=True)
        ]
        found[name] = pa.table(arrays, names=[column for column, _ in columns])
    return found


def streams():
    return [
        ps.stream(name, schema, schema.split()[0], delay="1 hour") for name, (schema, _) in TABLES.items()
    ]


def given(epochs=3):
    rows = {name: table.to_pylist() for name, table in arrow_tables().items()}
    return {name: [each[place::epochs] for place in range(epochs)] for name, each in rows.items()}


@pytest.mark.parametrize("text", TEXTS)
def test_a_name_means_what_it_means_in_sql(duck, text):
    wanted = duck.sql(text.replace("{}", "").replace("`", '"')).to_arrow_table()
    result = run_local(ps.sql(text.replace("{}", "WITHIN 1 DAY"), *streams()), given(), seed=7, channels=3)
    found = result.tables[0].rename_columns([each.lower() for each in result.tables[0].column_names])
    names = [each.lower() for each in wanted.column_names]
    rows = [
        Counter(map(repr, zip(*(each.to_pylist() for each in table.columns), strict=True)))
        for table in (found.select(names).cast(wanted.rename_columns(names).schema), wanted)
    ]
    assert rows[0] == rows[1]
    assert wanted.num_rows, "a text without rows shows nothing"


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("SELECT w.x FROM w AS o", UnknownColumn, "no column 'w.x'"),
        ("SELECT x FROM w JOIN v ON w.page = v.page WITHIN 1 DAY", BadExpression, "w.x or v.x"),
        ("SELECT t FROM w JOIN v ON w.page = v.page WITHIN 1 DAY", BadExpression, "w.t or v.t"),
        (
            "SELECT z FROM w JOIN v USING (page) WITHIN 1 DAY JOIN u ON TRUE WITHIN 1 DAY",
            BadExpression,
            "v.z or u.z",
        ),
        (
            "SELECT page FROM w JOIN v USING (page) WITHIN 1 DAY JOIN u ON w.x = u.z WITHIN 1 DAY",
            BadExpression,
            "w.page or v.page or u.page",
        ),
        (
            "SELECT v.x FROM w LEFT SEMI JOIN v ON w.page = v.page WITHIN 1 DAY",
            UnknownColumn,
            "no column 'v.x'",
        ),
        (
            "SELECT z FROM w WHERE EXISTS (SELECT z FROM v WHERE v.page = w.page) WITHIN 1 DAY",
            UnknownColumn,
            "'z'",
        ),
        (
            "SELECT w.x FROM w JOIN v ON w.page = u.page WITHIN 1 DAY JOIN u ON v.page = u.page WITHIN 1 DAY",
            UnknownColumn,
            "no column 'u.page'",
        ),
        (
            "SELECT count(*) AS n FROM w JOIN u ON w.page = u.page WITHIN 1 DAY GROUP BY window(x, '1 hour')",
            BadWindow,
            "pair_time, or by the event time of one of the tables: w.t, u.ut",
        ),
    ],
)
def test_a_name_that_means_nothing_or_two_things_is_refused(text, error, reason):
    with pytest.raises(error, match=reason):
        ps.sql(text, *streams())


@pytest.mark.parametrize(
    ("time", "of"), [("v.t", "v.t"), ("ut", "u.ut"), ("u.ut", "u.ut"), ("pair_time", "least(v.t, u.ut)")]
)
@pytest.mark.parametrize("how", ["", "LEFT", "FULL"])
def test_windows_after_a_join_go_by_the_time_that_they_name(duck, time, of, how):
    tables = f"v {how} JOIN u ON v.page = u.page"
    text = f"SELECT count(*) AS n FROM {tables} WITHIN 1 DAY GROUP BY window({time}, '10 seconds')"
    bucket = f"time_bucket(INTERVAL '10 seconds', {of})"
    wanted = duck.sql(f"SELECT {bucket} AS s, count(*) AS n FROM {tables} WHERE {of} IS NOT NULL GROUP BY 1")
    result = run_local(ps.sql(text, *streams()), given(), seed=3, channels=2).tables[0]
    found = zip(result["window_start"].to_pylist(), result["n"].to_pylist(), strict=True)
    assert sorted(found) == sorted(wanted.fetchall())


def test_windows_go_by_an_event_time_that_a_select_has_left_out():
    given = streams()[0].select("page")
    found = ps.sql(
        "SELECT page, count(*) AS n FROM given GROUP BY page, window(t, '10 seconds')", given=given
    )
    assert found == given.group_by("page").window("10 seconds").agg(n=ps.count())
    with pytest.raises(UnknownColumn, match="no column 't'"):
        ps.sql("SELECT page, t FROM given", given=given)
