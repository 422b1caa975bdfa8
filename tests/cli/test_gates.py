"""`penstock gates` on a controller with two gates, as an operator uses it."""

import json
import time

import pytest
from typer.testing import CliRunner

from ingest.held import act, numbers, whole
from penstock.cli.app import app
from penstock.control.admission import AdmissionSetup
from penstock.errors import GateAway, Refused
from penstock.ingest import Client, Connection, Directory, Gate

SCHEMA = "n bigint"
SETUP = AdmissionSetup(1000.0, "ard", period=600.0)
ASKED = "asked by an operator"


def penstock(directory, *arguments, json_=False):
    command = ["gates", *arguments, "--controller", directory.address, *(["--json"] if json_ else [])]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if json_ else result.stdout


@pytest.fixture
def system(tmp_path):
    with (
        Gate("127.0.0.1:0", tmp_path / "a") as one,
        Gate("127.0.0.1:0", tmp_path / "b") as other,
        Directory("127.0.0.1:0", tmp_path / "state", away_seconds=600, admission=SETUP) as directory,
        Connection(directory.address) as connection,
    ):
        for each in (one, other):
            directory.register(each.address)
        clients = [Client(connection, f"r/{n}", SCHEMA) for n in range(4)]
        for client in clients:
            client.push(numbers(0, 5))
            client.flush(120)
        yield directory, [one.address, other.address], clients


def again(directory, tmp_path, gates):
    """A second controller on the state of the first, which has ended."""
    directory.stop()
    found = Directory("127.0.0.1:0", tmp_path / "state", away_seconds=600, admission=SETUP)
    for each in gates:
        found.register(each)
    return found


def streams_at(gate):
    return act(gate, "statistics")["streams"].values()


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def recorded(folder):
    lines = [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]
    return [one for each in lines if each["kind"] == "asked" for one in each["decisions"]]


def test_gates_are_listed_for_people_and_programs(system):
    directory, gates, _ = system
    listed = {each["gate"]: each for each in penstock(directory, json_=True)["gates"]}
    assert set(listed) == set(gates)
    assert sum(each["streams"] for each in listed.values()) == 4
    assert {each["state"] for each in listed.values()} == {"active"}
    text = penstock(directory)
    assert all(gate in text for gate in gates)
    assert "2 gates" in text


def test_streams_are_redirected_by_hand(system, tmp_path):
    directory, gates, clients = system
    (target,) = set(gates) - {clients[0].gate}
    assert "1 streams moved" in penstock(directory, "redirect", "r/0", target)
    clients[0].push(numbers(5, 5))
    clients[0].flush(120)
    assert clients[0].gate == target
    directory._steering.close()
    (asked,) = recorded(tmp_path / "state" / "admission")
    assert (asked["kind"], asked["stream"], asked["target"], asked["reason"]) == (
        "redirect",
        "r/0",
        target,
        ASKED,
    )


def test_a_drained_gate_is_empty_and_stays_unused_over_a_restart(system, tmp_path):
    directory, gates, clients = system
    leaving, (kept,) = clients[0].gate, set(gates) - {clients[0].gate}
    penstock(directory, "drain", leaving)
    for client in clients:
        client.push(numbers(5, 5))
        client.flush(120)
    assert {client.gate for client in clients} == {kept}
    assert whole(gates, "r") == {f"r/{n}": list(range(10)) for n in range(4)}
    with again(directory, tmp_path, gates) as second:
        listed = {each["gate"]: each for each in penstock(second, json_=True)["gates"]}
        assert (listed[leaving]["state"], listed[leaving]["why"]) == ("drained", ASKED)
        assert set(second.where({f"r/new-{n}": None for n in range(4)}).values()) == {kept}
        with pytest.raises(GateAway, match="no other gate can take the streams of gate"):
            penstock(second, "drain", kept)
        penstock(second, "use", leaving)
        assert penstock(second, "redirect", "r/0", leaving, json_=True)["moved"] == ["r/0"]
        with pytest.raises(Refused, match="was not drained; the drained ones are: none"):
            penstock(second, "use", leaving)
    kinds = {each["kind"] for each in recorded(tmp_path / "state" / "admission")}
    assert kinds == {"drain", "redirect", "start"}


def test_a_recording_with_what_operators_asked_is_replayed(system, tmp_path):
    directory, _, clients = system
    penstock(directory, "drain", clients[0].gate)
    directory._steering.close()
    found = CliRunner().invoke(app, ["replay", str(tmp_path / "state"), "--check"])
    assert (found.exit_code, "agree" in found.stdout) == (0, True)


def test_readers_are_shown_by_their_run_and_forgotten(system):
    directory, gates, _ = system
    act(directory.address, "reader", inlet="r", reader="5f0c", upto={"r/0": 5}, run="state/traffic")
    for gate in gates:
        act(gate, "committed", inlet="r", reader="5f0c", upto={}, run="state/traffic")
    assert "state/traffic" in penstock(directory, "readers")
    assert act(gates[0], "status")["readers"] == [{"inlet": "r", "reader": "5f0c", "run": "state/traffic"}]
    with pytest.raises(Refused, match=r"the readers are: r:5f0c \(state/traffic\)"):
        penstock(directory, "forget-reader", "r:other")
    penstock(directory, "forget-reader", "r:5f0c")
    assert penstock(directory, "readers", json_=True)["readers"] == []
    assert act(gates[0], "status")["readers"] == []


def test_an_inlet_is_deleted_when_nobody_pushes_to_it(system):
    directory, gates, clients = system
    with pytest.raises(
        Refused, match=r"streams of inlet 'r' are pushed here, such as 'r/\d'; end their clients"
    ):
        penstock(directory, "delete-inlet", "r")
    clients[0]._connection.close()
    until(lambda: not any(each["connected"] for gate in gates for each in streams_at(gate)))
    with Client(directory.address, "other", SCHEMA) as client:
        client.push(numbers(0, 3))
    act(directory.address, "reader", inlet="r", reader="q", upto={})
    penstock(directory, "delete-inlet", "r")
    assert whole(gates, "r") == {}
    assert whole(gates, "other") == {"other": [0, 1, 2]}
    assert penstock(directory, "readers", json_=True)["readers"] == []
    assert "r/0" not in {each["stream"] for each in act(directory.address, "streams")["streams"]}
    with Client(directory.address, "r/0", "n string") as client:
        assert client.sequence == 5
        client.push([{"n": "x"}])
    with pytest.raises(Refused, match="no inlet 'nobody' is known"):
        penstock(directory, "delete-inlet", "nobody")


def test_streams_tell_their_state(system):
    directory, _, clients = system
    clients[0].close(120)
    directory.declare("r/later", {"max_rate": 5.0})
    result = CliRunner().invoke(app, ["streams", directory.address, "--inlet", "r"])
    assert "declared" in result.stdout
    assert "5 streams" in result.stdout
