"""Clients with valid tokens that ask for too much: they are refused, and others are served meanwhile.

Defect 15: one client could take a gate away from all.
"""

import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from penstock.ingest import Client, Connection, Directory, Gate, Limits, Security
from penstock.ingest.directory import server
from penstock.ingest.security.tokens import hash_of
from raw_push import COMMAND, SCHEMA, GateProcess, RawPush, ask, numbers, rows

MIB = 1 << 20


def peak_mib(process):
    """The most memory that a process had so far."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("mib", [400, 3000])
def test_rows_that_decompress_to_too_much_are_refused_in_bounded_memory(tmp_path, mib):
    """Defect 15: 13 kB of compressed rows became 402 MB before their size was checked."""
    schema = pa.schema([("number", pa.int64())])
    bomb = pa.record_batch([pa.array(np.zeros(mib * MIB // 8, np.int64))], schema=schema)
    options = flight.FlightCallOptions(write_options=pa.ipc.IpcWriteOptions(compression="zstd"))
    with GateProcess(tmp_path, "--memory-mib", "512") as gate:
        with RawPush(gate.address, schema, options=options) as push:
            push.send("zeros/1", 0, bomb, connect=True)
            until(lambda: push.ended or not push.heard.empty())
        said = push.error or push.answer()["message"]
        assert "memory" in str(said) or "at most 4,000,000 rows" in str(said)
        assert peak_mib(gate.process) < 900
        with RawPush(gate.address) as good:
            good.send("reports/1", 0, rows(0, 100), connect=True)
            good.wait_for("reports/1", 100)


def held(address, count=3000):
    """A gate with many small records of one stream."""
    with RawPush(address) as push:
        for number in range(count):
            push.send("reports/1", number, rows(number, 1), connect=number == 0)
        push.wait_for("reports/1", count)


def test_a_ticket_that_repeats_ranges_is_refused_before_it_costs_anything(tmp_path):
    """Defect 15: a ticket of 48 kB cost 247 MB and 11 s."""
    with GateProcess(tmp_path) as gate:
        held(gate.address)
        before = peak_mib(gate.process)
        ticket = {"op": "read", "inlet": "reports", "ranges": [["reports/1", 0, 3000]] * 2000}
        with flight.connect(f"grpc://{gate.address}") as client:
            with pytest.raises(flight.FlightServerError, match="each row once, in ascending order"):
                client.do_get(flight.Ticket(json.dumps(ticket).encode())).read_all()
            assert peak_mib(gate.process) < before + 50
            with pytest.raises(flight.FlightServerError, match=r"at most 16,777,216"):
                client.do_get(flight.Ticket(b" " * (17 * MIB))).read_all()
        assert numbers(gate.address, "reports/1", 0, 3000) == list(range(3000))


def test_a_ticket_has_a_limit_of_ranges(tmp_path):
    with Gate("127.0.0.1:0", tmp_path, limits=Limits(ranges=10)) as gate:
        held(gate.address, 20)
        ticket = {"op": "read", "inlet": "reports", "ranges": [["reports/1", n, n + 1] for n in range(11)]}
        with (
            flight.connect(f"grpc://{gate.address}") as client,
            pytest.raises(flight.FlightUnavailableError, match="11 ranges; at most 10"),
        ):
            client.do_get(flight.Ticket(json.dumps(ticket).encode())).read_all()


class Idle:
    """A push that is opened and says no more than its schema."""

    def __init__(self, address, options=None):
        self.client = flight.connect(f"grpc://{address}")
        self.writer, self.reader = self.client.do_put(COMMAND, SCHEMA, options)


def test_idle_pushes_lock_nobody_out(tmp_path):
    """Defect 15: eight idle pushes took every place of a gate with eight."""
    limits = Limits(calls=8, calls_per_token=8, idle_seconds=0)
    with Gate("127.0.0.1:0", tmp_path, limits=limits) as gate:
        idle = [Idle(gate.address) for _ in range(8)]
        until(lambda: len(gate._server._pushes._taken) == 8)
        with RawPush(gate.address) as push:
            push.send("reports/1", 0, rows(0, 100), connect=True)
            push.wait_for("reports/1", 100)
        del idle


def test_pushes_that_are_not_idle_for_long_keep_their_place(tmp_path):
    limits = Limits(calls=1, calls_per_token=1)
    with Gate("127.0.0.1:0", tmp_path, limits=limits) as gate, RawPush(gate.address) as first:
        first.send("reports/1", 0, rows(0, 100), connect=True)
        first.wait_for("reports/1", 100)
        with RawPush(gate.address) as second:
            until(lambda: second.ended)
        assert "1 pushes are open, the limit" in str(second.error)
        first.send("reports/1", 100, rows(100, 100))
        first.wait_for("reports/1", 200)


def test_a_quiet_client_that_lost_its_place_goes_on(tmp_path):
    limits = Limits(calls=1, calls_per_token=1, idle_seconds=0)
    with Gate("127.0.0.1:0", tmp_path, limits=limits) as gate, Connection(gate.address) as connection:
        quiet = Client(connection, "reports/quiet", SCHEMA)
        quiet.push(rows(0, 10))
        quiet.flush(120)
        with RawPush(gate.address) as push:
            push.send("reports/1", 0, rows(0, 100), connect=True)
            push.wait_for("reports/1", 100)
        quiet.push(rows(10, 10))
        quiet.close(120)
        assert numbers(gate.address, "reports/quiet", 0, 20) == list(range(20))


TOKENS = """
[[token]]
name = "greedy"
sha256 = "{greedy}"
push = ["*"]
read = ["*"]

