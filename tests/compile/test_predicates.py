import pytest

import penstock as ps
from compile.calls import calls, suspects
from penstock.compile import optimise
from penstock.compile.rewrite import predicates_down
from penstock.query import outputs as query_of


def moved(relation):
    return repr(predicates_down(query_of(relation))[0])


def same(batch):
    return batch


def joined(**options):
    return calls().join(suspects(), "phone", within="1 hour", **options)


def test_a_condition_on_one_side_goes_to_that_side():
    query = joined().where("seconds > 60 and reason = 'fraud'")
    assert moved(query) == (
        "calls.where(`seconds` > 60).join(suspects.where(`reason` = 'fraud'); phone; within 1 hour)"
    )


def test_a_condition_on_keys_goes_to_both_sides_whatever_the_join():
    for how in ("inner", "left", "right", "full"):
        text = moved(joined(how=how).where("phone <> '0'"))
        assert text.startswith("calls.where(`phone` <> '0').join(suspects.where(`phone` <> '0');"), how


def test_a_condition_on_both_sides_stays_and_the_others_of_its_conjunction_go():
    query = joined().where("seconds > 60 and (x > 3 or reason = 'a') and reason <> phone")
    assert moved(query) == (
        "calls.where(`seconds` > 60).join(suspects.where(`reason` <> `phone`); phone; within 1 hour)"
        ".where(`x` > 3 OR `reason` = 'a')"
    )


@pytest.mark.parametrize(
    ("how", "condition", "goes"),
    [
        ("left", "seconds > 60", True),
        ("left", "reason = 'a'", False),
        ("right", "seconds > 60", False),
        ("right", "reason = 'a'", True),
        ("full", "seconds > 60", False),
        ("full", "reason = 'a'", False),
    ],
)
def test_an_outer_join_takes_conditions_on_the_side_it_preserves_only(how, condition, goes):
    query = joined(how=how).where(condition)
    assert (moved(query) != repr(query)) == goes


def test_before_the_last_rows_only_whole_keys_are_filtered():
    query = calls().join(suspects(), "phone", last=3)
    assert moved(query.where("seconds > 60")) == repr(query.where("seconds > 60"))
    assert "calls.where(`phone` = '1').join(suspects.where(`phone` = '1')" in moved(
        query.where("phone = '1'")
    )


def test_the_time_of_a_join_is_of_no_side():
    query = joined().where("pair_time is not null")
    assert moved(query) == repr(query)


def test_the_time_of_a_row_is_of_its_side():
    assert moved(joined().where("time_right is null")) == (
        "calls.join(suspects.where(`time` IS NULL); phone; within 1 hour)"
    )


def test_suffixed_names_are_renamed_on_the_way():
    pairs = calls().join(calls(), "phone", within="1 minute", suffixes=("_1", "_2"))
    assert moved(pairs.where("x_2 > 3")) == ("calls.join(calls.where(`x` > 3); phone; within 1 minute)")


def test_a_pair_condition_stays():
    query = calls().cross(suspects(), "l.x > 3 and l.phone < r.phone", within="1 hour", suffixes=("", "_r"))
    assert moved(query.where("seconds > 60")) == (
        "calls.where(`seconds` > 60)"
        ".cross(suspects; within 1 hour; `l`.`x` > 3 AND `l`.`phone` < `r`.`phone`)"
    )


def test_keys_of_two_types_are_compared_in_the_type_of_the_join():
    wide = ps.stream("wide", "time timestamp, district bigint", time="time")
    text = moved(calls().join(wide, "district", within="1 hour").where("district > 5"))
    assert "calls.where(CAST(`district` AS BIGINT) > 5)" in text
    assert "wide.where(`district` > 5)" in text


def test_below_an_aggregation_go_conditions_on_keys_alone():
    hourly = calls().group_by(place="district % 10").window("1 hour").agg(n=ps.count())
    agg = "group_by(place).window(1 hour slide 1 hour).agg(n=count())"
    assert moved(hourly.where("place = 3 and n > 5")) == (
        f"calls.where((`district` % 10) = 3).{agg}.where(`n` > 5)"
    )
    late = hourly.where("window_start is not null")
    assert moved(late) == repr(late)


def test_it_goes_through_selects_and_unions_to_what_is_worth_passing():
    one = joined().select("phone", minutes="seconds * 1.0D")
    other = calls("more").select("phone", minutes="seconds * 1.0D")
    both = one.union(other.join(suspects().select("phone"), "phone", within="1 hour"))
    text = moved(both.where("minutes > 3.0D"))
    assert "calls.where((`seconds` * CAST(1.0 AS DOUBLE)) > CAST(3.0 AS DOUBLE)).join(" in text
    assert "more.select(phone, minutes).where(`minutes` > CAST(3.0 AS DOUBLE)).join(" in text


def test_nothing_moves_below_a_select_or_union_alone():
    for query in (
        calls().select("phone", minutes="seconds / 60").where("minutes > 3"),
        calls().union(calls("more")).where("seconds > 3").window("1 hour").agg(n=ps.count()),
    ):
        given = query_of(query)
        assert optimise(given).query is given


def test_a_condition_that_may_raise_stays_behind_its_guard():
    query = joined(condition="l.seconds <> 0").where("60 / seconds > 3")
    assert moved(query) == repr(query)
    guarded = joined().where("seconds <> 0 and 60 / seconds > 3")
    assert moved(guarded) == (
        "calls.where(`seconds` <> 0).join(suspects; phone; within 1 hour).where(60 / `seconds` > 3)"
    )


def test_a_text_compared_with_a_number_may_raise():
    query = joined().where("seconds > '3'")
    assert moved(query) == repr(query)


def test_filters_keep_their_order_on_the_way():
    query = joined().where("60 / seconds > 3").select("x", "seconds").where("x > 1")
    assert moved(query) == (
        "calls.where(`x` > 1).join(suspects; phone; within 1 hour)"
        ".where(60 / `seconds` > 3).select(pair_time, x, seconds)"
    )


def test_what_something_else_reads_too_is_not_passed():
    pairs = joined()
    given = query_of(pairs.where("seconds > 60"), pairs.where("seconds < 5"))
    assert optimise(given).query is given
    assert any("used 2 times" in note for note in optimise(given).notes)


def test_the_only_branch_of_a_split_that_is_used_goes_down():
    _, rest = joined().split("seconds > 60")
    assert moved(rest) == (
        "calls.where(NOT COALESCE(`seconds` > 60, FALSE)).join(suspects; phone; within 1 hour)"
    )


def test_a_map_is_passed_by_conditions_on_what_it_keeps():
    query = joined().map(same, "phone string").where("pair_time is not null and phone = '1'")
    assert moved(query) == (
        "calls.join(suspects; phone; within 1 hour).where(NOT `pair_time` IS NULL).map(same)"
        ".where(`phone` = '1')"
    )


def test_every_move_is_told():
    notes = optimise(query_of(joined().where("seconds > 60"))).notes
    assert (
        notes[0] == "condition `seconds` > 60 moved below join(phone; within 1 hour) to its left input calls"
    )
