import pytest

import penstock.query as ps
from penstock.aggregates.aggregate import resolve
from penstock.errors import BadAggregate, BadExpression, UnknownColumn, WrongType

SCHEMA = ps.Schema.parse(
    "n int, x double, f float, d decimal(35,2), k string, b boolean, items array<int>, m map<string,int>"
)


@pytest.mark.parametrize(
    ("aggregate", "kind"),
    [
        (ps.count(), "bigint"),
        (ps.count("items"), "bigint"),
        (ps.count_distinct("k"), "bigint"),
        (ps.count_distinct("items", "x"), "bigint"),
        (ps.approx_count_distinct("k"), "bigint"),
        (ps.avg("d"), "decimal(38,6)"),
        (ps.avg("f"), "double"),
        (ps.quantile("n", 0.5), "int"),
        (ps.sum("n"), "bigint"),
        (ps.sum("f"), "double"),
        (ps.sum("d"), "decimal(38,2)"),
        (ps.avg("n"), "double"),
        (ps.min("k"), "string"),
        (ps.max("b"), "boolean"),
        (ps.var("n"), "double"),
        (ps.stddev("d"), "double"),
        (ps.first("x"), "double"),
        (ps.last("n + 1"), "int"),
        (ps.quantile("x", 0.5), "double"),
        (ps.top_k("n"), "array<struct<item:int,count:bigint>>"),
        (ps.top_k("k"), "array<struct<item:string,count:bigint>>"),
        (ps.sum("try_element_at(map('a', n), 'a')"), None),
        (ps.avg("try_element_at(map('a', n), 'a')"), None),
    ],
)
def test_result_types(aggregate, kind):
    assert resolve("a", aggregate, SCHEMA).type == kind


@pytest.mark.parametrize(
    "aggregate",
    [
        ps.sum("k"),
        ps.avg("b"),
        ps.quantile("k", 0.5),
        ps.top_k("x"),
        ps.min("items"),
        ps.approx_count_distinct("items"),
        ps.count_distinct("k", "m"),
    ],
)
def test_wrong_types(aggregate):
    with pytest.raises(WrongType, match=rf"{aggregate.definition.name}\(\) needs"):
        resolve("a", aggregate, SCHEMA)


def test_a_wrong_type_says_what_to_do():
    with pytest.raises(WrongType, match=r"sum\(\) needs a number, got k string; cast it or use count\(\)"):
        resolve("a", ps.sum("k"), SCHEMA)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ps.approx_count_distinct("k", rsd=0.0001),
        lambda: ps.approx_count_distinct("k", rsd=0.5),
        lambda: ps.approx_count_distinct("k", "x"),
        lambda: ps.count_distinct("k", 12),
        lambda: ps.quantile("x", 1.1),
        lambda: ps.quantile("x", [0.5]),
        lambda: ps.quantile("x", 0.5, k=7),
        lambda: ps.top_k("k", 0),
        lambda: ps.top_k("k", 5, capacity=100),
        lambda: ps.top_k("k", 50, capacity=32),
        lambda: ps.top_k("k", True),
    ],
)
def test_options_out_of_range(call):
    with pytest.raises(BadAggregate, match="got"):
        call()


def test_options_are_kept():
    found = resolve("a", ps.quantile("x", 1, k=400), SCHEMA)
    assert found.definition.options == (("q", 1.0), ("k", 400))


def test_the_default_capacity_is_a_power_of_two():
    assert dict(ps.top_k("k", 10).definition.options)["capacity"] == 256


def test_an_estimate_has_as_many_registers_as_its_error_needs():
    found = {
        rsd: ps.approx_count_distinct("k", rsd).definition.precision for rsd in (0.39, 0.05, 0.02, 0.001)
    }
    assert found == {0.39: 4, 0.05: 9, 0.02: 12, 0.001: 21}


def test_an_aggregate_of_an_aggregate():
    with pytest.raises(BadExpression, match="is an aggregate"):
        resolve("a", ps.sum("count(n)"), SCHEMA)


def test_an_unknown_column():
    with pytest.raises(UnknownColumn):
        resolve("a", ps.sum("missing"), SCHEMA)


@pytest.mark.parametrize("thing", ["avg(x)", ps.avg, 3])
def test_what_is_no_aggregate(thing):
    with pytest.raises(BadAggregate, match="is not an aggregate"):
        resolve("a", thing, SCHEMA)
