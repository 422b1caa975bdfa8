"""What every operator has to answer in accord with the others, and how little a new one has to say."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import pytest
import sqlglot

import penstock as ps
from penstock.compile import explain, optimise
from penstock.compile.stages import cut
from penstock.expressions.schema import Column, Schema
from penstock.operators import Named, Operator
from penstock.query import Query, derived, predicate
from penstock.routing import Resources

CALLS = "time timestamp, phone string, seconds int, x double"
calls = ps.stream("calls", CALLS, time="time")
others = ps.stream("others", "at timestamp, number string, x double, since date", time="at")
more = ps.stream("more", CALLS, time="time")


def doubled(batch):
    return batch


def visit(key, time, row, state):
    return ps.Visit(None)


RELATIONS = {
    "where": calls.where("seconds > 3"),
    "branch": calls.split("seconds > 3", "x < 1")[1],
    "select": calls.select("phone", minutes="seconds div 60"),
    "map": calls.map(doubled, "phone string"),
    "map in channels": calls.map(doubled, "phone string", channels=True),
    "map by cost": calls.map(doubled, "phone string", by="seconds"),
    "union": calls.union(more),
    "join": calls.join(others, {"phone": "number"}, within="1 hour", suffixes=("", "_2")),
    "outer join": calls.join(others, {"phone": "number"}, within="1 hour", how="full", suffixes=("", "_2")),
    "explode": calls.explode(part="split(phone, '-')"),
    "semi join": calls.join(others, {"phone": "number"}, within="1 hour", how="semi"),
    "anti join": calls.join(others, {"phone": "number"}, keep="1 hour", how="anti"),
    "join by window": calls.join(
        others, {"phone": "number"}, window=ps.window("1 hour"), suffixes=("", "_2")
    ),
    "last": calls.join(others, {"phone": "number"}, last=3, suffixes=("", "_2")),
    "cross": calls.cross(others, "l.x < r.x", within="1 hour", suffixes=("", "_2")),
    "windows": calls.group_by("phone", m="seconds div 60").window("1 hour", "10 minutes").agg(n=ps.count()),
    "cumulating windows": calls.group_by("phone").cumulate("1 hour", "10 minutes").agg(n=ps.count()),
    "several windows": calls.windows(ps.window("1 hour"), ps.window("1 day", "1 hour")).agg(n=ps.count()),
    "corrected windows": calls.group_by("phone").window("1 hour", lateness="1 day").agg(n=ps.count()),
    "groups": calls.group_by("phone").window("1 hour").agg(),
    "totals": calls.group_by("phone").agg(n=ps.count(), keep="1 day"),
    "one total": calls.agg(n=ps.count()),
    "one group": calls.window("1 hour").agg(top=ps.max("x")),
    "sessions": calls.group_by("phone").session("1 hour").agg(n=ps.count()),
    "counts": calls.group_by("phone").window(10, slide=2, rows=True).agg(n=ps.count()),
    "apply": calls.window("1 hour", "10 minutes").apply(doubled, "phone string"),
    "apply by key": calls.group_by("phone").window("1 hour").apply(doubled, "x double"),
    "apply to sessions": calls.group_by("phone").session("1 hour").apply(doubled, "x double"),
    "deduplicate": calls.deduplicate("phone", within="1 hour"),
    "process": calls.group_by("phone").process(visit, state={"n": "bigint"}, result="n bigint"),
}


@pytest.fixture(params=RELATIONS)
def relation(request):
    return RELATIONS[request.param]


def test_an_operator_is_a_value(relation):
    again = derived(relation.operator, relation.inputs)
    assert again == relation
    assert hash(again) == hash(relation)
    assert str(relation.operator) == relation.label


def test_a_relation_follows_from_its_operator_and_its_inputs(relation):
    operator, inputs = relation.operator, relation.inputs
    assert operator.schema(inputs) == relation.schema
    assert operator.event_time(inputs) == relation.time
    assert set(operator.pinned(inputs)) <= set(relation.schema.names)
    assert len(operator.ports) in {1, len(relation.inputs)}


def test_an_operator_keeps_state_or_merges_or_is_a_step(relation):
    operator = relation.operator
    assert [operator.stateful, operator.merges, operator.as_step() is not None].count(True) == 1
    if operator.as_filter():
        assert operator.as_step() is operator


def test_a_narrower_wish_reads_no_more(relation):
    names = {name.lower() for name in relation.schema.names}
    for place, given in enumerate(relation.inputs):
        known = {name.lower() for name in given.schema.names}
        every = relation.operator.reads(place, frozenset(names), relation.inputs)
        assert every <= known
        for name in names:
            assert relation.operator.reads(place, frozenset({name}), relation.inputs) <= every


def test_the_narrowed_operator_gives_what_is_wanted(relation):
    pinned = {name.lower() for name in relation.pinned}
    for name in relation.schema.names:
        wanted = frozenset({name.lower(), *pinned})
        operator, notes = relation.operator.narrowed(wanted, relation.inputs)
        assert wanted <= {each.lower() for each in operator.schema(relation.inputs).names}
        assert not notes or operator != relation.operator


def test_origins_are_sql_over_the_input(relation):
    for place, given in enumerate(relation.inputs):
        for name, sql in relation.operator.origins(place, relation.inputs).items():
            assert name in relation.schema
            read = sqlglot.parse_one(sql, read="spark").find_all(sqlglot.exp.Column)
            assert all(each.name in given.schema for each in read)


def test_a_condition_that_passes_reads_only_the_input(relation):
    for name in relation.schema.names:
        condition = predicate(f"`{name}` is not null", relation.schema)
        for place, moved in relation.operator.passes(condition, relation.inputs).items():
            assert set(moved.columns) <= set(relation.inputs[place].schema.names)


def test_carriers_are_columns_with_the_same_value(relation):
    operator, given = relation.operator, relation.inputs[0]
    for name in given.schema.names:
        carriers = operator.carriers(frozenset({name}))
        origins = operator.origins(0, relation.inputs)
        assert all(origins[each] == f"`{name}`" for each in carriers)


def test_channels_are_told_apart_by_keys_that_the_result_has(relation):
    operator = relation.operator
    assert (
        operator.partition_columns(relation.inputs) <= set(operator.key_names) <= set(relation.schema.names)
    )
    for place in range(len(relation.inputs)):
        assert len(operator.keys_at(place)) == len(operator.key_names)


def test_no_two_operators_mean_the_same():
    for one, other in itertools.combinations(RELATIONS.values(), 2):
        assert one.operator.meaning() != other.operator.meaning()


def test_steps_without_a_function_are_sql():
    steps = {name: RELATIONS[name].operator.as_step() for name in ("where", "branch", "select")}
    assert {name: step.select("input", "t") for name, step in steps.items()} == {
        "where": "(SELECT * FROM input WHERE ((`seconds` > 3)))",
        "branch": "(SELECT * FROM input WHERE ((NOT coalesce(`seconds` > 3, false) AND (`x` < 1))))",
        "select": "(SELECT `phone` AS `phone`, `seconds` DIV 60 AS `minutes`, t FROM input)",
    }


def test_what_keys_of_windows_cost_depends_on_where_partials_are_formed():
    """Defect 2: state was linear, so a rescale moved hot keys and left the partials uneven."""
    windows = RELATIONS["windows"].operator
    assert [windows.resources(form) for form in ("rows", "combined", "partials")] == [
        Resources.of("CLL"),
        Resources.of("CCC"),
        Resources.of("CCC"),
    ]
    lists = calls.group_by("phone").window("1 minute").agg(all=ps.array_agg("seconds")).operator
    assert lists.resources("rows") == Resources.of("LLL")


def test_what_keys_cost():
    growths = {name: [int(one) for one in RELATIONS[name].operator.resources().growths] for name in RELATIONS}
    assert growths["windows"] == [0, 1, 1]
    assert growths["join"] == [1, 2, 1]
    assert growths["last"] == growths["process"] == [0, 1, 1]


@pytest.mark.parametrize(("how", "bound"), [("left", {"last": 3}), ("full", {"last": 1})])
def test_nothing_follows_rows_of_any_age(how, bound):
    late = calls.join(others, {"phone": "number"}, how=how, suffixes=("", "_2"), **bound)
    assert "rows of any age" in late.operator.why_last()
    assert RELATIONS["last"].operator.why_last() is None


@dataclass(frozen=True)
class Distinct(Operator):
    """The first tuple of each key: an operator that says no more than it has to."""

    stateful: ClassVar[bool] = True

    keys: Named

    def __str__(self):
        return f"distinct({', '.join(self.key_names)})"

    def meaning(self):
        return ["distinct", [[name, each.sql] for name, each in self.keys]]

    def schema(self, inputs):
        keys = (Column(name, each.type, each.nullable) for name, each in self.keys)
        return Schema((inputs[0].schema.column(inputs[0].time), *keys))

    def keys_at(self, place):  # noqa: ARG002 -- there is one input
        return tuple((name, each.sql) for name, each in self.keys)


def test_a_new_operator_is_rewritten_cut_explained_and_has_a_fingerprint():
    grouped = calls.group_by("phone")
    found = Query((calls.derive(Distinct(grouped.keys)).where("phone <> '0' and time is not null"),))
    rewritten = optimise(found)
    assert repr(rewritten.query).startswith("calls.where(`phone` <> '0').distinct(phone).where(")
    assert len(cut(rewritten.query).stages) == 1
    assert "stage 0: distinct(phone)" in explain(found)
    assert "xxhash64(phone) by ring and table" in explain(found)
    assert found.fingerprint() != Query((grouped.window("1 hour").agg(n=ps.count()),)).fingerprint()
