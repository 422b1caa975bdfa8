"""Statements mean what they mean to a batch engine that reads the same text with the bounds spelled out."""

from collections import Counter

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock.query as ps
from query.batch import TIME, batch

COLUMNS = "t timestamp_ntz, k int, x int"
STREAMS = [ps.stream(name, COLUMNS, time="t") for name in ("calls", "marks", "towers")]


@pytest.fixture(scope="module")
def tables():
    with duckdb.connect(config={"threads": 1}) as connection:
        for seed, each in enumerate(STREAMS, start=3):
            # Times, keys and values that often meet; every fifth key is null.
            connection.execute(
                f"CREATE TABLE {each.name} AS "
                f"SELECT TIMESTAMP '2026-01-01' + to_seconds(i * {seed} % 37) AS t, "
                f"CASE WHEN i % 5 > 0 THEN (i * {seed} % 4)::INT END AS k, (i * i * {seed} % 7)::INT AS x "
                "FROM range(24) r(i)"
            )
        yield connection


def a_join(right, left):
    on = [
        f"{left}.k = {right}.k",
        f"{right}.k = {left}.k",
        f"{left}.k + 1 = {right}.x",
        f"{left}.x < {right}.x",
    ]
    on += [f"{left}.t <= {right}.t", f"{left}.t = {right}.t", f"({left}.x = {right}.x OR {left}.k > 1)"]
    conditions = st.lists(st.sampled_from(on), min_size=1, max_size=3, unique=True).map(" AND ".join)
    return st.tuples(st.sampled_from(["", "LEFT", "RIGHT", "FULL"]), conditions, st.integers(0, 9))


@st.composite
def tables_joined(draw):
    """The same FROM and WHERE for Penstock and for DuckDB, their tables, and the time of pairs."""
    joins = [("b", "marks", draw(a_join("b", "a")))]
    if draw(st.booleans()):
        joins.append(("c", "towers", draw(a_join("c", draw(st.sampled_from("ab"))))))
    ours, theirs, time = "calls AS a", "calls AS a", "a.t"
    for name, table, (how, on, within) in joins:
        ours += f" {how} JOIN {table} AS {name} ON {on} WITHIN {within} SECONDS"
        apart = f"abs(epoch_us({time}) - epoch_us({name}.t)) <= {within}000000"
        theirs += f" {how} JOIN {table} AS {name} ON {on} AND {apart}"
        time = f"least({time}, {name}.t)"
    names = ["a", *(name for name, _, _ in joins)]
    where = draw(st.sampled_from(["", *(f" WHERE coalesce({name}.k, 0) < 3" for name in names)]))
    return ours + where, theirs + where, names, time


@st.composite
def statements(draw):
    """The same statement for Penstock and for DuckDB."""
    ours, theirs, names, time = draw(tables_joined())
    columns = st.builds("{}.{}".format, st.sampled_from(names), st.sampled_from("tkx"))
    read = draw(st.lists(columns, min_size=1, max_size=4, unique=True))
    items = ", ".join(f"{each} AS {each.replace('.', '_')}" for each in read)
    return f"SELECT {items} FROM {ours}", f"SELECT {time} AS t, {items} FROM {theirs}"


@settings(max_examples=150, derandomize=True)
@given(pair=statements())
def test_joins(tables, pair):
    ours, theirs = pair
    relation = ps.sql(ours, *STREAMS)
    names = ", ".join(f'"{each}"' for each in relation.schema.names)
    found = tables.sql(f"SELECT {names} FROM ({batch(relation)})").fetchall()
    assert Counter(found) == Counter(tables.sql(theirs).fetchall())


@settings(max_examples=100, derandomize=True)
@given(froms=tables_joined(), data=st.data())
def test_windows_by_the_time_of_a_table_leave_joins_as_they_are(tables, froms, data):
    ours, theirs, names, _ = froms
    time = f"{data.draw(st.sampled_from(names))}.t"
    windows = ps.sql(f"SELECT count(*) AS n FROM {ours} GROUP BY window({time}, '1 second')", *STREAMS)
    found = tables.sql(f"SELECT {TIME} FROM ({batch(windows.inputs[0])})").fetchall()
    expected = tables.sql(f"SELECT u FROM (SELECT {time} AS u FROM {theirs}) WHERE u IS NOT NULL").fetchall()
    assert Counter(found) == Counter(expected)


def test_a_split_parts_every_tuple_once(tables):
    found = ps.sql("SPLIT calls CASE WHEN k > 2 THEN a WHEN x < 3 THEN b ELSE c END", *STREAMS)
    parts = {
        name: tables.sql(f"SELECT t, k, x FROM ({batch(each)})").fetchall() for name, each in found.items()
    }
    names = "CASE WHEN k > 2 THEN 'a' WHEN x < 3 THEN 'b' ELSE 'c' END"
    expected = Counter(tables.sql(f"SELECT {names}, t, k, x FROM calls").fetchall())
    assert Counter((name, *row) for name, rows in parts.items() for row in rows) == expected
