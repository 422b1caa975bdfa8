import json
import time

import pytest
from typer.testing import CliRunner

from ingest.held import act, held, numbers, whole
from penstock.cli.app import app
from penstock.control.admission import AdmissionSetup
from penstock.errors import Refused
from penstock.ingest import Client, Connection, Directory, Gate
from penstock.ingest.directory import LocalNodes

SCHEMA = "n bigint"
RUNNER = CliRunner()


def until(true, seconds=120, meanwhile=lambda: None):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        meanwhile()
        time.sleep(0.02)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Two clients overload a gate until the controller moves one of them; what became of it."""
    folder = tmp_path_factory.mktemp("live")
    setup = AdmissionSetup(40.0, "ard", period=0.3)
    with (
        Gate("127.0.0.1:0", folder / "a") as one,
        Gate("127.0.0.1:0", folder / "b") as other,
        Directory(
            "127.0.0.1:0", folder / "controller", away_seconds=600, poll_seconds=0.1, admission=setup
        ) as directory,
    ):
        gates = [one.address, other.address]
        for gate in gates:
            directory.register(gate)
        with Connection(directory.address) as connection:
            clients = [Client(connection, f"r/{n}", SCHEMA, {"max_rate": 1e6}) for n in range(2)]
            first = {client.gate for client in clients}

            def push():
                for client in clients:
                    client.push(numbers(client.sequence, 3))

            until(lambda: {client.gate for client in clients} == set(gates), meanwhile=push)
            pushed = {client.stream: client.sequence for client in clients}
            for client in clients:
                client.close(120)
        listed = RUNNER.invoke(app, ["streams", directory.address, "--json"])
        table = RUNNER.invoke(app, ["streams", directory.address])
        declared = ["streams", directory.address, "--declare", "r/later"]
        RUNNER.invoke(app, [*declared, "--metadata", "expected_rate=500"], catch_exceptions=False)
        known = {each["stream"]: each for each in directory.streams()}
        with pytest.raises(Refused, match="give min <= expected <= max"):
            RUNNER.invoke(
                app,
                [*declared, "--metadata", "min_rate=9", "--metadata", "max_rate=5"],
                catch_exceptions=False,
            )
        rows = whole(gates, "r")
    return {
        "folder": folder / "controller",
        "first": first,
        "pushed": pushed,
        "rows": rows,
        "listed": json.loads(listed.stdout)["streams"],
        "table": table.stdout,
        "later": known["r/later"],
    }


def test_real_clients_are_redirected_and_no_row_is_lost_or_doubled(course):
    assert course["rows"] == {stream: list(range(rows)) for stream, rows in course["pushed"].items()}


def test_streams_are_listed_with_what_is_known_of_them(course):
    known = {each["stream"]: each for each in course["listed"]}
    assert set(known) == {"r/0", "r/1"}
    assert known["r/0"]["metadata"] == {"max_rate": 1e6}
    assert all(each["rate"] is not None and each["forecast"] is not None for each in known.values())
    assert "2 streams" in course["table"]


def test_a_stream_is_declared_to_the_controller_before_it_flows(course):
    assert (course["later"]["gate"], course["later"]["metadata"]) == ("", {"expected_rate": 500.0})


def test_the_recorded_decisions_are_made_again_byte_for_byte(course):
    found = RUNNER.invoke(app, ["replay", str(course["folder"]), "--check"])
    assert (found.exit_code, "agree" in found.stdout) == (0, True)


def test_a_changed_recording_is_found_out(course, tmp_path):
    (file,) = (course["folder"] / "admission").iterdir()
    lines = file.read_text().splitlines()
    at = next(place for place, line in enumerate(lines) if '"kind":"redirect"' in line)
    lines[at] = lines[at].replace('"kind":"redirect","stream":"r/', '"kind":"redirect","stream":"r/x')
    (tmp_path / "admission").mkdir()
    (tmp_path / "admission" / file.name).write_text("\n".join(lines) + "\n")
    found = RUNNER.invoke(app, ["replay", str(tmp_path), "--check", "--json"])
    assert found.exit_code == 1
    assert len(json.loads(found.stdout)["differences"]) == 1


def test_a_recording_is_replayed_under_another_strategy(course):
    found = RUNNER.invoke(app, ["replay", str(course["folder"]), "--strategy", "par", "--json"])
    told = json.loads(found.stdout)
    assert told["counts"]["recorded"]["redirect"] >= 1
    assert told["counts"]["replayed"]["admit"] == told["counts"]["recorded"]["admit"] == 2
    assert "packed afresh" not in json.dumps([each["recorded"] for each in told["decisions"]])


def test_a_controller_goes_on_with_what_its_policy_knew(course, caplog):
    setup = AdmissionSetup(40.0, "ard", period=0.3)
    with Directory("127.0.0.1:0", course["folder"], admission=setup) as again:
        assert again._steering._policy.expectations.to_json()["streams"] == ["r/0", "r/1"]


def test_gates_are_started_for_streams_and_stopped_when_their_rows_are_read(tmp_path):
    setup = AdmissionSetup(10.0, "drf-m", period=0.5)

    def nodes(own):
        return LocalNodes(tmp_path / "gates", own, least=1, most=2, port=0)

    def listed():
        return {each["gate"]: each["state"] for each in act(directory.address, "gates")["gates"]}

    with Directory("127.0.0.1:0", tmp_path, admission=setup, nodes=nodes) as directory:
        until(lambda: list(listed().values()) == ["active"])
        with Connection(directory.address) as connection:
            clients = [Client(connection, f"r/{n}", SCHEMA, {"expected_rate": 8}) for n in range(2)]
            for client in clients:
                client.push(numbers(0, 5))
                client.flush(120)
            gates = {client.stream: client.gate for client in clients}
            assert len(set(gates.values())) == 2
            act(directory.address, "reader", inlet="r", reader="q", upto={})
            for n in range(2):
                act(directory.address, "declare", stream=f"r/{n}", metadata={"expected_rate": 1})
            until(lambda: sorted(listed().values()) == ["active", "draining"])
            (left,) = [gate for gate, state in listed().items() if state == "draining"]
            (moved,) = [stream for stream, gate in gates.items() if gate == left]
            rows = whole(list(listed()), "r")
            for gate in listed():
                act(gate, "committed", inlet="r", reader="q", upto={"r/0": 5, "r/1": 5})
            until(lambda: left not in listed())
            for client in clients:
                client.push(numbers(5, 5))
                client.flush(120)
            assert rows == {f"r/{n}": list(range(5)) for n in range(2)}
            assert sorted(held(list(listed()), "r")[moved]) == list(range(5, 10))
            assert not (tmp_path / "gates" / left.split(":")[1]).exists()
            for client in clients:
                client.close(120)


def test_without_any_option_streams_are_charged_what_they_declare(tmp_path):
    with (
        Gate("127.0.0.1:0", tmp_path / "a") as one,
        Gate("127.0.0.1:0", tmp_path / "b") as other,
        Directory("127.0.0.1:0", tmp_path / "controller", away_seconds=600) as directory,
    ):
        for gate in (one, other):
            directory.register(gate.address, {"cores": 2.0, "rows_per_second": 1000.0})
        with Connection(directory.address) as connection:
            clients = [Client(connection, f"r/{n}", SCHEMA, {"expected_rate": 450}) for n in range(4)]
            for client in clients:
                client.push(numbers(0, 5))
                client.flush(120)
            homes = [client.gate for client in clients]
            for client in clients:
                client.close(120)
    assert sorted(homes.count(gate.address) for gate in (one, other)) == [2, 2]
