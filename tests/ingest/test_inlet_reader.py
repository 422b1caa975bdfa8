"""What a reader gets out of real gates: every row once and in order, whatever gates do meanwhile."""

import json
import time

import pyarrow as pa
import pytest

from ingest.gate_processes import Served, free_port
from penstock.errors import BadSource, GateAway, Refused
from penstock.ingest import Client, Connection, Directory, Gate, Limits, Security
from penstock.ingest.reader.gate_reader import Gathering, resumed
from penstock.ingest.reader.gate_watch import GateWatch
from penstock.ingest.reader.inlet_reader import InletReader
from penstock.ingest.reader.offsets import Offsets
from penstock.ingest.security.access import Access
from penstock.ingest.security.tokens import hash_of
from penstock.ingest.wire import Endpoint
from penstock.ingest.wire.protocol import Register

SCHEMA = pa.schema([("n", pa.int64())])
READ = pa.schema([("stream", pa.string()), ("n", pa.int64())])
GATHERING = Gathering("reports", Access(), READ, "stream", patience=30)


class Leaving:
    """A gate in this process that can be away for a while, always at the same address."""

    def __init__(self, folder):
        self.address = f"127.0.0.1:{free_port()}"
        self._folder = folder
        self.come_back()

    def __str__(self):
        return self.address

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()

    def leave(self):
        self._gate.stop()

    def come_back(self):
        self._gate = Gate(self.address, self._folder)


def reader(*gates, name="me", patience=30):
    return InletReader(
        GateWatch([str(each) for each in gates], Access(), "reports"), "reports", name, patience=patience
    )


def register(directory, gate):
    with Endpoint(directory.address) as endpoint:
        endpoint.ask(Register(gate.address))


def push(gate, stream, first, last):
    """Push the rows n = first, ... of a stream, of which the last gate saw those before."""
    with Client(str(gate), f"reports/{stream}", SCHEMA, sequence=first) as client:
        client.push(pa.record_batch({"n": range(first, last)}, schema=SCHEMA))


def taken(inlet, start, end, tasks=3):
    """The values of every stream between two offsets, in the order of tasks."""
    found = {}
    for parts in inlet.tasks(start, end, tasks):
        for batch in GATHERING.rows(parts):
            for row in batch.to_pylist():
                found.setdefault(row["stream"].removeprefix("reports/"), []).append(row["n"])
    return found


def at(inlet, start, **expected):
    """The offset once it has come so far."""
    until = time.monotonic() + 120
    wanted = {f"reports/{name}": each for name, each in expected.items()}
    while (end := inlet.latest(start, None)).asdict() != wanted:
        assert time.monotonic() < until, end.asdict()
        time.sleep(0.02)
    return end


def test_rows_come_once_and_in_order_from_two_gates(two_gates):
    one, other = two_gates
    push(one.address, "a", 0, 100)
    push(other.address, "a", 100, 150)
    push(other.address, "b", 0, 10)
    inlet = reader(one.address, other.address)
    end = at(inlet, Offsets(), a=150, b=10)
    assert taken(inlet, Offsets(), end) == {"a": list(range(150)), "b": list(range(10))}


def test_rows_on_two_gates_are_read_from_one(two_gates):
    one, other = two_gates
    push(one.address, "a", 0, 100)
    push(other.address, "a", 60, 150)
    inlet = reader(one.address, other.address)
    assert taken(inlet, Offsets(), at(inlet, Offsets(), a=150)) == {"a": list(range(150))}


def test_a_limit_is_shared_over_streams_and_what_is_left_comes_next(gate):
    push(gate.address, "a", 0, 100)
    push(gate.address, "b", 0, 5)
    inlet = reader(gate.address)
    at(inlet, Offsets(), a=100, b=5)
    first = inlet.latest(Offsets(), 25)
    assert first.asdict() == {"reports/a": 20, "reports/b": 5}
    assert taken(inlet, first, at(inlet, first, a=100, b=5)) == {"a": list(range(20, 100))}


