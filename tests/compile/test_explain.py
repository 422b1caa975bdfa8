import json

import pytest

import penstock as ps
from compile.calls import calls, cdr_query, suspects
from penstock.compile import explain
from penstock.errors import BadRouting, UnknownForm, UnknownStrategy
from penstock.query import outputs as query_of


def stream():
    return ps.stream("reports", "time timestamp, area string, speed double", time="time", delay="5 seconds")


def told(*relations, **options):
    return explain(query_of(*relations), **options)


def test_it_names_the_pane_and_both_queries():
    text = told(stream().group_by("area").window("60 minutes", slide="1 minute").agg(n=ps.count()))
    assert "panes: 1 minute = gcd(size 1 hour, slide 1 minute)" in text
    assert "pane-level query" in text
    assert "window-level query" in text
    assert "instead of in 60 overlapping windows" in text


def test_equal_partials_are_kept_once():
    query = stream().window("1 minute").agg(mean=ps.avg("speed"), total=ps.sum("speed"), n=ps.count("speed"))
    assert told(query).count(":= count(`speed`)") == 1


def test_it_says_why_rows_are_not_combined_on_the_map_side():
    from penstock.demo.traffic import QueueEnd

    text = told(stream().group_by("area").window("1 minute").agg(jam=QueueEnd("speed")))
    assert "user-defined aggregates need the rows themselves" in text


def test_the_cdr_query_is_drawn_as_a_tree():
    lines = told(cdr_query()).splitlines()
    assert lines[:8] == [
        "graph",
        "  output 0",
        "  └─ group_by(minutes).window(1 hour slide 10 minutes).agg(calls=count())   [stage 1]",
        "     └─ select(pair_time, minutes)",
        "        └─ join(phone; within 1 hour)   [stage 0]",
        "           ├─ calls",
        "           └─ suspects",
        "streams",
    ]


def test_what_is_used_twice_is_drawn_once():
    pairs = calls().join(suspects(), "phone", within="1 hour")
    text = told(pairs.select("x"), pairs.select("y"))
    assert text.count("join(phone; within 1 hour)   [stage 0]") == 2
    assert "join(phone; within 1 hour)   [stage 0], drawn above" in text
    assert text.count("├─ calls") == 1
    assert "join(phone; within 1 hour) is there once and used 2 times" in text


def test_a_join_says_what_it_keeps_and_until_when():
    text = told(calls().join(suspects(), "phone", within="1 hour", how="left", condition="l.x > 3"))
    assert "pairs: equal phone, at most 1 hour apart" in text
    assert "has passed its time by more than 1 hour" in text
    assert "a row of the left side without a partner is delivered when it can match no more" in text
    assert "where `l`.`x` > 3 is true" in text


@pytest.mark.parametrize(
    ("relation", "route"),
    [
        (calls().join(suspects(), "phone", within="1 hour"), "route: xxhash64(phone) by ring and table"),
        (calls().cross(suspects(), within="1 hour", suffixes=("", "_2")), "route: grid"),
        (
            calls().cross(suspects(), last=5, suffixes=("", "_2")),
            "route: one channel: with so few last rows",
        ),
        (
            calls().cross(suspects(), last=500, suffixes=("", "_2")),
            "route: all: each tuple goes to every channel",
        ),
        (calls().window("1 hour").agg(n=ps.count()), "route: one channel: without a key there is one group"),
    ],
)
def test_every_stage_names_its_router(relation, route):
    assert route in told(relation)


def test_channels_are_shared_out_to_the_stages_as_a_run_does_it():
    for given, wanted in ((8, [4, 4]), (1, [1, 1]), (None, [None, None])):
        stages = json.loads(told(cdr_query(), form="json", channels=given))["stages"]
        assert [stage["channels"] for stage in stages] == wanted
    assert "channels: 1\n" in told(calls().window("1 hour").agg(n=ps.count()), channels=4)
    with pytest.raises(BadRouting, match="channels=0"):
        told(cdr_query(), channels=0)


