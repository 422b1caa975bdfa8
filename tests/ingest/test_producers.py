"""Producers of a stream: the newest one writes, older ones are told, and no number names two rows.

Time runs to the right: c client (k connects, p its producer), a answer, d disk.
"""

import threading
from contextlib import suppress

import pytest

from ingest.drawn_gate import CALL, SCHEMA, Drawn, answer
from ingest.gate_processes import Served
from ingest.held import numbers, whole
from penstock.errors import GateAway, TakenOver
from penstock.ingest import Client, Connection, Directory, Gate
from penstock.ingest.gate import Heartbeat
from penstock.ingest.gate.events import (
    Append,
    AwaitRows,
    CallOpened,
    ProducersStored,
    Reply,
    Send,
    StoreProducers,
)
from penstock.ingest.gate.state import Restored
from penstock.ingest.wire import Endpoint
from penstock.ingest.wire.protocol import Acknowledged, NextRequest, NextSequences, Wait

DDL = "n bigint"


@pytest.fixture
def opened():
    """Opens clients of one stream; closes them in the end, also those that were taken over."""
    clients = []

    def client(address):
        clients.append(Client(address, "r/a", DDL))
        return clients[-1]

    yield client
    for each in clients:
        with suppress(TakenOver):
            each.close(120)


def claimed(gate, stream="r/a"):
    """What the shell does with a claim: the producer that was given."""
    (store,) = gate.feed(NextRequest((stream,), claim=True))
    gate.feed(ProducersStored(store.producers))
    return store.producers[stream]


def test_rows_of_an_older_producer_are_refused():
    """Defect 8: c1 p1 k[0,10) | claim p2 | c1 p1 [10,20)    a: 10   2   taken over"""
    gate = Drawn()
    first = claimed(gate)
    gate.durable(*gate.send(0, 10, connect=True, producer=first))
    second = claimed(gate)
    assert (first, second) == (1, 2)
    refused = answer(gate.offer(10, 10, producer=first))
    assert (refused.refused, "producer 2, this one is 1" in refused.message) == ("TakenOver", True)
    (append,) = gate.send(10, 5, connect=True, producer=second)
    assert append.sequence == 10


def test_a_claim_waits_for_rows_on_their_way_and_refuses_those_behind_them():
    """Defect 8: c1 p1 k[0,10) | claim p2 … | d [0,10) | answer: 10; rows behind are refused."""
    gate = Drawn()
    first = claimed(gate)
    (append,) = gate.send(0, 10, connect=True, producer=first)
    second = claimed(gate)
    asked = NextRequest(("r/a",), producers={"r/a": second})
    assert gate.feed(asked) == [AwaitRows(("r/a",))]
    assert answer(gate.offer(10, 10, producer=first)).refused == "TakenOver"
    assert answer(gate.durable(append)) == Acknowledged("r/a", 10, 1000)
    assert gate.feed(asked) == [Reply(NextSequences({"r/a": 10}, {"r/a": 2}))]


def test_two_claims_at_once_get_two_numbers():
    gate = Drawn()
    given = [gate.feed(NextRequest(("r/a",), claim=True))[0].producers["r/a"] for _ in range(3)]
    assert given == [1, 2, 3]


def test_a_gate_that_was_not_told_learns_a_producer_from_its_rows():
    gate = Drawn(restored=Restored(schemas={"r": SCHEMA}, producers={"r/a": 4}))
    assert gate.offer(0, 5, connect=True, producer=7) == [StoreProducers({"r/a": 7})]
    gate.feed(ProducersStored({"r/a": 7}))
    (append,) = gate.send(0, 5, connect=True, producer=7)
    gate.feed(CallOpened(2, SCHEMA, lambda _: True))
    later = answer(gate.offer(5, 5, call=2, connect=True, producer=8))
    assert isinstance(later, Wait), "the older producer hears of its rows before a newer one begins"
    assert gate.durable(append) == [Send(CALL, Acknowledged("r/a", 5, 1000))]
    assert gate.offer(5, 5, call=2, connect=True, producer=8) == [StoreProducers({"r/a": 8})]


def test_rows_below_those_held_are_stored_and_not_only_acknowledged():
    """Defect 4: the gate holds [100,200); c k[0,50) [50,120) [120,130)    a: 50, then 200"""
    gate = Drawn(restored=Restored(schemas={"r": SCHEMA}, held={"r/a": [(100, 200)]}))
    (first,) = gate.send(0, 50, connect=True)
    assert (first.sequence, first.end) == (0, 50)
    assert answer(gate.durable(first)) == Acknowledged("r/a", 50, 1000)
    second, wait = gate.send(50, 70)
    assert (second.sequence, second.end) == (50, 100)
    assert isinstance(wait.answer, Wait), "what is behind the hole comes again"
    assert answer(gate.durable(second)) == Acknowledged("r/a", 200, 1000)
    assert answer(gate.send(50, 70)) == Acknowledged("r/a", 200, 1000)


