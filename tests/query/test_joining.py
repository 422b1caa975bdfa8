"""What can be said of a join and of explode, and what is refused when it is written."""

import pytest

import penstock as ps
from penstock.errors import BadJoin, BadName, QueryError, WrongType

A = ps.stream("a", "time timestamp, k string, v int, tags array<string>", time="time")
B = ps.stream("b", "at timestamp, k string, w int", time="at")
MINUTE = ps.window("1 minute")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs one bound"),
        ({"within": "1 s", "keep": "1 s"}, "needs one bound"),
        ({"window": "1 minute"}, "give a window of time"),
        ({"within": "1 s", "how": "outer"}, "one of inner, left, right, full, semi, anti"),
        ({"last": 3, "how": "anti"}, "anti join with the last 3 rows"),
        ({"within": "1 s", "time": "first"}, "one of earliest, latest, left, right"),
        ({"window": MINUTE, "time": "left"}, "the start of its window"),
        ({"last": 3, "time": "left"}, "of any age"),
        ({"within": "1 s", "how": "semi", "time": "right"}, "their own time"),
        ({"within": "1 s", "late": "drop"}, "in a join without a window"),
        ({"window": MINUTE, "late": "never"}, "it is 'count' or 'drop'"),
        ({"keep": ("1 s", "1 s", "1 s")}, "one for the left and one for the right"),
    ],
)
def test_bounds_and_times_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(BadJoin, match=message):
        A.join(B, "k", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"how": "left"}, None),
        ({"how": "right"}, "rows of any age"),
        ({"how": "semi"}, None),
        ({"time": "right"}, "time='latest'"),
        ({"time": "left"}, None),
        ({"time": "earliest"}, "time='latest'"),
        ({}, None),
    ],
)
def test_what_can_follow_a_join_that_keeps_right_rows_for_ever(options, message):
    why = A.join(B, "k", keep=("1 day", "forever"), **options).operator.why_last()
    assert why is None if message is None else message in why


def test_the_columns_of_each_kind_of_join():
    names = {
        "semi": A.join(B, "k", within="1 s", how="semi").schema.names,
        "window": A.join(B, "k", window=MINUTE).schema.names,
        "anti by window": A.join(B, "k", window=MINUTE, how="anti").schema.names,
    }
    assert names == {
        "semi": ("time", "k", "v", "tags"),
        "window": ("window_start", "window_end", "k", "time", "v", "tags", "at", "w"),
        "anti by window": ("window_start", "window_end", "k", "time", "v", "tags"),
    }


def test_bounds_of_windows_give_way_to_those_of_the_join():
    counted = A.group_by("k").window("1 minute").agg(n=ps.count())
    joined = counted.join(counted.select("k", m="n"), "k", window=ps.window("10 minutes"))
    assert joined.schema.names == ("window_start", "window_end", "k", "n", "m")
    named = counted.select("k", "n", begin="window_start").join(B.select("k"), "k", window=MINUTE)
    assert named.schema.names == ("window_start", "window_end", "k", "n", "begin")
    with pytest.raises(BadName, match="window_start"):
        A.select("k", window_start="v").join(B.select("k"), "k", window=MINUTE, suffixes=("", "_2"))


def test_explode_names_its_elements():
    assert A.explode(tag="tags").schema.column("tag").type == "string"
    assert A.explode(tags="tags").schema.names == ("time", "k", "v", "tags")
    assert A.explode(part="split(k, ' ')", outer=True).schema.names[-1] == "part"


@pytest.mark.parametrize(
    ("arrays", "error"),
    [
        ({}, QueryError),
        ({"a": "tags", "b": "tags"}, QueryError),
        ({"x": "v"}, WrongType),
        ({"k": "tags"}, BadName),
    ],
)
def test_what_is_no_array_or_has_no_name_of_its_own_is_refused(arrays, error):
    with pytest.raises(error):
        A.explode(**arrays)


@pytest.mark.parametrize("argument", ["struct(v, k)", "array(v)", "split(k, ',')", "coalesce(tags, tags)"])
def test_an_aggregate_of_what_no_partial_holds_is_refused(argument):
    with pytest.raises(WrongType, match="one plain value"):
        A.window("1 s").agg(top=ps.max(argument))


def test_the_time_of_the_left_side_in_another_case():
    renamed = A.select(TIME="time", k="k")
    assert renamed.join(B, "k", within="1 minute", how="semi").schema.names == ("time", "k")


def test_the_time_of_pairs_has_the_name_that_one_gives_it():
    joined = A.join(B, "k", within="1 minute", named="met")
    assert (joined.time, joined.schema.names[0]) == ("met", "met")
    assert joined.join(B, "k", within="1 minute", suffixes=("", "_2")).schema.names[:3] == (
        "pair_time",
        "k",
        "met",
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"within": "1 minute", "how": "semi", "named": "met"}, BadJoin),
        ({"window": MINUTE, "named": "met"}, BadJoin),
        ({"within": "1 minute", "named": "k"}, BadName),
        ({"within": "1 minute", "named": ""}, BadName),
    ],
)
def test_a_name_that_no_time_of_pairs_can_have_is_refused(options, error):
    with pytest.raises(error, match="name"):
        A.join(B, "k", **options)
