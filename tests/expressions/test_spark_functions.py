"""Functions are known without Spark, and are those of Spark."""

import pytest

import penstock as ps
from expressions import spark_registry
from penstock.errors import BadExpression, UnknownFunction
from penstock.expressions.functions import GENERATORS, UNREPEATABLE, WINDOW_ONLY, is_aggregate_name
from penstock.expressions.scalar import scalar
from penstock.expressions.schema import Schema
from penstock.expressions.spark_functions import function_names

SCHEMA = Schema.parse("time timestamp, n int, k string, items array<int>")


def test_the_registry_is_that_of_spark(spark):
    assert spark_registry.written(spark) == spark_registry.TABLE.read_text(), "run make functions"


def test_what_gives_no_single_repeatable_value_is_known_as_such(spark):
    def unknown(kind, known):
        return sorted(name for name in spark_registry.of_kind(spark, kind) if not known(name))

    assert not unknown(
        "aggregate.AggregateFunction", lambda name: is_aggregate_name(name) or name in WINDOW_ONLY
    )
    assert not unknown("WindowFunction", lambda name: is_aggregate_name(name) or name in WINDOW_ONLY)
    assert not unknown("Generator", GENERATORS.__contains__)
    assert not unknown("Nondeterministic", UNREPEATABLE.__contains__)
    assert not unknown("CurrentTimestampLike", UNREPEATABLE.__contains__)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nofunc(n)", r"no function nofunc\(\); the functions are those of Spark SQL"),
        ("lenght(k)", r"no function lenght\(\); did you mean length\(\)"),
        ("upper(trimm(k))", r"no function trimm\(\); did you mean .*trim\(\)"),
        ("girid(n, n, 5)", r"did you mean grid\(\)"),
        ("transform(items, x -> twice(x))", r"no function twice\(\)"),
        ("NoFunc(n)", r"A function of your own goes into map\(\)"),
        ("mine.twice(n)", r"mine.twice\(n\): functions of a catalog are not supported"),
    ],
)
def test_an_unknown_function_is_refused_with_the_nearest_ones(text, message):
    with pytest.raises(UnknownFunction, match=message):
        scalar(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abs()", r"abs\(\) takes 1 argument, got 0"),
        ("round(n, 1, 2)", r"round\(\) takes 1 or 2 arguments, got 3"),
        ("hypot(n)", r"hypot\(\) takes 2 arguments, got 1"),
        ("make_timestamp(1, 2, 3, 4)", "takes 1 to 3 or 6 to 7 arguments, got 4"),
        ("decode(k)", "takes 2 or more arguments, got 1"),
        ("pi(n)", "takes no arguments, got 1"),
        ("timestampdiff(time, time)", "takes 3 arguments, got 2"),
    ],
)
def test_a_wrong_number_of_arguments_is_refused(text, message):
    with pytest.raises(BadExpression, match=message):
        scalar(text, SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "window(time, '1 hour')",
        "vector_sum(items)",
        "kll_sketch_agg_bigint(n)",
        "localtime()",
        "counter_diff(n)",
    ],
)
def test_what_spark_could_not_evaluate_per_tuple_is_refused(text):
    with pytest.raises(BadExpression):
        scalar(text, SCHEMA)


def test_every_place_of_a_query_asks():
    stream = ps.stream("s", SCHEMA, "time")
    windowed = stream.group_by("k").window("1 hour").agg(n=ps.sum("n"))
    for build in (
        lambda: stream.where("nofunc(n) > 1"),
        lambda: stream.select("time", x="nofunc(n)"),
        lambda: stream.group_by(x="nofunc(n)"),
        lambda: stream.group_by("k").window("1 hour").agg(x=ps.sum("nofunc(n)")),
        lambda: windowed.select(x="nofunc(n)"),
        lambda: stream.cross(stream, "nofunc(l.n) = r.n", within="1 hour", suffixes=("", "_r")),
        lambda: ps.sql("SELECT nofunc(n) AS x FROM s", s=stream),
    ):
        with pytest.raises(UnknownFunction, match="nofunc"):
            build()


def test_a_function_registered_in_the_session_is_not_one_of_the_query(spark):
    spark.udf.register("twice_of_mine", lambda n: 2 * n, "int")
    with pytest.raises(UnknownFunction, match=r"into map\(\)"):
        scalar("twice_of_mine(n)", SCHEMA)


def test_there_are_as_many_as_in_spark():
    assert len(function_names()) > 500
