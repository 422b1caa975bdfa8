"""The decisions of a gate, without sockets or files. Time runs to the right; a timeline says who does what.

c   client: [n,m) rows sent, k connect         a   answer to it
d   disk: [n,m) durable, x failed
"""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.drawn_gate import CALL, SCHEMA, Drawn, answer
from penstock.ingest import Limits
from penstock.ingest.gate.events import (
    Append,
    BatchPrepared,
    CallClosed,
    CallOpened,
    DeleteBelow,
    Deleted,
    DropReader,
    HoldUp,
    MetadataStored,
    Prepare,
    Promise,
    ReaderStored,
    Reply,
    SchemaStored,
    Send,
    StoreFailed,
    StoreMetadata,
    StoreReader,
    StoreSchema,
    WriteFailed,
)
from penstock.ingest.gate.ranges import RowRanges
from penstock.ingest.gate.state import Restored
from penstock.ingest.gate.stream import judge
from penstock.ingest.wire.protocol import (
    Acknowledged,
    Committed,
    Done,
    Drain,
    ForgetReader,
    NextRequest,
    NextSequences,
    Push,
    Redirect,
    RedirectedStreams,
    RedirectStreams,
    Refusal,
    Resume,
    Suspend,
    SuspendedStreams,
    Wait,
)


def test_rows_are_acknowledged_when_they_are_durable_and_not_before():
    """c: k[0,10)   [10,15)      a:        10        15
    d:                   [0,10)     [10,15)
    """
    gate = Drawn()
    (first,) = gate.send(0, 10, connect=True, frontier=7)
    (second,) = gate.send(10, 5)
    assert first == Append(CALL, "r/a", 0, 10, 7, 100, 1500)
    assert gate.state.next("r/a") == 0
    assert gate.durable(first) == [Send(CALL, Acknowledged("r/a", 10, 950))]
    assert gate.durable(second) == [Send(CALL, Acknowledged("r/a", 15, 1000))]
    assert gate.state.pending_bytes == 0


def test_rows_that_came_before_are_skipped_and_acknowledged():
    """c: k[0,10)      [5,12)    [0,12)     a: 10  12  12"""
    gate = Drawn()
    gate.durable(*gate.send(0, 10, connect=True))
    (append,) = gate.send(5, 7)
    assert (append.sequence, append.rows, append.size) == (10, 2, 20)
    gate.durable(append)
    assert answer(gate.send(0, 12)) == Acknowledged("r/a", 12, 1000)
    assert gate.state.counts["duplicates"] == 5 + 12


def test_a_duplicate_of_rows_on_their_way_hears_when_they_are_durable():
    """c1: k[0,10)    c2: k[0,10)    d: [0,10)    a1: 10  a2: 0 10"""
    gate = Drawn()
    gate.feed(CallOpened(2, SCHEMA, lambda _: True))
    (append,) = gate.send(0, 10, connect=True)
    assert answer(gate.send(0, 10, call=2, connect=True)) == Acknowledged("r/a", 0, 900)
    heard = gate.durable(append)
    assert [each.call for each in heard] == [1, 2]
    assert {each.answer for each in heard} == {Acknowledged("r/a", 10, 1000)}


def test_a_gap_is_refused_unless_the_client_has_just_connected():
    """c: k[0,10)    [20,30)    k[20,30)      a: 10   expected 10   30"""
    gate = Drawn()
    gate.durable(*gate.send(0, 10, connect=True))
    refused = answer(gate.send(20, 10))
    assert (refused.refused, refused.expected) == ("SequenceGap", 10)
    (append,) = gate.send(20, 10, connect=True)
    assert append.sequence == 20
    assert answer(gate.durable(append)) == Acknowledged("r/a", 30, 1000)


def test_after_a_failed_write_the_same_rows_are_expected_again():
    """c: k[0,10) [10,20) [20,30)     [20,30)     [0,30)
    d:                        x                      [0,30)
    """
    gate = Drawn()
    appends = [*gate.send(0, 10, connect=True), *gate.send(10, 10), *gate.send(20, 10)]
    told = gate.feed(WriteFailed(tuple(appends), "no space"))
    assert [(type(each.answer), each.answer.acknowledged) for each in told] == [(Wait, 0)] * 3
    assert "no space" in gate.state.trouble
    assert isinstance(answer(gate.send(20, 10)), Wait), "a gap behind rows that wait is no error"
    (append,) = gate.send(0, 30)
    assert (append.sequence, append.rows) == (0, 30)
    assert answer(gate.durable(append)) == Acknowledged("r/a", 30, 1000)
    assert gate.state.trouble is None


