import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.paper_gates import SCHEMA, PaperWorld, rows
from penstock.errors import BadLimit
from penstock.ingest.client.outbox import ClientLimits, Outbox

STEPS = st.one_of(
    st.tuples(st.just("offer"), st.integers(1, 9)),
    st.tuples(st.just("send")),
    st.tuples(st.just("store"), st.integers(0, 9)),
    st.tuples(st.just("wait")),
    st.tuples(st.just("hear"), st.integers(0, 9)),
    st.tuples(st.just("cut"), st.integers(0, 1)),
    st.tuples(st.just("redirect"), st.integers(0, 1)),
    st.tuples(st.just("tick"), st.floats(0.0, 2.0)),
)


def outbox(**limits):
    box = Outbox(SCHEMA, 0, ClientLimits(**limits))
    box.resume()
    return box


@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, max_size=80))
def test_every_row_is_stored_once_in_order_whatever_breaks(steps):
    world = PaperWorld()
    for name, *arguments in steps:
        match name:
            case "wait":
                world.store(-1, wait=True)
            case "redirect":
                world.connect(*arguments)
            case "tick":
                world.now += arguments[0]
            case _:
                getattr(world, name)(*arguments)
        assert world.outbox.rows <= 40
        held = set(world.gates[0].rows) | set(world.gates[1].rows)
        assert held.issuperset(range(world.outbox.acknowledged))
    pushed = world.outbox.next
    world.drain()
    assert world.stored() == list(range(pushed))
    assert (world.outbox.rows, world.outbox.bytes) == (0, 0)


def test_a_full_batch_goes_at_once_and_a_part_when_it_is_old_enough():
    # now:    1.0          1.5
    # rows:   0 1 2 3 4    4 is 0.5 s old
    # batch:  |0 1|2 3|    |4|
    box = outbox(batch_rows=2, batch_seconds=0.5)
    box.offer(rows(0, 5), now=1.0)
    assert [box.take(1.0).end, box.take(1.0).end, box.take(1.0)] == [2, 4, None]
    assert box.due() == 1.5
    assert box.take(1.5).batch["n"].to_pylist() == [4]


def test_hurry_sends_what_is_there_now():
    box = outbox(batch_seconds=60.0)
    box.offer(rows(0, 3), now=1.0)
    box.hurry()
    assert box.take(1.0).end == 3
    box.offer(rows(3, 1), now=1.0)
    assert box.due() == 61.0


def test_batches_are_cut_by_bytes_too():
    box = outbox(batch_rows=100, batch_bytes=80, batch_seconds=0.0)
    box.offer(rows(0, 25), now=0.0)
    sizes = [box.take(0.0).batch.nbytes for _ in range(3)]
    assert max(sizes) <= 80
    assert box.sent > 10


def test_credit_bounds_what_is_in_flight_but_lets_one_batch_go():
    box = outbox(batch_rows=1, batch_seconds=0.0)
    box.offer(rows(0, 5), now=0.0)
    box.take(0.0)
    box.acknowledge(1, credit=0)
    assert box.take(0.0).sequence == 1
    assert box.take(0.0) is None
    box.acknowledge(2, credit=16)
    assert [box.take(0.0).sequence, box.take(0.0).sequence, box.take(0.0)] == [2, 3, None]


def test_wait_holds_the_stream_and_sends_the_same_batch_again():
    box = outbox(batch_rows=2, batch_seconds=0.0)
    box.offer(rows(0, 4), now=0.0)
    first, _ = box.take(0.0), box.take(0.0)
    box.hold(1.5, now=10.0)
    assert box.due() == 11.5
    again = box.take(11.5)
    assert (again.sequence, again.batch) == (first.sequence, first.batch)


def test_after_a_suspension_the_unacknowledged_rows_connect_anew():
    box = outbox(batch_rows=2, batch_seconds=0.0)
    box.offer(rows(0, 6), now=0.0)
    assert [box.take(0.0).connect, box.take(0.0).connect] == [True, False]
    box.acknowledge(2)
    box.suspend()
    assert box.due() is None
    box.resume()
    batches = [box.take(0.0), box.take(0.0)]
    assert [(each.sequence, each.connect) for each in batches] == [(2, True), (4, False)]


def test_a_promise_goes_with_the_last_row_before_it_or_alone():
    box = outbox(batch_rows=2, batch_seconds=0.0)
    box.offer(rows(0, 3), now=0.0)
    box.promise(77, now=0.0)
    box.offer(rows(3, 1), now=0.0)
    assert [box.take(0.0).frontier, box.take(0.0).frontier] == [None, 77]
    box.acknowledge(4)
    box.promise(99, now=0.0)
    alone = box.take(0.0)
    assert (alone.sequence, alone.batch.num_rows, alone.frontier) == (4, 0, 99)
    assert (box.due(), box.promise_heard) == (None, False)
    box.acknowledge(4)
    assert box.promise_heard


def test_a_promise_waits_for_rows_in_flight_and_never_goes_back():
    box = outbox(batch_seconds=0.0)
    box.offer(rows(0, 3), now=0.0)
    box.take(0.0)
    box.promise(99, now=0.0)
    box.promise(50, now=1.0)
    assert box.take(2.0) is None
    box.acknowledge(3)
    assert not box.promise_heard
    assert box.take(2.0).frontier == 99


@pytest.mark.parametrize("turned_away", ["hold", "redirect"])
def test_a_promise_that_was_turned_away_is_sent_again(turned_away):
    box = outbox(batch_seconds=0.0)
    box.promise(99, now=0.0)
    first = box.take(0.0)
    box.acknowledge(0)
    if turned_away == "hold":
        box.hold(1.0, now=0.0)
    else:
        box.suspend()
        box.resume()
    again = box.take(1.0)
    assert (again.sequence, again.frontier, again.connect) == (0, 99, first.connect)


def test_limits_that_cannot_work_are_refused():
    with pytest.raises(BadLimit, match="does not fit the buffer of 10 rows"):
        ClientLimits(buffer_rows=10)


def test_a_gate_that_holds_more_than_was_sent_acknowledges_what_was_sent():
    box = outbox(batch_rows=2, batch_seconds=0.0)
    box.offer(rows(0, 3), now=0.0)
    box.take(0.0)
    box.acknowledge(100)
    assert (box.acknowledged, box.rows) == (2, 1)
    assert box.take(0.0).sequence == 2


def test_a_gate_that_expects_rows_acknowledged_elsewhere_is_told_where_the_stream_goes_on():
    box = outbox(batch_rows=2, batch_seconds=0.0)
    box.offer(rows(0, 4), now=0.0)
    box.take(0.0)
    box.acknowledge(2)
    box.take(0.0)
    box.expect(0)
    again = box.take(0.0)
    assert (again.sequence, again.connect) == (2, True)


def test_the_gate_that_was_left_may_still_acknowledge():
    box = outbox(batch_rows=2, batch_seconds=0.0)
    box.offer(rows(0, 4), now=0.0)
    box.take(0.0)
    box.take(0.0)
    box.suspend()
    box.acknowledge(2)
    box.resume()
    assert (box.rows, box.bytes) == (2, 16)
    assert box.take(0.0).sequence == 2
