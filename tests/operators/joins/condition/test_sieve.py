"""What the sieve lets pass, against DuckDB's word on every pair."""

import math
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.expressions.pairs import pair_condition
from penstock.expressions.schema import Schema
from penstock.operators.joins.condition.meaning import channel_condition
from penstock.operators.joins.condition.sieve import FormedPairs, Sieve, passing
from penstock.operators.joins.condition.terms import Unknown, read

ORACLE = duckdb.connect(config={"threads": 1})
BASE = 1_700_000_000_000_000
TYPES = {
    "i": (pa.int64(), st.integers(-5, 5) | st.integers(-(2**53), 2**53)),
    "n": (pa.int32(), st.integers(-40, 40)),
    "d": (pa.float64(), st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1e-30, 7.0]) | st.floats(-1e9, 1e9)),
    "f": (pa.float32(), st.sampled_from([0.0, 1.5, 0.1, 16777216.0]) | st.floats(-1e3, 1e3, width=32)),
    "e": (pa.decimal128(12, 3), st.decimals(-99, 99, places=3)),
    "t": (pa.timestamp("us"), st.integers(BASE, BASE + 9) | st.integers(BASE, BASE + 10**11)),
    "s": (pa.string(), st.sampled_from(["a", "b"])),
}
NUMBERS = [f"{side}.{name}" for side in "lr" for name in "inde"] + ["0.1", "3", "0.30000000000000004"]


def term(depth):
    plain = st.sampled_from([*NUMBERS, "epoch_us(l.t)", "epoch_us(r.t)"])
    if not depth:
        return plain
    part = term(depth - 1)
    return (
        plain
        | st.tuples(part, st.sampled_from("+-*"), part).map(lambda each: f"({' '.join(each)})")
        | part.map(lambda each: f"abs({each})")
        | part.map(lambda each: f"sqrt({each} * {each})")
        | part.map(lambda each: f"CAST({each} AS DOUBLE) / 3.7")
        | part.map(lambda each: f"CAST({each} AS DOUBLE) ^ 2")
    )


def condition(depth):
    compared = st.tuples(term(2), st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), term(1)).map(" ".join)
    others = st.sampled_from(
        ["l.t < r.t", "l.s = r.s", "l.f > r.f", "l.f * 0.1 = r.f", "l.d = r.d", "l.i = r.i"]
    )
    if not depth:
        return compared | others
    part = condition(depth - 1)
    return (
        compared
        | others
        | st.tuples(part, st.sampled_from(["AND", "OR"]), part).map(lambda each: f"({' '.join(each)})")
        | part.map(lambda each: f"NOT ({each})")
    )


@st.composite
def tables(draw):
    made = []
    for _ in "lr":
        count = draw(st.integers(1, 6))
        columns = {
            name: pa.array(draw(st.lists(st.none() | values, min_size=count, max_size=count)), type_)
            for name, (type_, values) in TYPES.items()
        }
        made.append(pa.table(columns))
    return made


def truth(sql, left, right):
    """Which pairs DuckDB says true of, or None if it cannot say."""
    for name, table in (("a", left), ("b", right)):
        numbered = table.append_column("row", pa.array(np.arange(table.num_rows)))
        ORACLE.register(name, numbered)
    try:
        rows = ORACLE.execute(f"SELECT l.row, r.row FROM a AS l, b AS r WHERE {sql}").fetchall()
    except duckdb.Error:
        return None
    return set(rows)


def chosen(fill, left, right):
    """The pairs that pass in tiles, or all if there is no fill."""
    if fill is None:
        return {(i, j) for i in range(left) for j in range(right)}
    return {
        pair
        for one, other in passing(fill, left, right, 1 << 16)
        for pair in zip(one.tolist(), other.tolist(), strict=True)
    }


def formed(fill, left, right):
    one, other = (each.reshape(-1) for each in np.indices((left, right)))
    passed = np.flatnonzero(fill(FormedPairs(one, other), 0))
    return set(zip(one[passed].tolist(), other[passed].tolist(), strict=True))


