"""Gates on another host, here another address, run by a command with an environment of its own."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ingest.gate_processes import COMMAND, free_port
from ingest.held import act, numbers, whole
from penstock.control.admission import AdmissionSetup
from penstock.errors import BadAdmission, Superseded
from penstock.ingest import Client, Connection, Directory
from penstock.ingest.directory import NodeSpec, RemoteNodes, read_nodes
from penstock.ingest.directory.gate_processes import GateProcesses


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def remote(folder, name="far", **more):
    """A host whose `penstock node` is run by a command that leaves it nothing of our environment."""
    node = f"cd / && exec {sys.executable} -c {shlex.quote(COMMAND)} node"
    path = shlex.quote(os.pathsep.join(each for each in sys.path if each))
    command = f"env -i PYTHONPATH={path} PATH=/usr/bin:/bin sh -c {shlex.quote(node)}"
    return NodeSpec(name, command, f"127.0.0.2:{free_port()}", str(folder / name), **more)


def process_of(node, gate):
    return int((Path(node.folder) / gate.rpartition(":")[2] / "pid").read_text())


def followed(nodes, node, gate):
    """Wait until a node has followed the orders given so far: they are followed one after the other."""
    mark = Path(node.folder) / "mark"
    mark.mkdir()
    nodes._agent(gate).order({"clear": "a:mark"})
    until(lambda: not mark.exists())


@pytest.fixture
def far(tmp_path):
    node = remote(tmp_path)
    yield node
    for gate in node.addresses():
        place = Path(node.folder) / gate.rpartition(":")[2] / "pid"
        if place.exists():
            processes = GateProcesses(Path(node.folder), 1_000_000)
            processes.stop(gate)
            until(lambda gate=gate, processes=processes: not processes.runs(gate))


def test_a_gate_is_started_watched_found_again_and_stopped(far):
    (gate,) = far.addresses()
    nodes = RemoteNodes([far], "127.0.0.1:9", term=1)
    assert nodes.runs(gate)  # nobody knows yet
    until(lambda: not nodes.runs(gate))
    nodes.start(gate)
    until(lambda: nodes.runs(gate))
    number = process_of(far, gate)
    assert f"127.0.0.2:{gate.rpartition(':')[2]}".encode() in Path(f"/proc/{number}/cmdline").read_bytes()
    nodes.close()
    again = RemoteNodes([far], "127.0.0.1:9", term=2)
    until(lambda: again._agent(gate).running() == {gate})
    again.start(gate)  # it runs already
    followed(again, far, gate)
    assert process_of(far, gate) == number
    os.kill(number, signal.SIGKILL)
    until(lambda: not again.runs(gate))
    again.start(gate)
    until(lambda: again.runs(gate))
    assert process_of(far, gate) != number
    again.stop(gate)
    until(lambda: not again.runs(gate))
    assert (Path(far.folder) / gate.rpartition(":")[2]).exists()
    again.clear(gate)
    until(lambda: not (Path(far.folder) / gate.rpartition(":")[2]).exists())
    again.close()


def test_an_agent_that_dies_is_run_again_and_its_gates_go_on(far):
    (gate,) = far.addresses()
    nodes = RemoteNodes([far], "127.0.0.1:9", term=1)
    until(lambda: not nodes.runs(gate))
    nodes.start(gate)
    until(lambda: nodes.runs(gate))
    agent, number = nodes._agents["far"], process_of(far, gate)
    first = agent._process
    os.killpg(first.pid, signal.SIGKILL)
    until(lambda: agent.running() is None)
    assert nodes.runs(gate)
    until(lambda: agent.running() == {gate})
    assert (process_of(far, gate), agent._process is first) == (number, False)
    nodes.close()


def test_orders_of_an_earlier_controller_are_refused(far, caplog):
    (gate,) = far.addresses()
    old = RemoteNodes([far], "127.0.0.1:9", term=1)
    until(lambda: not old.runs(gate))
    new = RemoteNodes([far], "127.0.0.1:9", term=2)
    until(lambda: not new.runs(gate))
    new.start(gate)
    until(lambda: new.runs(gate))
    old.stop(gate)
    old.clear(gate)
    until(lambda: sum("follow the controller of term 2" in each for each in caplog.messages) == 2)
    assert new.runs(gate)
    with pytest.raises(Superseded, match="this one has term 1; it gives no orders any more"):
        GateProcesses(Path(far.folder), 1)
    old.close()
    new.close()


def test_streams_enter_through_a_gate_on_another_host(tmp_path, far):
    setup = AdmissionSetup(10.0, "drf-m", period=0.5)

    def nodes(own):
        return RemoteNodes([far], own)

    with Directory("127.0.0.1:0", tmp_path / "state", admission=setup, nodes=nodes) as directory:
        until(lambda: [each["state"] for each in act(directory.address, "gates")["gates"]] == ["active"])
        with Connection(directory.address) as connection:
            client = Client(connection, "r/1", "n bigint", {"expected_rate": 8})
            client.push(numbers(0, 5))
            client.close(120)
        assert client.gate == far.addresses()[0]
        assert whole([client.gate], "r") == {"r/1": [0, 1, 2, 3, 4]}
    assert GateProcesses(Path(far.folder), 10).runs(client.gate)  # it survives the end of its controller


def test_gates_start_on_one_node_after_the_other_with_their_capacity(tmp_path):
    specs = [
        NodeSpec("a", "false", "10.0.0.1:7400", "gates", gates=2),
        NodeSpec("b", "false", "10.0.0.2:7400", "gates", capacity=2.0),
    ]
    nodes = RemoteNodes(specs, "127.0.0.1:9")
    assert list(nodes.gates()) == ["10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.1:7401"]
    assert [nodes.share(each) for each in nodes.gates()] == [1.0, 2.0, 1.0]
    nodes.close()


GOOD = 'name = "a"\ncommand = "ssh a penstock node"\naddress = "10.0.0.1:7400"\nfolder = "/var/lib/gates"\n'


def test_a_file_of_nodes_is_read(tmp_path):
    file = tmp_path / "nodes.toml"
    file.write_text(f"[[node]]\n{GOOD}gates = 2\ncapacity = 2\noptions = ['--store-mib=64']\n")
    (node,) = read_nodes(file)
    assert (node.addresses(), node.capacity) == (["10.0.0.1:7400", "10.0.0.1:7401"], 2)
    assert node.options == ("--store-mib=64",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"give a \[\[node\]\] table for each host"),
        ("[[node]]\nname = 'a'\n", "node 'a' has no command; give it"),
        (f"[[node]]\n{GOOD}gate = 2\n", "a node has gate = 2; the keys are name, command"),
        (f"[[node]]\n{GOOD}gates = 0\n", "give 1 or more gates"),
        (f"[[node]]\n{GOOD}[[node]]\n{GOOD}", "gives 10.0.0.1:7400 to two gates"),
        ("[[node", "cannot be read"),
    ],
)
def test_what_is_wrong_in_a_file_of_nodes_is_said(tmp_path, text, reason):
    file = tmp_path / "nodes.toml"
    file.write_text(text)
    with pytest.raises(BadAdmission, match=reason):
        read_nodes(file)


def test_a_node_that_gets_no_orders_says_how_it_is_run():
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, "node"], input="hello\n", capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "is run by a controller with --nodes, not by hand" in ended.stderr
