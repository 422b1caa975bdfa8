"""What clients and gates measure: counts that only grow, and the age of what waits."""

import time

import pytest

import penstock as ps
from ingest.drawn_gate import CALL, Drawn
from ingest.paper_gates import SCHEMA, rows
from penstock.ingest import Gate
from penstock.ingest.client.outbox import ClientLimits, Outbox
from penstock.ingest.directory import Directory
from penstock.ingest.gate import Heartbeat
from penstock.ingest.gate.events import CallClosed
from penstock.ingest.wire.protocol import RedirectStreams, Suspend
from raw_push import ask


def test_an_outbox_knows_the_age_of_its_oldest_row_and_sends_it():
    # now:       1.0     1.005   3.0     4.0
    # offered:   0 1     2       3
    # known since 1.0 -------->  3.0 ->
    box = Outbox(SCHEMA, 0, ClientLimits(batch_rows=2, batch_seconds=0.0))
    box.resume()
    for first, count, now in ((0, 2, 1.0), (2, 1, 1.005), (3, 1, 3.0)):
        box.offer(rows(first, count), now)
    sent = box.take(4.0)
    assert (sent.oldest, sent.upto, box.oldest(4.0)) == (3.0, 4, 3.0)
    box.acknowledge(2)
    assert box.oldest(4.0) == 3.0
    box.acknowledge(3)
    sent = box.take(4.0)
    box.acknowledge(3)
    assert box.oldest(4.0) == 1.0
    box.acknowledge(4)
    assert box.oldest(4.0) == 0.0


def test_what_waits_at_a_client_grows_older_until_it_is_acknowledged():
    """c: k[0,10) of 15, 2 s old    d: [0,10)    c: [10,15) of 15, 3 s old    d: [10,15)"""
    gate = Drawn()
    (first,) = gate.send(0, 10, connect=True, oldest=2.0, upto=15)
    stream = gate.state.streams["r/a"]
    assert (stream.oldest(now=5.0), stream.client_rows()) == (7.0, 15)
    gate.durable(first)
    assert stream.client_rows() == 5
    gate.durable(*gate.send(10, 5, oldest=3.0, upto=15))
    assert (stream.oldest(now=5.0), stream.client_rows()) == (0.0, 0)


def test_rows_that_a_gate_does_not_take_wait_on():
    gate = Drawn()
    gate.durable(*gate.send(0, 10, connect=True, oldest=0.0, upto=10))
    gate.feed(Suspend(("r/a",)))
    gate.send(10, 5, oldest=0.5, upto=40)
    stream = gate.state.streams["r/a"]
    assert (stream.oldest(now=100.0), stream.client_rows()) == (100.5, 30)


@pytest.mark.parametrize("event", [RedirectStreams(("r/a",), "b:1"), CallClosed(CALL)])
def test_a_client_that_left_waits_elsewhere(event):
    gate = Drawn()
    gate.durable(*gate.send(0, 10, connect=True, oldest=1.0, upto=99))
    gate.feed(event)
    assert gate.state.streams["r/a"].oldest(now=9.0) == 0.0


def until(holds, seconds=120):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "this did not come about"
        time.sleep(0.02)


def test_a_gate_reports_counts_of_streams_what_waits_and_its_cpu_time(tmp_path):
    with Gate("127.0.0.1:0", tmp_path) as gate, Directory("127.0.0.1:0") as directory:
        heartbeat = Heartbeat(directory.address, gate)

        def measured():
            return ask(gate.address, "statistics")["streams"]["r/a"]

        def registered():
            return ask(directory.address, "gates")["gates"][0]["info"]

        with ps.Client(gate.address, "r/a", schema="n bigint", metadata={"expected_rate": 5}) as client:
            client.push([{"n": each} for each in range(100)])
            client.flush()
            first = measured()
            assert (first["rows"], first["batches"], first["client_rows"]) == (100, 1, 0)
            assert first["kept_rows"] == 100
            ask(gate.address, "suspend", streams=["r/a"])
            client.push([{"n": each} for each in range(50)])
            until(lambda: measured()["oldest_seconds"] > 0)
            assert measured()["client_rows"] == 50
            until(lambda: registered().get("oldest_seconds", 0) > 0)
            ask(gate.address, "resume", streams=["r/a"])
            client.flush()
        after, whole = measured(), ask(gate.address, "statistics")
        assert (after["rows"], after["batches"], after["client_rows"]) == (150, 2, 0)
        assert after["bytes"] > first["bytes"] > 0
        assert after["oldest_seconds"] == 0
        ask(gate.address, "committed", inlet="r", reader="run", upto={"r/a": 120})
        assert measured()["kept_rows"] == 30
        heartbeat.leave()
        assert registered()["life"] == whole["life"] == gate.log.boot
        assert registered()["batches"] == 2
        assert registered()["cpu_seconds"] >= whole["cpu_seconds"] > 0
