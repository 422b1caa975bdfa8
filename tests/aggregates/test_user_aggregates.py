import pickle

import pyarrow as pa
import pytest

import penstock.query as ps
from penstock.aggregates.aggregate import resolve
from penstock.errors import BadAggregate, BadExpression, UnknownColumn, WrongType

SCHEMA = ps.Schema.parse("n int, x double, k string, items array<int>")
SPREAD = ps.sql_aggregate(
    partial={"lo": "min(x)", "hi": "MAX( X )"}, merge={"lo": "min", "hi": "max(hi)"}, finish="hi - lo"
)


class Longest(ps.ArrowAggregate):
    state = {"length": "bigint"}  # noqa: RUF012
    result = "bigint"

    def __init__(self, *arguments, above=0.0):
        super().__init__(*arguments)
        self.above = above

    def accumulate(self, groups, n, *columns): ...

    def merge(self, left, right): ...

    def finish(self, state): ...


def test_sql_partials_get_the_arguments():
    arguments = resolve("a", SPREAD("n + x"), SCHEMA).arguments
    assert SPREAD.partial_sql(arguments) == {"lo": "MIN((`n` + `x`))", "hi": "MAX((`n` + `x`))"}


def test_sql_merges_are_normalised():
    assert SPREAD.merge == (("lo", "min"), ("hi", "max"))


@pytest.mark.parametrize(
    ("argument", "kind"), [("n", "int"), ("x", "double"), ("try_element_at(map('a', n), 'a')", None)]
)
def test_sql_result_type_follows_the_argument(argument, kind):
    assert resolve("a", SPREAD(argument), SCHEMA).type == kind


def test_sql_with_two_inputs():
    weighted = ps.sql_aggregate(
        inputs=("v", "w"),
        partial={"t": "sum(v * w)", "w": "sum(w)"},
        merge={"t": "sum", "w": "sum"},
        finish="t / w",
    )
    found = resolve("a", weighted("x", "n"), SCHEMA)
    assert weighted.partial_sql(found.arguments) == {"t": "SUM((`x`) * (`n`))", "w": "SUM((`n`))"}
    assert found.type == "double"


def test_sql_needs_every_input():
    with pytest.raises(BadAggregate, match="got 2 arguments"):
        SPREAD("n", "x")


def test_sql_refuses_nested_arguments():
    with pytest.raises(WrongType, match="array<int>"):
        resolve("a", SPREAD("items"), SCHEMA)


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"partial": {"lo": "x"}}, BadAggregate, "outside of any"),
        ({"partial": {"lo": "min(x) + x"}}, BadAggregate, "outside of any"),
        ({"partial": {"lo": "1"}}, BadAggregate, "no aggregate"),
        ({"partial": {"lo": "min(y)"}}, UnknownColumn, "'y'"),
        ({"partial": {"lo": "min(rand())"}}, BadExpression, "replayed"),
        ({"partial": {"lo": "count(distinct x)"}}, BadAggregate, "DISTINCT"),
        ({"partial": {"a b": "min(x)"}, "merge": {"a b": "min"}}, BadAggregate, "identifier"),
        ({"partial": {}}, BadAggregate, "same columns"),
        ({"merge": {"hi": "max"}}, BadAggregate, "same columns"),
        ({"merge": {"lo": "avg"}}, BadAggregate, "the merges are"),
        ({"merge": {"lo": "count"}}, BadAggregate, "counts merge by sum"),
        ({"merge": {"lo": "min(hi)"}}, BadAggregate, "the merges are"),
        ({"finish": "hi"}, UnknownColumn, "'hi'"),
        ({"finish": "min(lo)"}, BadExpression, "is an aggregate"),
        ({"inputs": "x"}, BadAggregate, "identifiers"),
    ],
)
def test_sql_refuses(change, error, reason):
    parts = {"partial": {"lo": "min(x)"}, "merge": {"lo": "min"}, "finish": "lo", **change}
    with pytest.raises(error, match=reason):
        ps.sql_aggregate(**parts)


def test_sql_is_finished_by_a_step_behind_the_windows():
    stream = ps.stream("s", "time timestamp, k string, x double", time="time")
    results = stream.group_by("k").window("1 hour").agg(wide=SPREAD("x + 1"), n=ps.count())
    assert results.schema.names == ("window_start", "window_end", "k", "wide", "n")
    assert str(results.operator) == "select(window_start, window_end, k, wide, n)"
    assert dict(results.operator.columns)["wide"].sql == "`_wide_hi` - `_wide_lo`"
    (windows,) = results.inputs
    assert [each.name for each in windows.operator.aggregates] == ["_wide_lo", "_wide_hi", "n"]
    assert str(windows.operator.aggregates[1]) == "MAX((`x` + 1))"


def test_sql_partials_take_no_name_of_another_column():
    stream = ps.stream("s", "time timestamp, x double", time="time")
    results = stream.window("1 hour").agg(wide=SPREAD("x"), _wide_lo=ps.count())
    assert dict(results.operator.columns)["wide"].sql == "`_wide_hi` - `__wide_lo`"


def test_arrow_resolves():
    found = resolve("a", Longest("x", "n"), SCHEMA)
    assert (str(found), found.type) == ("Longest(`x`, `n`)", "bigint")


def test_arrow_may_take_nested_arguments():
    assert resolve("a", Longest("items"), SCHEMA).arguments[0].type == "array<int>"


def test_arrow_equality_includes_settings():
    assert Longest("x") == Longest("x")
    assert Longest("x") != Longest("x", above=1.0)
    assert hash(Longest("x")) == hash(Longest("x"))


def test_arrow_state_schema():
    assert Longest("x").state_schema() == pa.schema([("length", pa.int64())])


def test_sql_definitions_pickle():
    assert pickle.loads(pickle.dumps(SPREAD)) == SPREAD


@pytest.mark.parametrize(
    "attributes",
    [
        {"state": {}},
        {"state": {"a": "strng"}},
        {"state": {"a b": "int"}},
        {"state": "a int"},
        {"result": "strng"},
        {"result": int},
    ],
)
def test_arrow_attributes_are_checked_when_the_class_is_made(attributes):
    with pytest.raises(BadAggregate, match="Bad"):
        type("Bad", (ps.ArrowAggregate,), attributes)


def test_arrow_without_a_result():
    methods = {name: lambda _self: None for name in ("accumulate", "merge", "finish")}
    bare = type("Bare", (ps.ArrowAggregate,), {"state": {"a": "int"}, **methods})
    with pytest.raises(BadAggregate, match="no result"):
        bare("x")


@pytest.mark.parametrize("arguments", [(), (3,)])
def test_arrow_needs_texts(arguments):
    with pytest.raises(BadAggregate, match="SQL texts"):
        Longest(*arguments)
