import json
import random
import socket

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import flight

from penstock.errors import BadMessage
from penstock.ingest import Gate
from penstock.ingest.wire import Address
from penstock.ingest.wire.protocol import Push
from raw_push import COMMAND, SCHEMA, RawPush, ask, numbers, rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("stream", "sequence", "connect", "frontier", "declare", "other"), JSON)
)


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    with Gate("127.0.0.1:0", tmp_path_factory.mktemp("fuzzed")) as running:
        yield running


@pytest.fixture(scope="module")
def good(gate):
    """One well-behaved push, open all the time."""
    with RawPush(gate.address) as push:
        push.send("reports/good", 0, rows(0, 1), connect=True)
        yield push


def goes_on(gate, good):
    upto = good.acknowledged.get("reports/good", 0) or 1
    good.send("reports/good", upto, rows(upto, 3))
    good.wait_for("reports/good", upto + 3)
    return numbers(gate.address, "reports/good", 0, upto + 3) == list(range(upto + 3))


@settings(max_examples=200)
@given(st.binary(max_size=60) | JSON.map(json.dumps).map(str.encode) | FIELDS.map(json.dumps).map(str.encode))
def test_metadata_is_read_or_refused_in_words(body):
    refused = ""
    try:
        assert isinstance(Push.decode(body), Push)
    except BadMessage as error:
        refused = str(error)
    assert len(refused) < 400


@settings(max_examples=100)
@given(st.text(max_size=20))
def test_an_address_is_read_or_refused_in_words(text):
    try:
        address = Address.parse(text)
    except BadMessage:
        return
    assert address.host
    assert 0 <= address.port <= 65535


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=40) | FIELDS.map(json.dumps).map(str.encode), min_size=1, max_size=4))
def test_fuzzed_metadata_is_answered_and_others_go_on(gate, good, bodies):
    with RawPush(gate.address) as push:
        for body in bodies:
            push.writer.write_with_metadata(rows(0, 2), body)
        push.finish()
        assert push.error is None
    assert goes_on(gate, good)


@settings(max_examples=40)
@given(st.binary(max_size=400))
def test_bytes_at_the_socket_disturb_nobody(gate, good, content):
    address = Address.parse(gate.address)
    with socket.create_connection((address.host, address.port), 5) as raw:
        raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" * (len(content) % 2) + content)
        raw.shutdown(socket.SHUT_WR)
    assert goes_on(gate, good)


@settings(max_examples=40)
@given(
    st.binary(max_size=60),
    st.sampled_from(["status", "committed", "redirect", "drain ", "next", "schema", "x"]),
)
def test_fuzzed_actions_are_refused_in_words(gate, good, body, action):
    with flight.connect(f"grpc://{gate.address}") as client:
        refused = ""
        try:
            list(client.do_action(flight.Action(action, body)))
        except flight.FlightError as error:
            refused = str(error)
        assert "Traceback" not in refused
        with pytest.raises(flight.FlightError):
            client.do_get(flight.Ticket(body)).read_all()
    assert goes_on(gate, good)


def test_batches_with_changed_bytes_crash_nothing(gate, good):
    """Arrow's own bytes changed at random: whatever reaches the gate is stored soundly or refused."""
    chance = random.Random(5)
    for _ in range(60):
        broken = bytearray(rows(0, 20).serialize().to_pybytes())
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(16, len(broken))] ^= 1 << chance.randrange(8)
        try:
            batch = pa.ipc.read_record_batch(pa.py_buffer(bytes(broken)), SCHEMA)
            with RawPush(gate.address) as push:
                push.send("reports/broken", 0, batch, connect=True)
        except (pa.ArrowException, flight.FlightError, OSError):
            continue
    assert goes_on(gate, good)


def test_a_client_that_vanishes_holds_up_nobody(gate, good):
    for _ in range(10):
        client = flight.connect(f"grpc://{gate.address}")
        writer, reader = client.do_put(COMMAND, SCHEMA)
        writer.write_with_metadata(rows(0, 5), b'{"stream":"reports/gone","sequence":0,"connect":true}')
        del writer, reader, client
    assert goes_on(gate, good)
    assert numbers(gate.address, "reports/gone", 0, 5) == list(range(5))


def test_a_push_of_another_protocol_is_refused(gate, good):
    with flight.connect(f"grpc://{gate.address}") as client:
        command = flight.FlightDescriptor.for_command(b'{"op":"push","protocol":99}')
        writer, _ = client.do_put(command, SCHEMA)
        with pytest.raises(flight.FlightError, match='"protocol": 1'):
            writer.close()
    assert goes_on(gate, good)


def test_a_huge_batch_is_refused(gate, good):
    batch = pa.record_batch([pa.Array.from_buffers(pa.null(), 1 << 30, [None])], names=["nothing"])
    with RawPush(gate.address, batch.schema) as push:
        push.send("nothings", 0, batch, connect=True)
        assert push.answer()["refused"] == "TooLarge"
    assert goes_on(gate, good)
    assert ask(gate.address, "statistics")["counts"]["refused"] > 0