def test_a_duplicate_of_rows_on_their_way_hears_when_they_are_lost():
    """c1: k[0,10)       c2: k[0,10), told 0       the disk is full: both wait, or c2 would for ever"""
    gate = Drawn()
    gate.feed(CallOpened(2, SCHEMA, lambda _: True))
    (append,) = gate.send(0, 10, connect=True)
    assert answer(gate.send(0, 10, call=2, connect=True)) == Acknowledged("r/a", 0, 900)
    told = gate.feed(WriteFailed((append,), "no space"))
    assert [(each.call, type(each.answer)) for each in told] == [(CALL, Wait), (2, Wait)]
    (again,) = gate.send(0, 10, call=2)
    assert (again.sequence, again.rows) == (0, 10)


def test_a_batch_is_prepared_again_when_another_call_came_between():
    """c1: offers k[0,10)       c2: k[0,6)       c1: prepared [0,10): again from 6"""
    gate = Drawn()
    gate.feed(CallOpened(2, SCHEMA, lambda _: True))
    assert gate.offer(0, 10, connect=True) == [Prepare(0, 10)]
    gate.send(0, 6, call=2, connect=True)
    push = Push("r/a", 0, connect=True)
    assert gate.feed(BatchPrepared(CALL, push, 10, 0, 10, 100)) == [Prepare(6, 4)]
    (append,) = gate.feed(BatchPrepared(CALL, push, 10, 6, 4, 40))
    assert (append.sequence, append.rows) == (6, 4)


def test_a_frontier_holds_when_the_rows_before_it_are_durable():
    """c: k[0,10)   promise 9      d: [0,10)     then readers see 9"""
    gate = Drawn()
    (append,) = gate.send(0, 10, connect=True)
    assert answer(gate.send(10, 0, frontier=9)) == Acknowledged("r/a", 0, 900)
    assert Promise("r/a", 9, at=10) in gate.durable(append)
    assert gate.send(10, 0, frontier=12)[0] == Promise("r/a", 12, at=10)


def test_a_stream_over_its_credit_waits_for_as_long_as_the_disk_takes():
    gate = Drawn()
    (first,) = gate.send(0, 90, connect=True)
    waits = answer(gate.send(90, 20))
    assert "keep to the credit" in waits.message
    assert waits.credit == 0
    gate.durable(first)
    assert isinstance(gate.send(90, 20)[0], Append)


def test_a_gate_without_memory_holds_the_client_up_before_it_makes_it_wait():
    gate = Drawn()
    for stream in "ab":
        gate.send(0, 95, connect=True, stream=f"r/{stream}")
    assert gate.send(0, 20, stream="r/c") == [HoldUp(0.2, 200)]
    assert "on their way" in answer(gate.send(0, 20, stream="r/c", held_up=True)).message


def test_an_empty_gate_takes_any_batch():
    assert isinstance(Drawn().send(0, 900, connect=True)[0], Append)


def test_a_suspended_stream_waits_until_it_is_resumed():
    gate = Drawn()
    gate.durable(*gate.send(0, 1, connect=True))
    assert gate.feed(Suspend(("r/a", "r/no"))) == [Reply(SuspendedStreams(("r/a",)))]
    assert "suspended" in answer(gate.send(1, 1)).message
    gate.feed(Resume(("r/a",)))
    assert isinstance(gate.send(1, 1)[0], Append)


def test_a_redirection_is_told_when_everything_taken_is_durable():
    """c: k[0,10)  redirect  [10,12)   d: [0,10)     k[12,13)
    a:                               to b        taken again
    """
    gate = Drawn()
    (append,) = gate.send(0, 10, connect=True)
    assert gate.feed(RedirectStreams(("r/a",), "b:1")) == [Reply(RedirectedStreams(("r/a",)))]
    assert gate.send(10, 2) == []
    acknowledged, redirect = gate.durable(append)
    assert acknowledged.answer == Acknowledged("r/a", 10, 1000)
    assert redirect.answer == Redirect("r/a", "b:1", 10)
    assert isinstance(gate.send(12, 1, connect=True)[0], Append)


