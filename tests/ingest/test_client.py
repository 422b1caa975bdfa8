import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

from ingest.gate_processes import free_port
from ingest.held import act, numbers, whole
from penstock.errors import (
    BadMetadata,
    BadPromise,
    BadRows,
    BufferFull,
    ClosedClient,
    GateAway,
    IngestError,
    NotAcknowledged,
    Refused,
    TakenOver,
)
from penstock.ingest import Client, Connection, Gate

SCHEMA = "n bigint"


def test_rows_of_every_form_are_held_in_the_order_of_their_push(gate):
    with Client(gate.address, "r/a", SCHEMA) as client:
        client.push(numbers(0, 3))
        client.push(pa.table({"n": [3, 4]}))
        client.push(pa.record_batch({"n": pa.array([5], pa.int32())}))
        client.flush(120)
        assert (client.sequence, client.acknowledged, client.buffered_rows, client.buffered_bytes) == (
            6,
            6,
            0,
            0,
        )
    assert whole([gate.address], "r") == {"r/a": [0, 1, 2, 3, 4, 5]}


def test_closing_sends_what_is_left(gate):
    client = Client(gate.address, "r/a", SCHEMA, batch_seconds=60.0)
    client.push(numbers(0, 10))
    client.close()
    client.close()
    assert whole([gate.address], "r")["r/a"] == list(range(10))
    with pytest.raises(ClosedClient, match="'r/a' is closed"):
        client.push(numbers(10, 1))


def test_a_push_larger_than_the_buffer_goes_in_parts(gate):
    with Client(gate.address, "r/a", SCHEMA, batch_rows=100, buffer_rows=300) as client:
        client.push(pa.table({"n": range(5000)}))
        assert client.buffered_rows <= 300
        with pytest.raises(BadRows, match="more than the buffer holds"):
            client.push(pa.table({"n": range(5000)}), timeout=1.0)
    assert whole([gate.address], "r")["r/a"] == list(range(5000))


def test_a_full_buffer_refuses_the_whole_push_and_takes_it_later(gate):
    with Client(gate.address, "r/a", SCHEMA, batch_rows=5, buffer_rows=10) as client:
        client.push(numbers(0, 1))
        client.flush(120)
        act(gate.address, "suspend", streams=["r/a"])
        client.push(numbers(1, 8))
        with pytest.raises(BufferFull, match=r"no room for 3 rows within 0.1 s; 8 rows"):
            client.push(numbers(9, 3), timeout=0.1)
        assert client.sequence == 9
        with pytest.raises(NotAcknowledged, match=r"8 rows not acknowledged within 0.1 s"):
            client.flush(0.1)
        act(gate.address, "resume", streams=["r/a"])
        client.push(numbers(9, 3), timeout=120)
        client.flush(120)
    assert whole([gate.address], "r")["r/a"] == list(range(12))


def test_a_new_client_goes_on_behind_the_last_row_held(gate):
    for first in (0, 7):
        with Client(gate.address, "r/a", SCHEMA) as client:
            assert client.sequence == first
            client.push(numbers(first, 7))
    assert whole([gate.address], "r")["r/a"] == list(range(14))


def test_rows_with_numbers_of_the_user_are_known_again(gate):
    for _ in range(2):
        with Client(gate.address, "r/a", SCHEMA, sequence=0) as client:
            client.push(numbers(0, 50))
    with Client(gate.address, "r/a", SCHEMA, sequence=40) as client:
        client.push(numbers(40, 20))
    assert whole([gate.address], "r")["r/a"] == list(range(60))


def test_two_clients_of_one_stream_are_told(gate):
    first = Client(gate.address, "r/a", SCHEMA)
    first.push(numbers(0, 10))
    first.flush(120)
    with Client(gate.address, "r/a", SCHEMA) as second:
        first.push(numbers(100, 5))
        second.push(numbers(10, 5))
        second.flush(120)
        with pytest.raises(TakenOver, match="another client has taken over stream 'r/a'"):
            first.flush(120)
    with pytest.raises(TakenOver):
        first.close()
    assert whole([gate.address], "r")["r/a"] == list(range(15))


def test_one_connection_has_a_stream_once(gate):
    with Connection(gate.address) as connection, Client(connection, "r/a", SCHEMA):
        with pytest.raises(IngestError, match="is open on this connection"):
            Client(connection, "r/a", SCHEMA)
        with pytest.raises(IngestError, match="belong to the Connection"):
            Client(connection, "r/b", SCHEMA, token="x")


def test_another_schema_in_the_same_inlet_is_refused(gate):
    with Client(gate.address, "r/a", SCHEMA) as client:
        client.push(numbers(0, 1))
    other = Client(gate.address, "r/b", "n bigint, m string")
    other.push([{"n": 1, "m": "x"}])
    with pytest.raises(Refused, match=r"its inlet 'r' has \(n int64\)"):
        other.flush(120)
    with pytest.raises(Refused):
        other.push([{"n": 2, "m": "y"}])
    with pytest.raises(Refused):
        other.close()


