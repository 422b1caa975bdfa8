import random
import time

import pytest

from ingest.held import act, held, numbers, whole
from penstock.ingest import Client, Connection
from penstock.ingest.client.stream import Redirection, Redirections

SCHEMA = "n bigint"


def test_a_stream_follows_its_gate_and_comes_back(two_gates):
    one, other = (gate.address for gate in two_gates)
    with Client(one, "r/a", SCHEMA) as client:
        for target, source in [(other, one), (one, other), (other, one)]:
            client.push(numbers(client.sequence, 10))
            client.flush(120)
            act(source, "redirect", streams=["r/a"], to=target)
            client.push(numbers(client.sequence, 10))
            client.flush(120)
            assert client.gate == target
        moves = client.redirections
    assert [(each.source, each.target) for each in moves] == [(one, other), (other, one), (one, other)]
    assert all(0.0 < each.seconds < 10.0 for each in moves)
    assert whole([one, other], "r")["r/a"] == list(range(60))


def test_redirections_at_random_lose_and_repeat_nothing(two_gates):
    addresses = [gate.address for gate in two_gates]
    rng = random.Random(11)
    with Connection(addresses[0]) as connection:
        clients = [
            Client(connection, f"r/{n}", SCHEMA, batch_rows=20, batch_seconds=0.002) for n in range(20)
        ]
        for _ in range(150):
            for client in clients:
                client.push(numbers(client.sequence, rng.randint(1, 9)))
            for client in rng.sample(clients, 2):
                at = client.gate or addresses[0]
                act(
                    at,
                    "redirect",
                    streams=[client.stream],
                    to=rng.choice([each for each in addresses if each != at]),
                )
        for client in clients:
            client.close(120)
        pushed = {client.stream: list(range(client.sequence)) for client in clients}
        moves = [each for client in clients for each in client.redirections]
    assert whole(addresses, "r") == pushed
    assert len(moves) > 50


def test_a_gate_that_drains_sends_all_its_streams_away(two_gates):
    one, other = (gate.address for gate in two_gates)
    with Connection(one) as connection:
        clients = [Client(connection, f"r/{n}", SCHEMA) for n in range(10)]
        for client in clients:
            client.push(numbers(0, 5))
            client.flush(120)
        act(one, "drain", to=other)
        for client in clients:
            client.push(numbers(5, 5))
            client.close(120)
    assert {len(rows) for rows in held([other], "r").values()} == {5}
    assert set(map(tuple, whole([one, other], "r").values())) == {tuple(range(10))}


def test_gates_that_send_a_stream_to_and_fro_are_asked_ever_more_slowly(two_gates):
    one, other = (gate.address for gate in two_gates)
    act(one, "drain", to=other)
    act(other, "drain", to=one)
    with Connection(one) as connection:
        client = Client(connection, "r/a", SCHEMA, sequence=0)
        client.push(numbers(0, 1))
        time.sleep(1.0)
        assert 2 <= client._flow.tries < 12


@pytest.mark.parametrize(("ready", "seconds"), [(9.0, 0.5), (10.25, 0.25)])
def test_the_delay_counts_from_the_suspension_or_the_first_ready_row(ready, seconds):
    # suspended 10.0 ──── (ready 10.25) ──── acknowledged 10.5
    log = Redirections()
    log.suspended(Redirection("r/a", "a:1", "b:1", 3, 0.0), now=10.0)
    log.resumed("b:1", now=10.1)
    log.sent(ready)
    log.resumed("b:1", now=10.5)
    assert [each.seconds for each in log.finished] == [seconds]


def test_a_stream_sent_on_before_it_arrived_is_one_redirection():
    log = Redirections()
    log.suspended(Redirection("r/a", "a:1", "b:1", 3, 0.0), now=10.0)
    log.sent(9.0)
    log.suspended(Redirection("r/a", "b:1", "c:1", 3, 0.0), now=10.5)
    log.sent(9.0)
    log.resumed("c:1", now=11.0)
    assert list(log.finished) == [Redirection("r/a", "a:1", "c:1", 3, 1.0)]