def test_a_drained_gate_redirects_everyone_and_takes_nothing():
    gate = Drawn()
    gate.durable(*gate.send(0, 1, connect=True))
    told, reply = gate.feed(Drain("b:1"))
    assert (told.answer, reply.message) == (Redirect("r/a", "b:1", 1), RedirectedStreams(("r/a",)))
    assert answer(gate.send(0, 1, stream="r/new", connect=True)) == Redirect("r/new", "b:1", 0)


def test_a_gate_that_drains_nowhere_makes_everyone_wait():
    gate = Drawn()
    assert gate.feed(Drain()) == [Reply(RedirectedStreams(()))]
    assert "closing" in answer(gate.send(0, 1, connect=True)).message


def test_the_first_schema_of_an_inlet_is_stored_before_any_row():
    gate = Drawn(restored=Restored())
    assert gate.offer(0, 1, connect=True) == [StoreSchema("r", SCHEMA)]
    gate.feed(SchemaStored("r", SCHEMA))
    assert gate.offer(0, 1, connect=True) == [Prepare(0, 1)]
    other = pa.schema([("n", pa.string())])
    gate.feed(CallOpened(2, other, lambda _: True))
    assert answer(gate.offer(0, 1, call=2, connect=True)).refused == "WrongSchema"


def test_metadata_is_stored_when_it_is_new_and_refused_when_it_is_wrong():
    gate = Drawn()
    declared = {"max_rate": 3}
    assert gate.offer(0, 1, connect=True, declare=declared) == [StoreMetadata("r/a", declared)]
    gate.feed(MetadataStored("r/a", declared))
    assert gate.offer(0, 1, connect=True, declare=declared) == [Prepare(0, 1)]
    assert answer(gate.offer(0, 1, connect=True, declare={"max_rate": -1})).refused == "BadMetadata"


def test_what_cannot_be_stored_makes_the_client_wait():
    gate = Drawn(restored=Restored(held={"r/a": [(0, 5)]}))
    gate.offer(5, 1, connect=True)
    waits = answer(gate.feed(StoreFailed(CALL, "r/a", "no space")))
    assert (waits.acknowledged, waits.reason) == (5, "LogFull")


@pytest.mark.parametrize(
    ("limits", "size", "error"),
    [
        ({"message_bytes": 99}, 100, "TooLarge"),
        ({"message_rows": 9}, 1, "TooLarge"),
        ({"streams_per_client": 1}, 1, "TooMany"),
        ({"streams": 1}, 1, "TooMany"),
    ],
)
def test_limits_refuse_before_rows_cost_anything(limits, size, error):
    gate = Drawn(Limits(**limits))
    gate.offer(0, 1, size=1, stream="r/first", connect=True)
    assert answer(gate.offer(0, 10, size=size, connect=True)).refused == error
    assert gate.state.counts["refused"] == 1


def test_rights_are_asked_for_each_stream():
    gate = Drawn(may_push=lambda stream: stream == "r/a")
    assert gate.offer(0, 1, connect=True) == [Prepare(0, 1)]
    assert answer(gate.offer(0, 1, stream="r/b", connect=True)).refused == "NotAllowed"


def test_invalid_rows_are_refused():
    gate = Drawn()
    gate.offer(0, 1, connect=True)
    event = BatchPrepared(CALL, Push("r/a", 0, connect=True), 1, 0, 1, 0, problem="rows that lie")
    assert answer(gate.feed(event)) == Refusal("BadMessage", "rows that lie", "r/a")


def test_a_full_store_makes_clients_wait_until_readers_have_committed():
    gate = Drawn()
    (append,) = gate.send(0, 1, connect=True)
    assert isinstance(gate.durable(append, store_bytes=10_001)[-1], DeleteBelow)
    assert "inlet 'r' has no reader, so its rows are kept" in answer(gate.send(1, 1)).message
    gate.feed(Deleted(500))
    assert isinstance(gate.send(1, 1)[0], Append)


def test_a_new_reader_is_stored_before_anything_is_deleted_by_its_word():
    gate = Drawn()
    committed = Committed("r", "traffic", {"r/a": 7})
    assert gate.feed(committed) == [StoreReader("r", "traffic")]
    gate.feed(ReaderStored("r", "traffic"))
    assert gate.feed(committed) == [DeleteBelow({("r", "traffic"): {"r/a": 7}})]
    (back,) = gate.feed(Committed("r", "traffic", {"r/a": 3}))
    assert back.committed == {("r", "traffic"): {"r/a": 7}}, "a position never goes back"


