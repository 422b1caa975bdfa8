import time

import pytest

from ingest.gate_processes import Served
from ingest.held import act, numbers, whole
from penstock.control.admission import AdmissionSetup
from penstock.errors import GateAway, NoGate, Refused
from penstock.ingest import Client, Connection, Directory

SCHEMA = "n bigint"


@pytest.fixture
def directory(tmp_path, two_gates):
    place, setup = tmp_path / "directory", AdmissionSetup(period=0.2)
    with Directory(
        "127.0.0.1:0", place, away_seconds=60, poll_seconds=0.05, admission=setup, control="off"
    ) as known:
        for gate in two_gates:
            known.register(gate.address)
        yield known


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_client_of_the_controller_is_a_client_of_a_gate(directory, two_gates):
    addresses = [gate.address for gate in two_gates]
    with Connection(directory.address) as connection:
        clients = [Client(connection, f"r/{n}", SCHEMA) for n in range(10)]
        for client in clients:
            client.push(numbers(0, 5))
            client.flush(120)
        assert {client.gate for client in clients} == set(addresses)
        for client in clients:
            client.close(120)
    assert whole(addresses, "r") == {f"r/{n}": list(range(5)) for n in range(10)}


def test_streams_move_between_gates_on_its_word(directory, two_gates):
    one, other = (gate.address for gate in two_gates)
    with Client(directory.address, "r/a", SCHEMA) as client:
        client.push(numbers(0, 5))
        client.flush(120)
        target = other if client.gate == one else one
        assert act(directory.address, "redirect", streams=["r/a"], to=target) == {
            "moved": ["r/a"],
            "unreached": [],
        }
        client.push(numbers(5, 5))
        client.flush(120)
        assert (client.gate, len(client.redirections)) == (target, 1)
        assert act(directory.address, "where", streams=[{"stream": "r/a"}]) == {"gates": {"r/a": target}}
    with Client(directory.address, "r/a", SCHEMA) as client:
        assert client.sequence == 10


def test_it_sees_rates_and_ends(directory):
    with Client(directory.address, "r/a", SCHEMA) as client:
        client.push(numbers(0, 5))
        client.promise(77)
        client.flush(120)
        until(lambda: act(directory.address, "streams", inlet="r")["streams"][0]["next"] == 5)
        until(lambda: act(directory.address, "streams", inlet="r")["streams"][0]["frontier"] == 77)

        def flows():
            client.push(numbers(client.sequence, 5))
            return (act(directory.address, "streams")["streams"][0]["rate"] or 0) > 0

        until(flows)
    status = act(directory.address, "status")
    assert (len(status["gates"]), status["streams"], status["gates"][0]["away"]) == (2, 1, False)


@pytest.mark.parametrize("through", ["a gate", "the controller"])
def test_streams_that_are_sent_to_it_go_to_a_gate(directory, two_gates, through):
    one, other = two_gates
    if through == "the controller":
        directory.forget(gate=other.address)
    with Client(one.address if through == "a gate" else directory.address, "r/a", SCHEMA) as client:
        client.push(numbers(0, 5))
        client.flush(120)
        directory.register(one.address, {"draining": True})
        directory.register(other.address)
        act(one.address, "drain", to=directory.address)
        client.push(numbers(5, 5))
        client.flush(120)
        assert client.gate == other.address
        assert [(each.source, each.target) for each in client.redirections] == [(one.address, other.address)]


def test_a_stream_does_not_go_on_while_rows_of_it_may_be_elsewhere(directory):
    directory.register("127.0.0.1:1")
    directory.where({"r/a": None})
    directory.redirect(["r/a"], "127.0.0.1:1")
    with pytest.raises(GateAway, match=r"127\.0\.0\.1:1, which may hold rows of 'r/a', does not answer"):
        Client(directory.address, "r/a", SCHEMA)
    act(directory.address, "forget", gate="127.0.0.1:1")
    with Client(directory.address, "r/a", SCHEMA) as client:
        assert client.sequence == 0


def test_what_it_is_asked_wrongly_it_says(directory):
    for name, body, reason in [
        ("where", {"streams": 3}, "give a list of objects"),
        ("where", {"streams": [{"stream": ""}]}, "no stream id"),
        ("redirect", {"streams": ["r/x"], "to": "127.0.0.1:9"}, "is not there"),
        ("forget", {}, "nothing to forget"),
        ("where", {"streams": [{"stream": "r/a", "metadata": {"x": "x" * 2**24}}]}, "send at most"),
        ("wehre", {}, "no action 'wehre'; the actions are: register, where"),
    ]:
        with pytest.raises((Refused, GateAway), match=reason):
            act(directory.address, name, **body)


def test_without_gates_clients_wait_until_one_comes(gate):
    with Directory("127.0.0.1:0", away_seconds=60) as directory:
        with pytest.raises(NoGate):
            directory.where({"r/a": None})
        client = Client(directory.address, "r/a", SCHEMA)
        client.push(numbers(0, 5))
        time.sleep(0.2)
        assert client.acknowledged == 0
        directory.register(gate.address)
        client.close(120)
        assert whole([gate.address], "r")["r/a"] == list(range(5))


def test_a_killed_controller_comes_back_as_it_was(tmp_path):
    with Served("controller", tmp_path / "controller") as controller:
        gate = Served("gate", tmp_path / "gate", "--controller", controller.address)
        with gate, Connection(controller.address) as connection:
            client = Client(connection, "r/a", SCHEMA)
            client.push(numbers(0, 5))
            client.flush(120)
            controller.kill()
            client.push(numbers(5, 5))
            client.flush(120)
            controller.start()
            client.close(120)
            assert act(controller, "where", streams=[{"stream": "r/a"}]) == {"gates": {"r/a": gate.address}}
            assert connection.next_sequence("r/a") == 10
