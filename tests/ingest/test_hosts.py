"""Gates on two hosts, here network namespaces, and a controller that is killed while it scales in.

It needs root and `ip`, and uses the addresses 192.0.2.0/24, which nobody else has.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from ingest.gate_processes import COMMAND
from ingest.held import act, held, numbers
from ingest.test_standby import Controller
from penstock.errors import IngestError
from penstock.ingest import Client, Connection
from penstock.ingest.directory.gate_processes import GateProcesses

pytestmark = pytest.mark.soak
STREAMS = 12
CAPACITY = 500.0


def run(*command):
    subprocess.run(command, check=True)


class Hosts:
    """Hosts that reach this one at 192.0.2.1, each by a cable of its own."""

    def __init__(self, **addresses):
        self.addresses = addresses

    def __enter__(self):
        for name, address in self.addresses.items():
            space, cable = f"pstk-{name}", f"pstk-{name}-o"
            run("ip", "netns", "add", space)
            run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
            run("ip", "addr", "add", "192.0.2.1/32", "dev", cable)
            run("ip", "link", "set", cable, "up")
            run("ip", "route", "add", f"{address}/32", "dev", cable, "src", "192.0.2.1")
            run("ip", "-n", space, "addr", "add", f"{address}/32", "dev", "eth0")
            run("ip", "-n", space, "link", "set", "eth0", "up")
            run("ip", "-n", space, "link", "set", "lo", "up")
            run("ip", "-n", space, "route", "add", "192.0.2.1/32", "dev", "eth0")
        return self

    def __exit__(self, *_):
        for name in self.addresses:
            subprocess.run(["ip", "netns", "del", f"pstk-{name}"], check=False)
            subprocess.run(["ip", "link", "del", f"pstk-{name}-o"], check=False, stderr=subprocess.DEVNULL)

    def nodes(self, folder, **capacities):
        """The file of nodes: one gate on each host."""
        path = os.pathsep.join(each for each in sys.path if each)
        tables = []
        for name, address in self.addresses.items():
            agent = f"exec {sys.executable} -c {shlex.quote(COMMAND)} node"
            command = (
                f"ip netns exec pstk-{name} env -i PYTHONPATH={path} PATH={os.environ['PATH']} sh -c {{}}"
            )
            tables.append(
                f"[[node]]\nname = '{name}'\ncommand = '''{command.format(shlex.quote(agent))}'''\n"
                f"address = '{address}:7400'\nfolder = '{folder / name}'\ncapacity = {capacities[name]}\n"
                "options = ['--insecure']\n"
            )
        (folder / "nodes.toml").write_text("\n".join(tables))
        return folder / "nodes.toml"


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def gates_of(controller):
    return {each["gate"]: each for each in act(controller.address, "gates")["gates"]}


class Pushing:
    """Streams that are pushed without end, `rows` at a time."""

    def __init__(self, address):
        self.connection, self.rows = Connection(address), 5
        self.clients = [Client(self.connection, f"r/{n}", "n bigint") for n in range(STREAMS)]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._push)
        self._thread.start()

    def _push(self):
        while not self._ended.wait(0.05):
            for client in self.clients:
                client.push(numbers(client.sequence, self.rows))

    def end(self):
        """The number of rows of each stream, all of them acknowledged."""
        self._ended.set()
        self._thread.join(120)
        for client in self.clients:
            client.flush(120)
        pushed = {client.stream: client.acknowledged for client in self.clients}
        self.connection.close()
        return pushed

    def gates(self):
        return [client.gate for client in self.clients]


def merged(found, gate):
    """Add what a gate holds; the same number must be the same row."""
    for stream, rows in held([gate], "r").items():
        known = found.setdefault(stream, {})
        for sequence, value in rows.items():
            assert known.setdefault(sequence, value) == value


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and `ip`, to make network namespaces"
)
def test_a_controller_that_is_killed_while_it_scales_in_loses_and_doubles_nothing(tmp_path):
    small, large = "192.0.2.11:7400", "192.0.2.12:7400"
    with Hosts(a="192.0.2.11", b="192.0.2.12") as hosts:
        file = hosts.nodes(tmp_path, a=1.0, b=2.0)
        options = ["--nodes", str(file), "--capacity", str(CAPACITY), "--period", "1", "--strategy", "drf-m"]
        options += ["--insecure"]
        try:
            killed_while_it_scales_in(tmp_path / "state", options, small, large)
        finally:
            for name in ("a", "b"):
                processes = GateProcesses(tmp_path / name, 1_000_000)
                gate = {"a": small, "b": large}[name]
                processes.stop(gate)
                until(lambda processes=processes, gate=gate: not processes.runs(gate))


def killed_while_it_scales_in(folder, options, small, large):
    with Controller(folder, *options, host="192.0.2.1") as first:
        until(first.answers)
        act(first.address, "reader", inlet="r", reader="q", upto={}, run="test")
        with Controller(folder, *options, host="192.0.2.1") as second:
            pushing = Pushing(f"{first.address}/{second.address}")
            until(lambda: all(each in gates_of(first) for each in (small, large)))
            until(lambda: pushing.gates().count(large) > pushing.gates().count(small) > 0)
            listed = gates_of(first)
            assert (listed[small]["capacity"], listed[large]["capacity"]) == (CAPACITY, 2 * CAPACITY)
            until(lambda: any("standing by" in each for each in second.said))
            pushing.rows = 1
            until(lambda: "draining" in {each["state"] for each in gates_of(first).values()})
            first.process.send_signal(signal.SIGKILL)
            began = time.monotonic()
            until(second.answers, 10)
            took = time.monotonic() - began
            (left,) = [gate for gate, each in gates_of(second).items() if each["state"] == "draining"]
            (kept,) = {small, large} - {left}
            until(lambda: set(pushing.gates()) == {kept})
            found = {}
            merged(found, left)
            positions = {stream: max(rows) + 1 for stream, rows in found.items()}
            for gate in (left, kept):
                act(gate, "committed", inlet="r", reader="q", upto=positions)
            until(lambda: left not in gates_of(second))
            with pytest.raises(IngestError):
                act(left, "status")
            pushed = pushing.end()
            merged(found, kept)
            assert {stream: sorted(rows) for stream, rows in found.items()} == {
                stream: list(range(rows)) for stream, rows in pushed.items()
            }
            sys.stdout.write(f"taken over after {took:.2f} s, {sum(pushed.values()):,} rows\n")
