import decimal
import itertools
import math

import pyarrow as pa
import pytest

from penstock.expressions.conditions import conjunction, conjuncts, is_total, substituted
from penstock.expressions.duck import evaluate
from penstock.query import Schema, predicate
from transpiled import translate

COLUMNS = "k string, n bigint, i int, d double, f float, m decimal(9,2), b boolean"
SCHEMA = Schema.parse(COLUMNS)
VALUES = {
    "k": [None, "", "a", "Z", "Ünï", "é"],
    "n": [None, 0, -1, 3, 2**40, 2**62 + 1],
    "i": [None, -3, 0, 1, 2, 9],
    "d": [None, 0.0, -0.0, math.nan, math.inf, 1.1, float(2**62)],
    "f": [None, 0.0, -0.0, math.nan, 1.1],
    "m": [None, *map(decimal.Decimal, ("0.00", "1.10", "-3.25", "99999.99"))],
    "b": [None, True, False],
}
TOTAL = (
    "d = d", "d > 1", "d = 0", "d < 0.5", "d in (0, 1.1)", "n > d", "n = d", "n > 1.5", "i > -0.5", "m > i",
    "m = 1.1", "m = d", "d = 1.1", "f >= f", "not (d > 1)", "d between -1 and 1.1", "k > 'é'",
    "k in ('a', '')",
    "k between 'Z' and 'a'", "k is null", "b", "b or k = 'a'", "coalesce(i, 2) > 1", "d * 2.5 > 1",
    "d - d = 0",
    "d + n > 3", "-d < 0", "n is distinct from i", "not coalesce(n > i, false)", "cast(i as bigint) > 2",
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["60 / i > 3", "i > '3'", "f = 1.1", "cast(k as int) > 1", "i + 1 > 3", "k like 'a%'", "length(k) > 1"],
)
def test_what_may_raise_or_differs_between_engines_is_not_total(text):
    assert not is_total(predicate(text, SCHEMA), SCHEMA)


def test_a_unit_of_time_is_no_column():
    schema = Schema.parse("a timestamp, b timestamp")
    assert not is_total(predicate("timestampdiff(WEEK, a, b) > 1", schema), schema)


def test_total_conditions_mean_the_same_in_spark_and_in_duckdb(spark):
    longest = max(map(len, VALUES.values())) * 7
    cycles = [itertools.islice(itertools.cycle(values), longest) for values in VALUES.values()]
    table = pa.Table.from_pylist(
        [dict(zip(VALUES, row, strict=True)) for row in zip(*cycles, strict=True)], schema=SCHEMA.arrow()
    )
    found = [predicate(text, SCHEMA) for text in TOTAL]
    assert all(is_total(each, SCHEMA) for each in found)
    ours = [f"({translate(each.sql)}) AS c{place}" for place, each in enumerate(found)]
    theirs = [f"({each.sql}) AS c{place}" for place, each in enumerate(found)]
    duck = evaluate(f"SELECT {', '.join(ours)} FROM input", table).to_pydict()
    assert spark.createDataFrame(table).selectExpr(*theirs).toArrow().to_pydict() == duck


def test_a_conjunction_is_taken_apart_and_put_together_in_its_order():
    parts = conjuncts("i > 1 and (n = 2 or b) and (k = 'a' and d > 0)", SCHEMA)
    assert [str(each) for each in parts] == ["`i` > 1", "`n` = 2 OR `b`", "`k` = 'a'", "`d` > 0"]
    assert str(conjunction(parts[:2], SCHEMA)) == "(`i` > 1) AND (`n` = 2 OR `b`)"


def test_a_name_is_replaced_by_what_it_stands_for():
    made = Schema.parse("place struct<x:int,y:int>, hour int")
    given = Schema.parse("at struct<x:int,y:int>, n int")
    condition = predicate(
        "place.x > 3 and timestampdiff(HOUR, now_, now_) = hour",
        Schema((*made.columns, *Schema.parse("now_ timestamp").columns)),
    )
    meanings = {"place": "`at`", "hour": "`n` + 1", "now_": "timestamp_micros(`n`)"}
    assert str(substituted(condition, meanings, given)) == (
        "`at`.`x` > 3 AND TIMESTAMPDIFF(HOUR, TIMESTAMP_MICROS(`n`), TIMESTAMP_MICROS(`n`)) = (`n` + 1)"
    )
    assert substituted(condition, {"place": "`at`"}, given) is None
