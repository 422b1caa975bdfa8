import json

import pytest
from typer.testing import CliRunner

from ingest.held import act, numbers, whole
from penstock.cli.app import app
from penstock.errors import Refused
from penstock.ingest import Client, Directory, Gate, Limits
from penstock.ingest.gate.events import IntakeLimited
from penstock.ingest.gate.process import Heartbeat


def test_a_gate_with_a_rate_makes_clients_wait_and_takes_every_row_in_the_end(tmp_path):
    limits = Limits(rows_per_second=500.0)
    with (
        Gate("127.0.0.1:0", tmp_path, limits=limits) as gate,
        Client(gate.address, "r/a", "n bigint", batch_rows=50) as client,
    ):
        client.push(numbers(0, 300))
        client.flush(120)
        assert whole([gate.address], "r") == {"r/a": list(range(300))}
        assert gate.state.counts["waits"] > 0


def test_a_gate_takes_no_more_than_its_controller_says_and_tells_clients_why(tmp_path, caplog):
    with (
        Gate("127.0.0.1:0", tmp_path) as gate,
        Client(gate.address, "r/a", "n bigint", batch_rows=50) as client,
    ):
        gate.shell.control(IntakeLimited(400.0, "a run over r takes 400 rows/s"))
        with caplog.at_level("DEBUG", logger="penstock.client"):
            client.push(numbers(0, 300))
            client.flush(120)
        assert gate.state.counts["waits"] > 0
        gate.shell.control(IntakeLimited())
        waits = gate.state.counts["waits"]
        client.push(numbers(300, 300))
        client.flush(120)
        assert gate.state.counts["waits"] == waits
        assert whole([gate.address], "r") == {"r/a": list(range(600))}


def test_a_controller_that_is_gone_limits_a_gate_no_longer(tmp_path):
    limit = IntakeLimited(1.0, "a run over r takes 1 row/s")
    with (
        Gate("127.0.0.1:0", tmp_path) as gate,
        Client(gate.address, "r/a", "n bigint", batch_rows=50) as client,
    ):
        with Directory("127.0.0.1:0") as directory:
            heartbeat = Heartbeat(directory.address, gate, lasts=0.5)
        heartbeat._limited(limit)
        client.push(numbers(0, 300))
        client.flush(120)
        heartbeat.leave()


def test_metadata_are_declared_to_a_gate_checked_listed_and_kept(tmp_path):
    with Gate("127.0.0.1:0", tmp_path) as gate:
        with Client(gate.address, "r/a", "n bigint", metadata={"max_rate": 5}) as client:
            client.push(numbers(0, 3))
            client.flush(120)
        act(gate.address, "declare", stream="r/a", metadata={"max_rate": 9, "transition": "jump"})
        with pytest.raises(Refused, match="did you mean 'max_rate'"):
            act(gate.address, "declare", stream="r/a", metadata={"maxrate": 9})
        found = CliRunner().invoke(app, ["streams", gate.address, "--json"])
        (listed,) = json.loads(found.stdout)["streams"]
        assert (listed["metadata"], listed["next"]) == ({"max_rate": 9, "transition": "jump"}, 3)
    with Gate("127.0.0.1:0", tmp_path) as again:
        assert act(again.address, "status")["streams"]["r/a"]["metadata"]["max_rate"] == 9
