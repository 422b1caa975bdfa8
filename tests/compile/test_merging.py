import pytest

import penstock as ps
from compile.calls import CALLS, calls, suspects
from penstock.compile.stages import cut
from penstock.query import outputs as query_of


def joined(**options):
    return calls().join(suspects(), "phone", within="1 hour", **options)


def counted(relation, *keys, **named):
    return relation.group_by(*keys, **named).window("1 hour").agg(n=ps.count())


def beside(relation, strategy="subquery"):
    return [stage.host for stage in cut(query_of(relation), strategy).stages]


def test_an_aggregation_by_the_keys_of_the_join_before_it_runs_beside_it():
    found = cut(query_of(counted(joined(), "phone", "reason")))
    assert [stage.host for stage in found.stages] == [None, 0]
    assert "stage 1 merged with stage 0: both part tuples by phone" in found.notes


def test_only_by_the_subquery_strategy():
    assert beside(counted(joined(), "phone"), "operator") == [None, None]
    assert beside(counted(joined(), "phone"), "query") == [None, None]


def test_a_key_may_have_another_name_but_no_other_value():
    assert beside(counted(joined().where("x > 1").select(number="phone"), "number")) == [None, 0]
    assert beside(counted(joined().select(number="lower(phone)"), "number")) == [None, None]
    assert beside(counted(joined(), number="lower(phone)")) == [None, None]


def test_all_keys_have_to_be_there():
    by_two = counted(calls(), "phone", "district")
    assert beside(counted(by_two, "phone")) == [None, None]
    assert beside(counted(by_two, "district", "phone")) == [None, 0]


def test_a_map_may_change_every_column():
    assert beside(counted(joined().map(lambda batch: batch, "phone string"), "phone")) == [None, None]


def test_a_product_without_keys_has_no_neighbour():
    pairs = calls().cross(suspects(), within="1 hour", suffixes=("", "_2"))
    assert beside(counted(pairs, "phone")) == [None, None]


def test_one_that_something_else_feeds_too_has_none():
    more = calls("more").select("phone", "seconds", "time")
    pairs = calls().join(suspects(), "phone", within="1 hour", named="time", suffixes=("_1", "_2"))
    both = pairs.select("phone", "seconds").union(more)
    assert beside(counted(both, "phone")) == [None, None]


@pytest.mark.parametrize(("how", "wanted"), [("left", 0), ("right", None), ("full", None)])
def test_rows_without_a_key_may_be_in_any_channel(how, wanted):
    sure = ps.stream("calls", CALLS.replace("phone string", "phone string not null"), time="time")
    pairs = sure.join(suspects(), "phone", within="1 hour", how=how)
    assert beside(counted(pairs, "phone")) == [None, wanted]


def test_what_only_spark_can_combine_needs_its_own_exchange():
    many = joined().group_by("phone").window("1 hour").agg(n=ps.approx_count_distinct("reason"))
    assert beside(many) == [None, None]


def test_in_a_row_all_count_on_the_first():
    by_two = counted(joined(), "phone", "reason")
    assert beside(counted(by_two, "phone")) == [None, 0, 1]
    assert beside(counted(by_two, "reason")) == [None, 0, None]


# Joins.


def beside_of(relation, other, *keys, **options):
    return beside(relation.join(other, list(keys), suffixes=("", "_2"), **({"within": "1 hour"} | options)))


def test_a_join_of_what_one_stage_gives_runs_in_its_channels():
    hourly = counted(calls(), "phone", "district")
    few, many = hourly.where("n < 5"), hourly.where("n > 9")
    for how in ("inner", "left", "right", "full"):
        assert beside_of(few, many, "phone", "district", how=how) == [None, 0]
    renamed = many.select("district", number="phone")
    keys = {"district": "district", "phone": "number"}
    assert beside(few.join(renamed, keys, within="1 hour", suffixes=("", "_2"))) == [None, 0]


def test_a_join_of_stages_that_share_channels_runs_there_too():
    pairs = joined()
    hourly = counted(pairs, "phone")
    again = pairs.join(hourly, "phone", within="1 hour", suffixes=("", "_2"))
    found = cut(query_of(counted(again, "phone")))
    assert [stage.host for stage in found.stages] == [None, 0, 1, 2]
    assert "stage 2 merged with stage 0 and stage 1: all part tuples by phone" in found.notes


def test_a_join_by_other_keys_has_its_own_channels():
    hourly = counted(calls(), "phone", "district")
    few, many = hourly.where("n < 5"), hourly.where("n > 9")
    assert beside_of(few, many, "phone") == [None, None]
    placed = counted(calls(), "x", "y")
    crossed = placed.where("n > 9").select(x="y", y="x")
    assert beside_of(placed, placed.where("n > 9"), "x", "y") == [None, 0]
    assert beside_of(placed, crossed, "x", "y") == [None, None]


def test_a_join_with_tuples_from_elsewhere_has_its_own_channels():
    hourly, other = counted(calls(), "phone"), counted(calls("more"), "phone")
    assert beside_of(hourly, suspects(), "phone") == [None, None]
    assert beside_of(suspects(), hourly, "phone") == [None, None]
    assert beside_of(hourly, other, "phone") == [None, None, None]


def test_a_join_with_the_last_rows_has_its_own_channels():
    hourly = counted(calls(), "phone")
    pairs = hourly.where("n < 5").join(hourly.where("n > 9"), "phone", last=3, suffixes=("", "_2"))
    assert beside(pairs) == [None, None]