def test_a_stream_waits_at_a_hole_and_others_go_on(tmp_path):
    with Leaving(tmp_path / "one") as one, Leaving(tmp_path / "other") as other:
        push(one, "a", 0, 10)
        push(other, "a", 10, 20)
        push(other, "b", 0, 10)
        inlet = reader(one, other)
        before = at(inlet, Offsets(), a=20, b=10)
        push(one, "a", 20, 30)
        push(other, "a", 30, 40)
        push(other, "b", 10, 20)
        one.leave()
        held_up = at(inlet, before, a=20, b=20)
        assert (inlet.waiting.streams, inlet.waiting.away) == (1, (one.address,))
        one.come_back()
        assert taken(inlet, held_up, at(inlet, held_up, a=40, b=20)) == {"a": list(range(20, 40))}


def test_a_task_goes_on_where_a_gate_died(tmp_path):
    with Served("gate", tmp_path / "gate") as gate:
        for stream in range(40):
            push(gate, f"s{stream}", 0, 5000)
        inlet = reader(gate)
        end = at(inlet, Offsets(), **{f"s{number}": 5000 for number in range(40)})
        (parts,) = inlet.tasks(Offsets(), end, 1)
        batches = GATHERING.rows(parts)
        rows = [next(batches)]
        gate.kill()
        gate.launch()
        rows += list(batches)
        numbers = pa.Table.from_batches(rows).group_by("stream", use_threads=False).aggregate([("n", "list")])
        assert numbers["n_list"].to_pylist() == [list(range(5000))] * 40


def test_a_gate_that_dies_between_its_last_row_and_its_end_is_not_asked_for_nothing():
    asked = []

    def fetch(wanted):
        asked.append(list(wanted))
        yield pa.record_batch({"n": list(range(10))})
        raise GateAway("the gate is away")

    assert [batch.num_rows for batch in resumed(fetch, [("a", 0, 10)], patience=30)] == [10]
    assert asked == [[("a", 0, 10)]]


def test_rows_that_all_readers_are_done_with_are_not_waited_for(two_gates):
    one, other = two_gates
    push(one.address, "a", 50, 60)
    inlet = reader(one.address, other.address)
    end = at(inlet, Offsets(), a=60)
    assert taken(inlet, Offsets(), Offsets.unpacked(json.loads(json.dumps(end.packed())))) == {
        "a": list(range(50, 60))
    }
    push(one.address, "a", 60, 70)
    assert taken(inlet, end, at(inlet, end, a=70)) == {"a": list(range(60, 70))}


def test_a_new_stream_waits_while_its_first_rows_may_be_on_a_gate_that_is_away(tmp_path, gate):
    with Leaving(tmp_path / "one") as one:
        push(one, "a", 0, 10)
        push(gate.address, "a", 10, 20)
        push(gate.address, "b", 0, 5)
        one.leave()
        inlet = reader(one, gate.address)
        first = at(inlet, Offsets(), b=5)
        for _ in range(3):
            assert inlet.latest(first, None) is first
        one.come_back()
        assert taken(inlet, first, at(inlet, first, a=20, b=5)) == {"a": list(range(20))}


def test_gates_of_a_controller_are_found_also_later_ones(tmp_path, two_gates):
    one, other = two_gates
    with Directory("127.0.0.1:0", tmp_path / "directory") as directory:
        inlet = reader(directory.address)
        register(directory, one)
        push(one.address, "a", 0, 10)
        end = at(inlet, Offsets(), a=10)
        push(other.address, "a", 10, 20)
        register(directory, other)
        assert taken(inlet, end, at(inlet, end, a=20)) == {"a": list(range(10, 20))}


def test_what_is_committed_is_deleted_but_not_before_this_reader_had_it(tmp_path):
    with Gate("127.0.0.1:0", tmp_path / "gate", limits=Limits(segment_bytes=20_000)) as gate:
        inlet, slow = reader(gate.address), reader(gate.address, name="slow")
        slow.latest(Offsets(), None)
        start = Offsets()
        for first in range(0, 20_000, 2_000):
            push(gate.address, "a", first, first + 2_000)
            start = at(inlet, start, a=first + 2_000)
            inlet.commit(start)
        assert taken(slow, Offsets(), at(slow, Offsets(), a=20_000)) == {"a": list(range(20_000))}
        before = gate.log.bytes
        slow.commit(start)
        assert gate.log.bytes < before / 2


