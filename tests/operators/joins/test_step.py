"""One epoch of a join: times, types, late rows, bounded blocks and what stays."""

import datetime as dt
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import BadJoin
from penstock.operators.joins.result import result_schema
from penstock.operators.joins.spans import BLOCK
from penstock.operators.joins.spec import END, Condition, Frontiers, JoinSpec, Last, Pair, Side, Within
from penstock.operators.joins.step import HeldSide, step

NONE = Frontiers()


def stepped(join, left, right, before=NONE, after=NONE):
    delivered = []
    empty = HeldSide.nothing(left.schema), HeldSide.nothing(right.schema)
    sides = step(join, Pair(*empty), Pair(left, right), before, after, delivered.append)
    return [row for table in delivered for row in table.to_pylist()], sides


def named(prefix, *, keys=()):
    return Side("t", keys=keys, columns=(("v", prefix),))


def test_timestamps_stay_timestamps_in_result_and_condition():
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
    rows = pa.table({"t": pa.array([moment], pa.timestamp("us", "UTC")), "v": [1]})
    condition = Condition("l.t = r.t AND l.t < TIMESTAMP '1970-01-01'", ("t",), ("t",))
    plan = JoinSpec(named("a"), named("b"), Within(0), condition=condition, time="t")
    assert stepped(plan, rows, rows)[0] == [{"t": moment, "a": 1, "b": 1}]


def test_a_late_row_is_refused():
    rows = pa.table({"t": [5], "v": [1]})
    with pytest.raises(BadJoin, match="below the frontier 6"):
        stepped(JoinSpec(named("a"), named("b"), Within(1)), rows, rows, before=Frontiers(None, 6))


def test_a_row_without_a_time_is_refused():
    rows = pa.table({"t": pa.array([None], pa.int64()), "v": [1]})
    with pytest.raises(BadJoin, match="1 rows of a join have no 't'"):
        stepped(JoinSpec(named("a"), named("b"), Within(1)), rows, rows)


def test_times_of_another_unit_are_refused():
    rows = pa.table({"t": pa.array([1], pa.timestamp("ms")), "v": [1]})
    with pytest.raises(BadJoin, match="give microseconds"):
        stepped(JoinSpec(named("a"), named("b"), Within(1)), rows, rows)


def test_an_unmatched_row_is_delivered_when_its_last_partner_can_come_no_more():
    # left   5
    # right      frontier 7: one at 7 may come;  frontier 8: none within 2 any more
    left, right = pa.table({"t": [5], "v": [1]}), pa.table({"t": [5], "v": [1]}).slice(1)
    plan = JoinSpec(named("a"), named("b"), Within(2), how="left", time="t")
    assert stepped(plan, left, right, after=Frontiers(9, 7))[0] == []
    assert stepped(plan, left, right, after=Frontiers(9, 8))[0] == [{"t": 5, "a": 1, "b": None}]


def test_arrival_order_hides_no_pair():
    # The scenario of [002] §III.E: D arrives before B and must not push 1 out of B's window.
    #   time     0 1 2 3 4 5 6 7 8
    #   left       1       2
    #   right          B         D      window 3;  arrival: 1 2 | D | B
    plan = JoinSpec(named("a"), named("b"), Within(3))
    left = pa.table({"t": [1, 5], "v": ["1", "2"]})
    later, earlier = pa.table({"t": [8], "v": ["D"]}), pa.table({"t": [3], "v": ["B"]})
    delivered, empty = [], HeldSide.nothing(left.schema)
    held = Pair(empty, empty)
    for new, after in ((Pair(left, later[:0]), NONE), (Pair(left[:0], later), Frontiers(5, 3))):
        sides = step(plan, held, new, NONE, after, delivered.append)
        held = Pair(sides.left.held(held.left.rows, new.left), sides.right.held(held.right.rows, new.right))
    step(plan, held, Pair(left[:0], earlier), Frontiers(5, 3), Frontiers(END, END), delivered.append)
    pairs = {(row["a"], row["b"]) for table in delivered for row in table.to_pylist()}
    assert pairs == {("1", "B"), ("2", "B"), ("2", "D")}


def test_ties_fall_to_the_tie_columns():
    sides = [Side("t", ties=("seq",), columns=(("v", name),)) for name in "ab"]
    left = pa.table({"t": [1, 1], "seq": [1, 3], "v": ["first", "third"]})
    right = pa.table({"t": [1], "seq": [2], "v": ["second"]})
    rows, _ = stepped(JoinSpec(*sides, Last(1)), left, right, after=Frontiers(2, 2))
    assert [(row["a"], row["b"]) for row in rows] == [("third", "second"), ("first", "second")]


