"""What reads no column: a constant that raises is left to Spark, any other is known not to raise."""

import pyarrow as pa
import pytest

import penstock as ps
from penstock.compile import cut
from penstock.errors import BadJoin
from penstock.expressions.duck import evaluate
from penstock.functions import Uncertified, translated
from penstock.query import Query

COLUMNS = {"n": "int", "d": "date", "day": "timestamp"}


def given(name):
    return ps.stream(name, "time timestamp, k string, n int", "time", source=ps.rows([[]]))


@pytest.mark.parametrize(
    "text",
    [
        "100 div 0",
        "if(n > 0, n, 2147483647 + 1)",
        "case when n > 0 then d else date_add(make_date(0, 100, 100), n + 1) end",
        "coalesce(n, cast(300 as tinyint))",
        "n between 1 and -(-2147483648)",
        "n in (1, 7 % 0)",
        "timestampadd(WEEK, 2147483647, timestamp'2024-01-01 00:00:00')",
    ],
)
def test_a_constant_that_raises_is_left_to_spark(text):
    with pytest.raises(Uncertified, match="raises for every row"):
        translated(text, COLUMNS)


@pytest.mark.parametrize(
    "text",
    ["60 * 60", "d > date_sub(make_date(2024, 2, 29), 7 % 3)", "n between 1 and 60 * 60", "n in (1, 1 + 1)"],
)
def test_a_constant_that_does_not_raise_makes_nothing_that_may(text):
    assert not translated(text, COLUMNS).raises


def test_what_reads_a_column_with_the_name_of_a_unit_may_raise():
    assert translated("timestampadd(DAY, 1, day)", COLUMNS).raises


def test_two_columns_that_share_what_one_row_does_not_reach():
    columns = {"a": "tinyint", "b": "tinyint"}
    sql = ", ".join(
        f"{translated(text, columns).sql} AS v{at}"
        for at, text in enumerate(
            ["coalesce(b, a + a)", "ifnull(-b, a + a)", "nvl(a, b) + coalesce(b, a + a)"]
        )
    )
    table = pa.table([pa.array([100], pa.int8()), pa.array([5], pa.int8())], names=["a", "b"])
    assert evaluate(f"SELECT {sql} FROM input", table).to_pylist() == [{"v0": 5, "v1": -5, "v2": 105}]


def test_a_step_with_a_constant_that_raises_runs_in_spark():
    relation = (
        given("t").group_by("k").window("1 hour").agg(n=ps.first("n")).select(v="if(n > 0, n, 1 div 0)")
    )
    (feed,) = cut(Query((relation,))).outputs[0]
    assert feed.outside
    assert not feed.inside


def test_a_condition_with_a_constant_that_raises_is_refused():
    text = "l.n > 0 or r.n > 1 div 0"
    with pytest.raises(BadJoin, match="1 DIV 0 raises for every row"):
        given("l").join(given("r"), "k", within="1 second", suffixes=("_l", "_r"), condition=text)