def test_a_reader_that_has_not_spoken_since_the_restart_needs_everything():
    gate = Drawn(restored=Restored(readers={("r", "slow"): None}))
    gate.feed(ReaderStored("r", "fast"))
    (delete,) = gate.feed(Committed("r", "fast", {"r/a": 7}))
    assert delete.committed == {("r", "slow"): {}, ("r", "fast"): {"r/a": 7}}
    dropped = gate.feed(ForgetReader("r", "slow"))
    assert dropped == [
        DropReader("r", "slow"),
        DeleteBelow({("r", "fast"): {"r/a": 7}}),
        Reply(Done()),
    ]


def test_the_next_sequence_is_that_of_the_log_until_rows_come():
    gate = Drawn(restored=Restored(held={"r/a": [(0, 5)]}, schemas={"r": SCHEMA}))
    asked = NextRequest(("r/a", "r/new"))
    assert gate.feed(asked) == [Reply(NextSequences({"r/a": 5, "r/new": 0}, {"r/a": 0, "r/new": 0}))]
    gate.durable(*gate.send(5, 2))
    assert gate.feed(asked) == [Reply(NextSequences({"r/a": 7, "r/new": 0}, {"r/a": 0, "r/new": 0}))]


def test_a_closed_call_is_told_nothing_more():
    gate = Drawn()
    gate.durable(*gate.send(0, 1, connect=True))
    gate.feed(CallClosed(CALL))
    assert gate.feed(RedirectStreams(("r/a",), "b:1")) == [Reply(RedirectedStreams(("r/a",)))]


BATCHES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=30)


@given(BATCHES)
def test_whatever_comes_rows_are_taken_once_and_in_order(batches):
    gate, taken = Drawn(), []
    for first, rows in batches:
        for action in gate.send(first, rows):
            if isinstance(action, Append):
                taken += range(action.sequence, action.end)
    assert taken == list(range(gate.state.streams["r/a"].expected if batches else 0))


RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), max_size=4)


@given(RANGES, st.integers(0, 30), st.integers(0, 9))
def test_after_connect_every_row_that_is_not_there_is_taken(ranges, first, rows):
    """Defect 4: a row counts as a duplicate only if it is there, wherever the expected one is."""
    taken = RowRanges((low, low + count) for low, count in ranges)
    there = {row for low, high in taken.all() for row in range(low, high)}
    verdict = judge(taken, taken.high, first, rows, connect=True)
    assert not verdict.gap
    skipped = set(range(first, first + verdict.skip))
    wanted = set(range(first + verdict.skip, first + verdict.skip + verdict.take))
    assert skipped <= there
    assert not wanted & there
    rest = set(range(first + verdict.skip + verdict.take, first + rows))
    assert not rest or min(rest) in there, "what is left begins with a row that is there"


def test_rows_of_one_token_in_memory_are_limited():
    """Defect 15: one token could fill the memory of the gate."""
    gate = Drawn(Limits(stream_bytes=1000, gate_bytes=2000, token_bytes=500))
    for call, token in ((2, "greedy"), (3, "greedy"), (4, "modest")):
        gate.feed(CallOpened(call, SCHEMA, lambda _: True, token))
    (first,) = gate.send(0, 40, call=2, stream="r/b", connect=True)
    assert isinstance(first, Append)
    told = answer(gate.send(0, 40, call=3, stream="r/c", connect=True))
    assert isinstance(told, Wait)
    assert "of this token or its tenant" in told.message
    assert isinstance(gate.send(0, 40, call=4, stream="r/d", connect=True)[0], Append)
    gate.durable(first)
    assert isinstance(gate.send(0, 40, call=3, stream="r/c", connect=True)[0], Append)


def test_streams_of_earlier_lives_count():
    """Defect 14: each life of a gate could bring as many new streams as the limit allows, all remembered."""
    restored = Restored(held={"r/a": [(0, 5)], "r/b": [(0, 7)]}, schemas={"r": SCHEMA})
    gate = Drawn(Limits(streams=2), restored)
    told = answer(gate.offer(0, 10, stream="r/c", connect=True))
    assert isinstance(told, Refusal)
    assert "the gate has 2 streams, its limit" in told.message
    assert isinstance(gate.offer(5, 10, stream="r/a", connect=True)[0], Prepare)