def test_a_hole_is_refilled_row_by_row():
    """Defect 4: the gate holds [0,10) and [20,30); whatever comes of the hole, each row is stored once."""
    gate = Drawn(restored=Restored(schemas={"r": SCHEMA}, held={"r/a": [(0, 10), (20, 30)]}))
    stored = []
    for first, rows in ((12, 3), (8, 6), (14, 10), (14, 10), (25, 10)):
        appends = [each for each in gate.send(first, rows, connect=True) if isinstance(each, Append)]
        stored += [row for each in appends for row in range(each.sequence, each.end)]
        gate.durable(*appends)
    assert sorted(stored) == [*range(10, 20), *range(30, 35)]


def test_two_clients_at_equal_pace_lose_nothing_in_silence(gate, opened):
    """Defect 8: both push at once; the older one is told, and what was acknowledged to either is there."""
    older = opened(gate.address)
    newer = opened(gate.address)
    told = []

    def push(client, first):
        try:
            for step in range(20):
                client.push([{"n": first + step}])
                client.flush(120)
        except TakenOver as error:
            told.append((first, str(error)))

    threads = [threading.Thread(target=push, args=each) for each in ((older, 1000), (newer, 2000))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    newer.close(120)
    assert [first for first, _ in told] == [1000]
    assert older.acknowledged == 0
    assert whole([gate.address], "r")["r/a"] == list(range(2000, 2020))


def test_a_restarted_client_cannot_use_numbers_that_are_on_the_wire(gate, opened):
    """Defect 8: what the first client sent and nobody acknowledged never comes up under used numbers."""
    first = opened(gate.address)
    first.push(numbers(0, 5))
    first.flush(120)
    gate.shell.control(NextRequest(("r/a",), claim=True))
    first.push(numbers(900, 5))
    with Client(gate.address, "r/a", DDL) as second:
        assert second.sequence == 5
        second.push(numbers(5, 5))
    with pytest.raises(TakenOver):
        first.flush(120)
    assert whole([gate.address], "r")["r/a"] == list(range(10))


def test_producers_survive_a_restart_of_the_gate(tmp_path):
    """Defect 8: a producer is durable before it is answered."""
    folder = tmp_path / "gate"
    with Served("gate", folder) as gate:
        with Endpoint(gate.address) as endpoint:
            given = endpoint.ask(NextRequest(("r/a",), claim=True))
        gate.kill()
        gate.start()
        with Endpoint(gate.address) as endpoint:
            again = endpoint.ask(NextRequest(("r/a",), claim=True))
    assert (given.producers, again.producers) == ({"r/a": 1}, {"r/a": 2})


def test_a_controller_fences_a_producer_at_every_gate(tmp_path, two_gates, opened):
    """Defect 8: the older client is at one gate, the newer is sent to another."""
    one, other = two_gates
    with Directory("127.0.0.1:0", tmp_path / "directory", away_seconds=60, poll_seconds=0.05) as directory:
        directory.register(one.address)
        older = opened(directory.address)
        older.push(numbers(0, 5))
        older.flush(120)
        directory.register(other.address)
        directory.redirect(["r/a"], other.address)
        with Client(directory.address, "r/a", DDL) as newer:
            older.push(numbers(900, 5))
            newer.push(numbers(5, 5))
            newer.flush(120)
            with pytest.raises(TakenOver):
                older.flush(120)
    assert whole([one.address, other.address], "r")["r/a"] == list(range(10))


def test_a_gate_with_a_controller_lets_it_give_the_producers(tmp_path):

    with (
        Directory("127.0.0.1:0", away_seconds=600, poll_seconds=0.05) as directory,
        Gate("127.0.0.1:0", tmp_path / "a") as gate,
    ):
        heartbeat = Heartbeat(directory.address, gate)
        with Client(directory.address, "r/a", DDL), Client(gate.address, "r/b", DDL):
            assert (directory.producer("r/a"), directory.producer("r/b")) == (1, 1)
        with Connection(gate.address) as connection, Client(connection, "r/a", DDL):
            assert directory.producer("r/a") == 2
        directory.stop()
        with pytest.raises(GateAway, match="the controller of this gate"):
            Client(gate.address, "r/a", DDL)
        heartbeat.leave()


def test_a_hole_left_by_a_lost_gate_is_refilled_by_its_client(two_gates):
    """Defect 4 over sockets: gate one is lost with rows [0,100); the client sends them to the other."""
    _, other = two_gates
    with Client(other.address, "r/a", DDL, sequence=100) as client:
        client.push(numbers(100, 100))
    with Client(other.address, "r/a", DDL, sequence=0) as client:
        client.push(numbers(0, 150))
    assert whole([other.address], "r")["r/a"] == list(range(200))
