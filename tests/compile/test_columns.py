import penstock as ps
from compile.calls import calls, suspects
from penstock.compile import optimise
from penstock.query import Join, Union
from penstock.query import outputs as query_of


def narrowed(*relations):
    return optimise(query_of(*relations)).query


def counted(relation, *keys):
    return relation.group_by(*keys).window("1 hour").agg(n=ps.count())


def joined(**options):
    return calls().join(suspects(), "phone", within="1 hour", **options)


def made_by(kind, query):
    return next(each for each in query.relations if isinstance(getattr(each, "operator", None), kind))


def test_only_columns_that_are_read_later_leave_a_join():
    join = made_by(Join, narrowed(counted(joined(condition="l.x > 3"), "seconds")))
    assert join.schema.names == ("pair_time", "phone", "seconds")
    assert join.operator.left == (("seconds", "seconds"),)
    assert join.operator.right == ()


def test_a_filter_that_moved_down_leaves_its_column_behind():
    found = narrowed(joined().where("district = 3").select("seconds"))
    assert (
        repr(found)
        == "calls.where(`district` = 3).join(suspects; phone; within 1 hour).select(pair_time, seconds)"
    )
    assert made_by(Join, found).operator.left == (("seconds", "seconds"),)


def test_what_is_delivered_stays_as_it_is():
    pairs = joined()
    for output in (pairs, pairs.where("x > 1"), pairs.select("reason", "x"), counted(pairs, "reason")):
        (found,) = narrowed(output).outputs
        assert (found.schema, found.time, found.pinned) == (output.schema, output.time, output.pinned)


def test_a_join_that_is_delivered_keeps_its_columns():
    given = query_of(joined())
    assert optimise(given).query is given


def test_windows_over_streams_are_left_as_they_are():
    area = calls().select("phone", "x", minutes="seconds / 60").where("x > 3")
    given = query_of(counted(area, "phone"))
    assert optimise(given).query is given
    assert optimise(given).notes == ()


def test_every_reader_gets_its_columns():
    pairs = joined()
    query = narrowed(counted(pairs, "seconds"), counted(pairs, "district"))
    assert made_by(Join, query).schema.names == ("pair_time", "phone", "seconds", "district")


def test_a_select_behind_a_join_makes_what_is_read():
    wide = joined().select("seconds", "reason", far="x + y")
    assert ".select(pair_time, seconds).group_by(seconds)" in repr(narrowed(counted(wide, "seconds")))


def test_suffixed_columns_are_known_by_their_names_in_the_result():
    pairs = calls().join(calls(), "phone", within="1 minute", suffixes=("_1", "_2"))
    join = made_by(Join, narrowed(counted(pairs, "seconds_2"))).operator
    assert (join.left, join.right) == ((), (("seconds", "seconds_2"),))


def test_the_inputs_of_a_union_keep_the_same_columns():
    pairs = calls().join(suspects(), "phone", within="1 hour", named="time", suffixes=("_1", "_2"))
    fast = pairs.select("phone", "seconds", "x")
    slow = calls("more").select("time", "phone", "seconds", "x")
    union = made_by(Union, narrowed(counted(fast.union(slow), "seconds")))
    assert [each.schema.names for each in union.inputs] == [("time", "seconds")] * 2


def test_a_map_and_the_last_rows_take_every_column():
    for given in (
        query_of(counted(joined().map(lambda batch: batch, "a int"), "a")),
        query_of(counted(calls().join(suspects(), "phone", last=5), "seconds")),
    ):
        assert optimise(given).query is given


def test_what_was_left_behind_is_told():
    assert optimise(query_of(joined().select("seconds"))).notes == (
        "join(phone; within 1 hour) gives 1 of 7 columns beside its time and keys",
        "2 of 6 columns of calls enter join(phone; within 1 hour) beside its time: phone, seconds",
        "1 of 3 columns of suspects enter join(phone; within 1 hour) beside its time: phone",
    )


def test_state_that_a_rewriting_filtered_has_another_fingerprint():
    one, other = narrowed(joined().where("x > 1")), narrowed(joined().where("x > 2"))
    assert one.fingerprint() != other.fingerprint()
    assert narrowed(joined().where("x / y > 1")).fingerprint() == narrowed(joined()).fingerprint()