def test_no_gate_at_all_is_said_when_patience_is_over():
    inlet = reader(f"127.0.0.1:{free_port()}", patience=0.3)
    time.sleep(0.4)
    with pytest.raises(GateAway, match=r"no gate of inlet 'reports'.*penstock gate"):
        inlet.latest(Offsets(), None)


def test_a_column_that_the_rows_do_not_have_is_named(gate):
    push(gate.address, "a", 0, 10)
    inlet = reader(gate.address)
    (parts,) = inlet.tasks(Offsets(), at(inlet, Offsets(), a=10), 1)
    for wrong, reason in (
        (("m", pa.int64()), "no column 'm'"),
        (("n", pa.string()), "is bigint, declared is string"),
    ):
        with pytest.raises(BadSource, match=reason):
            list(Gathering("reports", Access(), pa.schema([wrong]), None, 5).rows(parts))


def test_a_token_reads_what_it_may_and_is_not_in_the_error(tmp_path):
    file = tmp_path / "tokens.toml"
    rights = 'push = ["reports/*"]\nread = ["reports/a*"]\ncommit = ["reports/a*"]'
    file.write_text(f'[[token]]\nname = "city"\nsha256 = "{hash_of("pst_sesame")}"\n{rights}\n')
    with Gate("127.0.0.1:0", tmp_path / "gate", security=Security(tokens=file)) as gate:
        for stream in ("a1", "b1"):
            with Client(gate.address, f"reports/{stream}", SCHEMA, sequence=0, token="pst_sesame") as client:
                client.push(pa.record_batch({"n": range(5)}, schema=SCHEMA))
        inlet = InletReader(
            GateWatch([gate.address], Access(token="pst_sesame"), "reports"), "reports", "me", patience=9
        )
        assert at(inlet, Offsets(), a1=5)
        inlet.commit(Offsets())
        assert sorted(gate.state.readers.positions) == [("reports", "me")]
        wrong = InletReader(
            GateWatch([gate.address], Access(token="pst_wrong"), "reports"), "reports", "me", patience=9
        )
        with pytest.raises(Refused, match="not known here") as refused:
            wrong.latest(Offsets(), None)
        assert "pst_wrong" not in str(refused.value)


def test_many_streams_share_few_batches(gate):
    with Connection(gate.address) as connection:
        clients = [Client(connection, f"reports/s{number}", SCHEMA, sequence=0) for number in range(200)]
        for client in clients:
            client.push(pa.record_batch({"n": range(5)}, schema=SCHEMA))
        for client in clients:
            client.flush()
    inlet = reader(gate.address)
    end = at(inlet, Offsets(), **{f"s{number}": 5 for number in range(200)})
    (parts,) = inlet.tasks(Offsets(), end, 8)
    assert [batch.num_rows for batch in GATHERING.rows(parts)] == [1000]


def test_a_promise_alone_makes_an_offset_and_waits_for_the_rows_before_it(two_gates):
    one, other = two_gates
    push(one.address, "a", 0, 100)
    with Client(other.address, "reports/a", SCHEMA, sequence=100) as client:
        client.promise(70)
    inlet = reader(one.address, other.address)
    part = inlet.latest(Offsets(), 60)
    assert (part.asdict(), part.promises()) == ({"reports/a": 60}, {})
    rest = inlet.latest(part, 60)
    assert (rest.asdict(), rest.promises()) == ({"reports/a": 100}, {"reports/a": 70})
    assert inlet.latest(rest, 60) is rest
    with Client(other.address, "reports/b", SCHEMA) as client:
        client.promise(80)
    more = inlet.latest(rest, 60)
    assert (more.asdict(), more.promises()) == (
        {"reports/a": 100, "reports/b": 0},
        {"reports/a": 70, "reports/b": 80},
    )
    assert inlet.tasks(rest, more, 3) == []
