import penstock as ps
from compile.calls import calls, suspects
from penstock.compile import optimise
from penstock.query import query as query_of


def narrowed(*relations):
    return optimise(query_of(*relations)).query


def counted(relation, *keys):
    return relation.group_by(*keys).window("1 hour").agg(n=ps.count())


def test_only_columns_that_are_read_later_enter_and_leave_a_join():
    pairs = calls().join(suspects(), "phone", within="1 hour", condition="l.x > 3")
    query = narrowed(counted(pairs, "seconds"))
    join = query.relations[4]
    assert repr(join) == (
        "calls.select(phone, seconds, x).join(suspects.select(phone); phone; within 1 hour; `l`.`x` > 3)"
    )
    assert join.schema.names == ("time", "phone", "seconds")


def test_a_filter_that_moved_down_leaves_its_column_behind():
    pairs = calls().join(suspects(), "phone", within="1 hour").where("district = 3").select("seconds")
    assert repr(narrowed(pairs)) == (
        "calls.where(`district` = 3).select(phone, seconds)"
        ".join(suspects.select(phone); phone; within 1 hour).select(time, seconds)"
    )


def test_what_is_delivered_stays_as_it_is():
    pairs = calls().join(suspects(), "phone", within="1 hour")
    for output in (pairs, pairs.where("x > 1"), pairs.select("reason", "x"), counted(pairs, "reason")):
        (found,) = narrowed(output).outputs
        assert (found.schema, found.time, found.pinned) == (output.schema, output.time, output.pinned)


def test_a_join_that_is_delivered_keeps_its_columns():
    given = query_of(calls().join(suspects(), "phone", within="1 hour"))
    assert optimise(given).query is given


def test_windows_over_streams_are_left_as_they_are():
    area = calls().select("phone", "x", minutes="seconds / 60").where("x > 3")
    given = query_of(counted(area, "phone"))
    assert optimise(given).query is given
    assert optimise(given).notes == ()


def test_every_reader_gets_its_columns():
    pairs = calls().join(suspects(), "phone", within="1 hour")
    query = narrowed(counted(pairs, "seconds"), counted(pairs, "district"))
    assert query.relations[4].schema.names == ("time", "phone", "seconds", "district")


def test_both_sides_of_a_self_join_stay_one():
    pairs = calls().join(calls(), "phone", within="1 minute", condition="l.x < r.y", suffixes=("_1", "_2"))
    query = narrowed(counted(pairs, "seconds_2"))
    assert repr(query.relations[2]).startswith(
        "calls.select(phone, seconds, x, y).join(calls.select(phone, s"
    )


def test_the_inputs_of_a_union_keep_the_same_columns():
    fast = calls().join(suspects(), "phone", within="1 hour").select("phone", "seconds", "x")
    slow = calls("more").select("time", "phone", "seconds", "x")
    (found,) = narrowed(counted(fast.union(slow), "seconds")).outputs
    union = found.inputs[0]
    while len(union.inputs) == 1:
        union = union.inputs[0]
    assert [set(each.schema.names) for each in union.inputs] == [{"time", "seconds"}] * 2


def test_a_map_and_the_last_rows_take_every_column():
    for given in (
        counted(calls().join(suspects(), "phone", within="1 hour").map(lambda batch: batch, "a int"), "a"),
        counted(calls().join(suspects(), "phone", last=5), "seconds"),
    ):
        assert "calls.join(suspects;" in repr(narrowed(given))


def test_the_results_of_a_stage_lose_what_the_next_one_does_not_read():
    first = calls().group_by("phone", "district").window("1 minute").agg(n=ps.count(), top=ps.max("x"))
    text = repr(narrowed(counted(first, "district")))
    assert ".select(window_start, window_end, district).group_by(district)" in text


def test_what_was_left_behind_is_told():
    pairs = calls().join(suspects(), "phone", within="1 hour").select("seconds")
    assert optimise(query_of(pairs)).notes == (
        "join(phone; within 1 hour) gives 1 of 5 columns beside its time and keys",
        "2 of 6 columns of calls enter join(phone; within 1 hour): phone, seconds",
        "1 of 3 columns of suspects enter join(phone; within 1 hour): phone",
    )


def test_state_that_a_rewriting_filtered_has_another_fingerprint():
    pairs = calls().join(suspects(), "phone", within="1 hour")
    one, other = narrowed(pairs.where("x > 1")), narrowed(pairs.where("x > 2"))
    assert one.fingerprint() != other.fingerprint()
