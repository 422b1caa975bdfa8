"""Two controllers on one folder: one decides, the other takes over; nothing that was told is lost."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ingest.gate_processes import COMMAND, Served, free_port
from ingest.held import act, numbers, whole
from penstock.errors import BadGate, GateAway, IngestError, Refused, Superseded
from penstock.ingest import Client, Connection, Gate
from penstock.ingest.directory import Lease, stand_by
from penstock.ingest.directory.store import DirectoryStore, Numbers
from penstock.ingest.security.access import Access
from penstock.ingest.wire import Endpoint
from penstock.ingest.wire.protocol import RedirectStreams

SCHEMA = "n bigint"


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def takes_over(folder):
    """A lease that is taken though its holder lives, as after a beat that stood still."""
    last = stand_by(folder, threading.Event(), seconds=0.0)
    return Lease.take(folder, "127.0.0.1:2", from_=last)


def test_of_two_that_want_the_same_term_one_has_it(tmp_path):
    first = Lease.take(tmp_path, "127.0.0.1:1")
    with pytest.raises(BadGate, match="another controller uses the folder"):
        Lease.take(tmp_path, "127.0.0.1:2")
    first.release()
    second = Lease.take(tmp_path, "127.0.0.1:2")
    assert (second.number, second.name) == (2, first.name)
    with pytest.raises(Superseded, match="has taken over the folder"):
        first.check()
    second.check()


def test_who_waits_goes_by_its_own_clock_and_begins_anew_with_each_beat(tmp_path):
    lease = Lease.take(tmp_path, "127.0.0.1:1")
    lease.start()
    ended, found = threading.Event(), []
    waiting = threading.Thread(target=lambda: found.append(stand_by(tmp_path, ended, seconds=30.0)))
    waiting.start()
    time.sleep(1.0)
    assert found == []
    lease.release()
    waiting.join(120)
    assert found == [1]
    ended.set()
    assert stand_by(tmp_path, ended) is None


def test_what_was_told_before_a_takeover_is_known_after_it_and_nothing_is_told_later(tmp_path):
    old = DirectoryStore(tmp_path)
    old.put_numbers({"r/1": Numbers(10, 1)})
    new = DirectoryStore(tmp_path, takes_over(tmp_path))
    assert new.numbers() == {"r/1": Numbers(10, 1)}
    with pytest.raises(Superseded):
        old.put_numbers({"r/1": Numbers(10, 2)})
    assert new.numbers() == {"r/1": Numbers(10, 1)}
    new.close()


def test_a_store_that_is_stopped_within_a_transaction_holds_nobody_up(tmp_path):
    old = DirectoryStore(tmp_path)
    old.put_numbers({"r/1": Numbers(10, 1)})
    transaction = old._transaction()
    transaction.__enter__()
    old._base.execute("INSERT INTO numbers VALUES ('r/2', 5, 1)")
    new = DirectoryStore(tmp_path, takes_over(tmp_path))
    new.put_numbers({"r/3": Numbers(7, 1)})
    with pytest.raises(Superseded):
        transaction.__exit__(None, None, None)
    assert set(new.numbers()) == {"r/1", "r/3"}
    new.close()


def test_generations_follow_one_another_and_the_newest_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.ingest.directory.store._MOST_LOG", 50_000)
    old = DirectoryStore(tmp_path)
    for turn in range(20):
        old.put_numbers({f"r/{n}": Numbers(turn, 1) for n in range(100)})
    assert len(list(tmp_path.glob("directory-*.sqlite"))) == 1
    assert old._generation > 0
    new = DirectoryStore(tmp_path, takes_over(tmp_path))
    assert new.numbers() == {f"r/{n}": Numbers(19, 1) for n in range(100)}
    assert [each.name for each in tmp_path.glob("directory-*.sqlite")] == [new._path.name]
    new.close()


def test_a_state_without_terms_is_taken_over(tmp_path):
    first = DirectoryStore(tmp_path)
    first.put_gate("a:1", draining=False)
    path = first._path
    first.close()
    path.rename(tmp_path / "directory.sqlite")
    again = DirectoryStore(tmp_path)
    assert again.gates() == [("a:1", False)]
    again.close()


def test_a_gate_refuses_orders_of_an_earlier_term_also_after_a_restart(tmp_path):
    def order(gate, term):
        with Endpoint(gate.address, Access(term=term)) as endpoint:
            endpoint.ask(RedirectStreams((), "127.0.0.1:9"))

    with Gate("127.0.0.1:0", tmp_path) as gate:
        order(gate, "one:3")
        with pytest.raises(GateAway, match="of term 3, and the order comes from term 2"):
            order(gate, "one:2")
        act(gate.address, "redirect", streams=[], to="127.0.0.1:9")  # an operator, who has no term
    with Gate("127.0.0.1:0", tmp_path) as gate:
        with pytest.raises(GateAway, match="follows the controller of term 3"):
            order(gate, "one:2")
        order(gate, "another:1")
        with pytest.raises(Refused, match="no term of a controller"):
            order(gate, "nonsense")


class Controller:
    """`penstock controller` at a port of its own on a folder that several may share."""

    def __init__(self, folder, *options, host="127.0.0.1"):
        self.address = f"{host}:{free_port()}"
        command = [sys.executable, "-c", COMMAND, "controller", "--address", self.address]
        self.process = subprocess.Popen(
            [*command, "--folder", str(folder), *options], env=os.environ, stderr=subprocess.PIPE, text=True
        )
        self.said = []
        self._reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(120)
        self._reader.join(120)
        self.process.stderr.close()

    def answers(self):
        try:
            return act(self.address, "status")["controller"] == self.address
        except IngestError:
            return False


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_a_standby_takes_over_and_clients_and_gates_find_it(tmp_path, end):
    with Controller(tmp_path / "state") as first:
        until(first.answers)
        with (
            Controller(tmp_path / "state") as second,
            Served("gate", tmp_path / "gate", "--controller", first.address) as gate,
            Connection(f"{first.address}/{second.address}") as connection,
        ):
            until(lambda: act(first.address, "gates")["gates"])
            client = Client(connection, "r/1", SCHEMA)
            client.push(numbers(0, 5))
            client.flush(120)
            until(lambda: any("standing by" in each for each in second.said))
            assert not second.answers()
            first.process.send_signal(end)
            began = time.monotonic()
            until(second.answers)
            sys.stdout.write(f"{end.name}: taken over after {time.monotonic() - began:.2f} s\n")
            until(lambda: not act(second.address, "gates")["gates"][0]["away"])
            until(lambda: act(second.address, "gates")["gates"][0]["info"].get("log"))
            client.push(numbers(5, 5))
            client.flush(120)
            with Client(connection, "r/2", SCHEMA) as other:
                other.push(numbers(0, 3))
            if end == signal.SIGSTOP:
                first.process.send_signal(signal.SIGCONT)
                with pytest.raises((GateAway, Refused)):
                    act(first.address, "redirect", streams=["r/1"], to=gate.address)
            if end != signal.SIGKILL:
                assert first.process.wait(120) == (3 if end == signal.SIGSTOP else 0)
            client.close(120)
            assert whole([gate.address], "r") == {"r/1": list(range(10)), "r/2": [0, 1, 2]}