def test_last_rows_wait_for_the_frontier():
    rows = pa.table({"t": [1, 9], "v": [1, 2]})
    plan = JoinSpec(named("a"), named("b"), Last(1), time="t")
    found, sides = stepped(plan, rows, rows, after=Frontiers(20, 5))
    assert found == [{"t": 1, "a": 1, "b": 1}]
    assert sides.left.new.tolist() == [True, True]


@pytest.mark.parametrize("condition", [None, Condition("l.v >= 0", ("v",))], ids=["equal", "condition"])
def test_a_hot_key_is_delivered_in_bounded_blocks(condition):
    count = 3_000
    rows = pa.table({"k": np.zeros(count, np.int64), "t": np.arange(count), "v": np.arange(count)})
    keyed = JoinSpec(
        named("a", keys=("k",)), named("b", keys=("k",)), Within(count), (pa.int64(),), condition=condition
    )
    sizes, empty = [], HeldSide.nothing(rows.schema)
    tracemalloc.start()
    step(keyed, Pair(empty, empty), Pair(rows, rows), NONE, NONE, lambda table: sizes.append(table.num_rows))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(sizes) == count**2
    assert max(sizes) <= BLOCK
    # All pairs at once would take 16 bytes each: 144 MB.
    assert peak < 64 * BLOCK


@pytest.mark.parametrize("bound", [lambda: Within(-1), lambda: Last(0), lambda: Within(2**61)])
def test_a_bound_that_cannot_be_is_refused(bound):
    with pytest.raises(BadJoin, match="give"):
        bound()


def test_sides_with_different_keys_are_refused():
    with pytest.raises(BadJoin, match="1 left keys, 0 right keys and 1 key types"):
        JoinSpec(named("a", keys=("k",)), named("b"), Within(1), (pa.int64(),))


def test_a_name_used_twice_in_the_result_is_refused():
    with pytest.raises(BadJoin, match="give each its own name"):
        JoinSpec(named("a"), named("a"), Within(1))


def test_keys_stand_between_time_and_columns_from_whichever_row_there_is():
    left = pa.table({"t": [1, 2], "k": pa.array([7, 8], pa.int32()), "v": ["a", "b"]})
    right = pa.table({"t": [3, 4], "k": pa.array([7, 9], pa.int64()), "v": ["c", "d"]})
    sides = named("left", keys=("k",)), named("right", keys=("k",))
    plan = JoinSpec(*sides, Within(5), (pa.int64(),), "full", time="t", key_names=("key",))
    found, _ = stepped(plan, left, right, after=Frontiers(END, END))
    assert found == [
        {"t": 1, "key": 7, "left": "a", "right": "c"},
        {"t": 2, "key": 8, "left": "b", "right": None},
        {"t": 4, "key": 9, "left": None, "right": "d"},
    ]
    assert [field.type for field in result_schema(plan, left.schema, right.schema)][1] == pa.int64()


def test_too_few_key_names_are_refused():
    with pytest.raises(BadJoin, match="give a name for each key"):
        JoinSpec(
            named("a", keys=("k", "v")),
            named("b", keys=("k", "v")),
            Within(1),
            (pa.int64(),) * 2,
            key_names=("k",),
        )


@pytest.mark.parametrize("bound", [Within(5), Last(2)])
def test_an_epoch_that_brings_nothing_changes_nothing(bound):
    rows = pa.table({"t": [10, 12], "k": [1, 1], "v": [1, 2]})
    plan = JoinSpec(named("a", keys=("k",)), named("b", keys=("k",)), bound, (pa.int64(),), "full")
    held, delivered = HeldSide(rows, np.array([True, False])), []
    sides = step(
        plan,
        Pair(held, held),
        Pair(rows[:0], rows[:0]),
        Frontiers(13, 13),
        Frontiers(14, 15),
        delivered.append,
    )
    assert delivered == []
    assert sides.left.held(rows, rows[:0]).matched.tolist() == [True, False]


def test_last_rows_go_when_the_other_side_ends():
    rows = pa.table({"t": [1], "v": [1]})
    plan = JoinSpec(named("a"), named("b"), Last(1), how="left", time="t")
    held, delivered = HeldSide(rows, np.array([False])), []
    after = Frontiers(7, END)
    sides = step(plan, Pair(held, held), Pair(rows[:0], rows[:0]), Frontiers(5, 5), after, delivered.append)
    assert [table.to_pylist() for table in delivered] == [[{"t": 1, "a": 1, "b": None}]]
    assert (sides.left.kept.tolist(), sides.right.kept.tolist()) == ([False], [True])
