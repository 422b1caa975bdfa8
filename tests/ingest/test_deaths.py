import random
import signal
import time

from ingest.gate_processes import Served
from ingest.held import act, numbers, whole
from penstock.ingest import Client, Connection

SCHEMA = "n bigint"


def test_killed_gates_and_redirections_lose_and_repeat_nothing(tmp_path):
    rng = random.Random(5)
    gates = [Served("gate", tmp_path / name) for name in "ab"]
    for gate in gates:
        gate.launch()
    with gates[0].ready(), gates[1].ready(), Connection(gates[0].address) as connection:
        clients = [Client(connection, f"r/{n}", SCHEMA, batch_seconds=0.005) for n in range(30)]

        def push(seconds):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for client in clients:
                    client.push(numbers(client.sequence, rng.randint(1, 20)), timeout=120)
                time.sleep(0.01)

        push(0.5)
        for client in clients[::2]:
            act(gates[0], "redirect", streams=[client.stream], to=str(gates[1]))
        push(0.5)
        for gate in rng.choices(gates, k=2):
            gate.kill(signal.SIGKILL)
            gate.launch()
            push(0.5)
            gate.ready()
            for client in rng.sample(clients, 5):
                if client.gate in map(str, gates):
                    act(client.gate, "redirect", streams=[client.stream], to=str(rng.choice(gates)))
            push(0.3)
        for client in clients:
            client.close(120)
        assert whole(gates, "r") == {client.stream: list(range(client.sequence)) for client in clients}


def test_a_gate_that_stands_still_is_left_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.ingest.client.calls.PATIENCE_S", 1.0)
    with Served("gate", tmp_path / "gate") as gate, Connection(gate.address) as connection:
        client = Client(connection, "r/a", SCHEMA)
        client.push(numbers(0, 5))
        client.flush(120)
        gate._process.send_signal(signal.SIGSTOP)
        client.push(numbers(5, 5))
        end = time.monotonic() + 120
        while "has not answered for" not in str(connection.trouble):
            assert time.monotonic() < end
            time.sleep(0.05)
        gate._process.send_signal(signal.SIGCONT)
        client.close(120)
        assert whole([gate], "r")["r/a"] == list(range(10))