def test_rows_that_do_not_fit_are_refused_whole(gate):
    with Client(gate.address, "r/a", "n bigint not null") as client:
        for rows, reason in [
            ([{"m": 1}], "a row has m"),
            ([{"n": "x"}], "rows do not fit n int64"),
            ([{"n": None}], "'n' has 1 nulls"),
            (pa.table({"n": ["x"]}), "cannot cast n string"),
            ([3], "a row is int"),
        ]:
            with pytest.raises(BadRows, match=reason):
                client.push(rows)
        assert client.sequence == 0


def test_metadata_is_checked_here_and_kept_there(gate):
    with pytest.raises(BadMetadata, match="did you mean 'expected_rate'"):
        Client(gate.address, "r/a", SCHEMA, {"expect_rate": 5})
    with Client(gate.address, "r/a", SCHEMA, {"expected_rate": 5}) as client:
        client.push(numbers(0, 1))
        client.flush(120)
        assert act(gate.address, "status")["streams"]["r/a"]["metadata"] == {"expected_rate": 5}


def test_a_promise_without_rows_reaches_the_gate(gate):
    with Client(gate.address, "r/a", SCHEMA) as client:
        client.push(numbers(0, 1))
        client.promise(1_000_000)
        client.flush(120)
        client.promise(2_000_000)
    assert act(gate.address, "status")["streams"]["r/a"]["frontier"] == 2_000_000


@pytest.mark.parametrize("frontier", [2**63, 1.5, "12:00", None])
def test_a_promise_that_is_no_time_is_refused(gate, frontier):
    with (
        Client(gate.address, "r/a", SCHEMA) as client,
        pytest.raises(BadPromise, match="microseconds since 1970"),
    ):
        client.promise(frontier)


def test_nobody_at_the_address_is_told_with_what_to_do():
    with pytest.raises(GateAway, match=r"no answer from 127.0.0.1:1: .*see that it runs"):
        Client("127.0.0.1:1", "r/a", SCHEMA)


def test_a_client_that_knows_its_number_waits_for_a_gate_to_come(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    client = Client(address, "r/a", SCHEMA, sequence=0)
    client.push(numbers(0, 5))
    with pytest.raises(NotAcknowledged, match=f"no answer from {address}"):
        client.flush(0.3)
    with Gate(address, tmp_path / "later"):
        client.close(120)
        assert whole([address], "r")["r/a"] == list(range(5))


def test_many_threads_share_a_client(gate):
    with Client(gate.address, "r/a", SCHEMA, batch_rows=7, buffer_rows=50) as client:
        threads = [
            threading.Thread(target=lambda: [client.push(numbers(0, 5)) for _ in range(40)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = whole([gate.address], "r")["r/a"]
    assert rows == [n for _ in range(160) for n in range(5)]


def test_the_streams_of_a_connection_share_one_call(gate):
    with Connection(gate.address) as connection:
        clients = [Client(connection, f"r/{n}", SCHEMA) for n in range(200)]
        for step in range(10):
            for client in clients:
                client.push(numbers(5 * step, 5))
        for client in clients:
            client.flush(120)
        assert len(connection._calls) == 1
        for client in clients:
            client.close()
    assert whole([gate.address], "r") == {f"r/{n}": list(range(50)) for n in range(200)}


def test_tables_with_columns_that_may_be_null_fit_where_none_is(gate):
    with Client(gate.address, "r/a", "n bigint not null") as client:
        client.push(pa.table({"n": [1, 2]}))
        client.push(pa.record_batch({"n": [3]}))
        with pytest.raises(BadRows):
            client.push(pa.table({"n": [None, 2]}))
    assert whole([gate.address], "r")["r/a"] == [1, 2, 3]


def test_an_address_that_is_none_ends_the_stream_and_not_the_connection(gate):
    with Connection(gate.address) as connection:
        lost = Client(connection, "r/a", SCHEMA)
        lost.push(numbers(0, 1))
        lost.flush(120)
        lost.push(numbers(1, 1))
        act(gate.address, "redirect", streams=["r/a"], to="nowhere:at-all")
        while lost._flow.error is None:
            time.sleep(0.01)
        with pytest.raises(Refused, match="no address 'nowhere:at-all'"):
            lost.push(numbers(2, 1))
        with Client(connection, "r/b", SCHEMA) as other:
            other.push(numbers(0, 1))
            other.flush(120)


def test_rows_that_nobody_waited_for_are_told_at_the_end(gate):
    program = (
        "from penstock.ingest import Client\n"
        "client = Client('127.0.0.1:1', 'r/a', 'n bigint', sequence=0)\n"
        "client.push([{'n': 1}, {'n': 2}])\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "2 rows were pushed and not acknowledged when the program ended" in ended.stderr