def test_merged_stages_and_folded_filters_are_told():
    pairs = calls().join(suspects(), "phone", within="1 hour").where("x > y")
    text = told(pairs.group_by("phone").window("1 hour").agg(n=ps.count()))
    assert "route: none: its tuples are in the channels of stage 0 already" in text
    assert "stage 1 merged with stage 0: both part tuples by phone" in text


def test_a_query_without_state_says_which_path_it_takes_and_why():
    text = told(calls().where("x > 1"))
    assert "    path: our own, no channel and no state; the tasks that read write the results\n" in text
    assert "    why: Arrow from the source to the sink takes less processor time than Spark SQL" in text
    assert "why: Spark SQL gets" in told(calls().explode(part="split(phone, '-')"))
    assert "path:" not in told(calls().window("1 hour").agg(n=ps.count()))
    assert len(json.loads(told(calls().where("x > 1"), form="json"))["outputs"][0]["path"]) == 2


def test_by_operator_steps_are_dealt_round_robin():
    text = told(calls().where("x > 1"), strategy="operator")
    assert "stage 0: where(`x` > 1)\n" in text
    assert "route: round robin: no state, so any channel will do" in text
    assert "output 0 ← stage 0" in text


def test_json_has_streams_stages_feeds_routers_channels_and_notes():
    plan = json.loads(told(cdr_query(), form="json", strategy="operator"))
    assert plan["strategy"] == "operator"
    assert [each["name"] for each in plan["streams"]] == ["calls", "suspects"]
    join, step, windows = plan["stages"]
    assert (join["kind"], join["router"]["kind"], join["channels"]) == ("join", "hash", None)
    assert (step["kind"], step["router"]["kind"]) == ("select", "any")
    assert step["ports"] == [[{"origin": 0, "inside": [], "outside": [], "beyond": []}]]
    assert windows["ports"] == [[{"origin": 1, "inside": [], "outside": [], "beyond": []}]]
    assert plan["outputs"][0]["feeds"][0]["origin"] == 2
    assert any("gives 1 of 7 columns" in note for note in plan["notes"])


def test_steps_say_who_evaluates_them_and_why():
    steps = calls().where("x > 1").explode(part="split(phone, '-')").where("part <> ''")
    text = told(steps)
    assert "calls: where(`x` > 1) (DuckDB on Arrow, as it is read) → explode(part=SPLIT(" in text
    assert "(Spark SQL, because explode(part=SPLIT(`phone`, '-')) makes several tuples of one)" in text
    assert "→ where(`part` <> '') (DuckDB on Arrow)\n" in text
    (feed,) = json.loads(told(steps, form="json"))["outputs"][0]["feeds"]
    assert feed["inside"] == ["where(`x` > 1)"]
    assert feed["outside"] == ["explode(part=SPLIT(`phone`, '-'))"]
    assert feed["beyond"] == ["where(`part` <> '')"]
    assert feed["why_outside"] == "explode(part=SPLIT(`phone`, '-')) makes several tuples of one"


def test_mermaid_has_a_subgraph_for_each_stage():
    lines = [line.strip() for line in told(cdr_query(), form="mermaid", channels=4).splitlines()]
    assert lines[0] == "flowchart LR"
    assert 'subgraph stage0["stage 0: 2 channels"]' in lines
    assert "stream_calls -->|left, hash| stage0_op" in lines
    assert lines.count("end") == 2


def test_mermaid_reads_no_markup_in_conditions():
    text = told(calls().where("""x < 3 and phone <> '"#'"""), form="mermaid")
    assert "where(x #lt; 3 AND phone #lt;#gt; '#quot;#35;')" in text


def test_unknown_forms_and_strategies_are_told_the_known_ones():
    with pytest.raises(UnknownForm, match="text, mermaid, json"):
        told(cdr_query(), form="svg")
    with pytest.raises(UnknownStrategy, match="subquery, operator, query"):
        told(cdr_query(), strategy="cluster")