[[token]]
name = "modest"
sha256 = "{modest}"
push = ["*"]
read = ["*"]
"""


def secured(folder):
    path = folder / "tokens.toml"
    path.write_text(TOKENS.format(greedy=hash_of("greedy"), modest=hash_of("modest")))
    return Security(tokens=path)


def bearing(token):
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


def test_a_token_has_a_limit_of_pushes(tmp_path):
    """Defect 15: there was no quota for a token."""
    limits = Limits(calls=8, calls_per_token=2)
    with Gate("127.0.0.1:0", tmp_path / "gate", limits=limits, security=secured(tmp_path)) as gate:
        greedy = [RawPush(gate.address, options=bearing("greedy")) for _ in range(2)]
        until(lambda: len(gate._server._pushes._taken) == 2)
        with RawPush(gate.address, options=bearing("greedy")) as third:
            until(lambda: third.ended)
        assert "2 pushes of this token are open, its limit" in str(third.error)
        with RawPush(gate.address, options=bearing("modest")) as push:
            push.send("reports/1", 0, rows(0, 100), connect=True)
            push.wait_for("reports/1", 100)
        for each in greedy:
            each.close()


def test_the_calls_of_a_controller_are_limited(monkeypatch):
    """Defect 15: the controller had no limit of calls."""
    monkeypatch.setattr(server, "MOST_CALLS", 4)
    with Directory("127.0.0.1:0") as directory:
        held = [Idle(directory.address) for _ in range(4)]
        until(lambda: len(directory._server._calls._taken) == 4)
        with pytest.raises(flight.FlightUnavailableError, match="4 calls are open"):
            ask(directory.address, "gates")
        monkeypatch.setattr(directory._server._calls, "_idle", 0.0)
        assert ask(directory.address, "gates")["gates"] == []
        del held


def test_idle_pushes_do_not_lock_others_out_of_a_controller(monkeypatch):
    monkeypatch.setattr(server, "MOST_CALLS", 2)
    monkeypatch.setattr(server, "IDLE_S", 0.0)
    with Directory("127.0.0.1:0") as directory:
        held = [Idle(directory.address) for _ in range(2)]
        until(lambda: len(directory._server._calls._taken) == 2)
        for _ in range(3):
            assert ask(directory.address, "gates")["gates"] == []
        del held