def check(sql, left, right):
    expected = truth(sql, left, right)
    if expected is None:
        return
    sizes = left.num_rows, right.num_rows
    sieve = Sieve(read(sql), left, right)
    assert chosen(sieve.possible(), *sizes) >= expected
    possible, certain = sieve.exact()
    if possible is not None:
        assert formed(possible, *sizes) >= expected
    if certain is not None:
        assert formed(certain, *sizes) <= expected


@given(condition(2), tables())
def test_nothing_true_is_lost_and_nothing_false_is_certain(sql, rows):
    check(sql, *rows)


# As users write them, in Spark SQL; the translation guards what may raise, and roots of negative numbers.
WRITTEN = [
    "sqrt((l.d - r.d) * (l.d - r.d) + pow(l.n - r.d, 2)) < 1000",
    "sqrt(l.d - r.d) > 3",
    "l.t < r.t and abs(l.n - r.n) < 3",
    "l.d < r.d or l.n + r.n > 4 or l.n - 1 = r.n",
    "not (l.d < r.d and l.i - r.i > 2)",
    "l.n between r.n - 1 and r.n + 1",
    "l.n not between r.n - 1 and r.n + 1",
    "l.d > 0 and l.n <> 0 and r.n / l.n > 2",
]


@pytest.mark.parametrize("written", WRITTEN)
@settings(max_examples=8)
@given(rows=tables())
def test_a_condition_as_users_write_it_goes_through_the_sieve(written, rows):
    schema = Schema.parse("i bigint, n int, d double, t timestamp")
    types = {each.name: each.type for each in schema.columns}
    sql = channel_condition(pair_condition(written, schema, schema), types, types).sql
    assert "Unknown" not in repr(read(sql))
    check(sql, *rows)


@pytest.mark.parametrize(
    "sql",
    [
        "CASE WHEN l.n > 1 THEN false ELSE l.n < r.n AND l.i < r.i END",
        "CASE WHEN NOT l.n > 1 THEN true ELSE l.n > 1 AND l.i < r.i END",
        "CASE WHEN l.n > 1 THEN true ELSE l.i < r.i END",
        "CASE WHEN l.n > 1 THEN true END",
        "CASE l.n WHEN 1 THEN true ELSE l.i < r.i END",
    ],
)
def test_another_choice_is_no_guard(sql):
    assert read(sql) == Unknown()


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_left_to_duckdb(odd):
    rows = pa.table({"d": [1.0, odd]})
    for sql in ("l.d > r.d", "l.d = r.d", "l.d - r.d < 1", "NOT l.d <= r.d"):
        check(sql, rows, rows)
        assert Sieve(read(sql), rows, rows).possible() is None


def test_whole_numbers_and_times_are_certain_without_duckdb():
    rows = pa.table({"i": [1, 2, None], "t": pa.array([BASE, BASE + 1, None], pa.timestamp("us"))})
    for sql in (
        "l.i = r.i",
        "l.i <> r.i",
        "l.t < r.t",
        "l.i + 1 = r.i",
        "abs(epoch_us(l.t) - epoch_us(r.t)) <= 1",
    ):
        possible, certain = Sieve(read(sql), rows, rows).exact()
        assert formed(possible, 3, 3) == formed(certain, 3, 3) == truth(sql, rows, rows)


def test_an_unknown_part_leaves_the_rest_to_sieve():
    rows = pa.table({"i": [1, 20, 30], "s": ["a", "b", "a"]})
    sieve = Sieve(read("l.s = r.s AND l.i + 5 < r.i"), rows, rows)
    assert chosen(sieve.possible(), 3, 3) == {(0, 1), (0, 2), (1, 2)}
    assert sieve.exact()[1] is None
    assert Sieve(read("l.s = r.s OR l.i < r.i"), rows, rows).possible() is None


def test_a_sum_that_may_not_fit_its_type_is_left_to_duckdb():
    rows = pa.table({"n": pa.array([2**31 - 1, 1], pa.int32())})
    assert Sieve(read("l.n + r.n > 0"), rows, rows).possible() is None


def test_decimals_too_close_to_tell_are_in_doubt():
    rows = pa.table({"e": pa.array([Decimal("0.1"), Decimal("0.3")], pa.decimal128(5, 1))})
    possible, certain = Sieve(read("l.e * 3 = r.e"), rows, rows).exact()
    assert certain is None
    assert formed(possible, 2, 2) == {(0, 1)}
