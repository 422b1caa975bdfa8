"""A tenant beside one that sends ten times its share, at a real gate that takes so many rows a second.

It measures waiting times: run it on a machine that does nothing else.
"""

import os
import signal
import statistics
import subprocess
import sys
import time

import pytest

from ingest.gate_processes import COMMAND
from ingest.held import numbers
from ingest.test_tokens import entry
from penstock.ingest import Client, Connection
from penstock.ingest.security.tokens import new_token
from raw_push import GateProcess

pytestmark = pytest.mark.soak
RATE, BATCH, PAUSE_S, SECONDS, TURNS = 20_000, 50, 0.01, 8.0, 5


def waited(client):
    """The 99th percentile of the seconds from push to acknowledgement, at half of its share."""
    found, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        began = time.monotonic()
        client.push(numbers(client.sequence, BATCH))
        client.flush(120)
        found.append(time.monotonic() - began)
        time.sleep(max(PAUSE_S - found[-1], 0.0))
    return statistics.quantiles(found, n=100)[98]


class Greedy:
    """`penstock push` with a token of its own: ten times the share of two tenants, until it is ended."""

    def __init__(self, address, token):
        command = [sys.executable, "-c", COMMAND, "push", "--city", "--to", address, "--streams", "40"]
        self.process = subprocess.Popen(
            [*command, "--rate", str(5 * RATE), "--seconds", "600"],
            env={**os.environ, "PENSTOCK_TOKEN": token},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})

    def stopped(self, number):
        self.process.send_signal(number)
        time.sleep(1.0)


def test_a_tenant_at_ten_times_its_share_raises_the_waits_of_another_by_a_fifth_at_most(tmp_path):
    tokens = {name: new_token() for name in ("modest", "greedy")}
    file = tmp_path / "tokens.toml"
    file.write_text("".join(entry(name, token, 'push = ["*"]') for name, token in tokens.items()))
    options = ["--tokens", str(file), "--rows-per-second", str(RATE)]
    with GateProcess(tmp_path / "gate", *options) as gate:
        greedy = Greedy(gate.address, tokens["greedy"])
        with Connection(gate.address, token=tokens["modest"]) as connection:
            client = Client(connection, "modest/1", "n bigint")
            client.push(numbers(0, BATCH))
            client.flush(120)
            alone, beside = [], []
            time.sleep(5.0)
            for _ in range(TURNS):
                greedy.stopped(signal.SIGSTOP)
                alone.append(waited(client))
                greedy.stopped(signal.SIGCONT)
                beside.append(waited(client))
            client.close(120)
        assert greedy.process.poll() is None
        greedy.process.kill()
        greedy.process.wait(120)
    shown = [", ".join(f"{1000 * each:.1f}" for each in some) for some in (alone, beside)]
    sys.stdout.write(f"p99 in ms alone {shown[0]}; beside {shown[1]}\n")
    assert statistics.median(beside) <= 1.2 * statistics.median(alone)
