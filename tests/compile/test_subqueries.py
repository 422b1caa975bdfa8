import pytest

import penstock as ps
from compile.calls import calls, cdr_query, suspects
from penstock.compile.stages import STRATEGIES, cut
from penstock.errors import UnknownStrategy
from penstock.query import outputs as query_of


def double(batch):
    return batch


def fig_2():
    """Map, filter, join, filter, aggregate, map (002, figure 2)."""
    mapped = calls().map(double, "phone string, seconds int").where("seconds > 3")
    pairs = mapped.join(suspects(), "phone", within="1 hour").where("seconds < 60")
    return pairs.group_by("reason").window("1 hour").agg(n=ps.count()).map(double, "n bigint")


def shape(feed):
    origin = feed.origin if isinstance(feed.origin, int) else feed.origin.name
    return origin, [str(step) for step in feed.inside], [str(step) for step in feed.outside + feed.beyond]


def test_a_stage_is_a_stateful_operator_and_the_stateless_ones_after_it():
    found = cut(query_of(fig_2()))
    join, aggregation = found.stages
    assert shape(join.ports[0][0]) == ("calls", ["map(double)", "where(`seconds` > 3)"], [])
    assert shape(join.ports[1][0]) == ("suspects", [], [])
    assert shape(aggregation.ports[0][0]) == (0, ["where(`seconds` < 60)"], [])
    assert shape(found.outputs[0][0]) == (1, ["map(double)"], [])


def test_by_operator_every_step_has_channels_of_its_own():
    found = cut(query_of(fig_2()), "operator")
    steps = {stage.number: str(stage.operator).partition("(")[0] for stage in found.stages}
    assert steps == {0: "map", 1: "where", 2: "join", 3: "where", 4: "group_by", 5: "map"}
    feeds = [shape(feed) for stage in found.stages for port in stage.ports for feed in port]
    assert feeds == [(each, [], []) for each in ("calls", 0, 1, "suspects", 2, 3, 4)]
    assert [shape(port[0]) for port in found.outputs] == [(5, [], [])]
    assert [stage.host for stage in found.stages] == [None] * 6
    assert not any("load balancer" in note for note in found.notes)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_cdr_query_has_two_stages_by_every_strategy(strategy):
    found = cut(query_of(cdr_query()), strategy)
    # By operator the step between them is a stage as well.
    kept = [stage for stage in found.stages if stage.operator.kind != "select"]
    assert [str(stage.operator).split("(")[0] for stage in kept] == ["join", "group_by"]
    assert len(found.stages) - len(kept) == (1 if strategy == "operator" else 0)
    assert {stage.host for stage in found.stages} == {None}


def test_an_unknown_strategy_is_told_the_known_ones():
    with pytest.raises(UnknownStrategy, match="subquery, operator, query"):
        cut(query_of(cdr_query()), "cluster")


def test_a_diamond_has_its_shared_stage_once():
    pairs = calls().join(suspects(), "phone", within="1 hour")
    one = pairs.group_by("reason").window("1 hour").agg(n=ps.count())
    other = pairs.group_by("reason").window("1 hour").agg(top=ps.max("x"))
    found = cut(query_of(one.join(other, "reason", within="0 seconds", suffixes=("", "_2"))))
    assert [stage.number for stage in found.stages] == [0, 1, 2, 3]
    assert [feed.origin for stage in found.stages[1:] for port in stage.ports for feed in port] == [
        0,
        0,
        1,
        2,
    ]


def test_leading_unions_are_feeds_of_a_port():
    both = calls().union(calls("more").where("x > 1")).where("seconds > 3")
    found = cut(query_of(both.window("1 hour").agg(n=ps.count())))
    steps = [shape(feed) for feed in found.stages[0].ports[0]]
    assert steps == [
        ("calls", ["where(`seconds` > 3)"], []),
        ("more", ["where(`x` > 1)", "where(`seconds` > 3)"], []),
    ]
    assert "union of 2 feeds folded into the input merger of stage 0" in found.notes


def test_trailing_filters_are_the_load_balancers():
    notes = cut(query_of(fig_2())).notes
    assert "where(`seconds` < 60) folded into the load balancer of stage 0 towards stage 1" in notes
    assert "where(`seconds` > 3) folded into the load balancer of calls towards stage 0" in notes


def test_several_outputs_have_a_port_each():
    fast, slow = calls().split("seconds < 60")
    found = cut(query_of(fast, slow.window("1 hour").agg(n=ps.count())))
    assert [shape(port[0])[0] for port in found.outputs] == ["calls", 0]
