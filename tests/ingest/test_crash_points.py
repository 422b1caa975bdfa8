"""A gate or a controller killed at each of its crash points: every acknowledged row is there once, in order.

A scenario is recorded to list the points that it passes, then run again for each point: the process dies
there, starts again without dying, the client goes on, and everything is read.
"""

import json
import random
import signal
import sys
import time
from collections import Counter

import pyarrow as pa
import pytest
from pyarrow import flight

from ingest.gate_processes import Served
from penstock.durable import Purpose
from penstock.errors import PenstockError
from penstock.ingest import Client, Connection
from raw_push import SCHEMA, RawPush, ask, numbers, ranges, rows

OF_GATES = {each for each in Purpose if each.name.startswith("GATE_")} | {Purpose.CATALOGUE}
STREAM, READER = "reports/1", "traffic"
BATCH = 12_000
"""Rows of about 0.6 MB, so that two fill a log file of 1 MiB."""


class Mortal(Served):
    """A server that may die at a crash point, also while it starts."""

    deaths = 0

    def __enter__(self):
        return self

    def live(self, monkeypatch, **environment):
        """Start, with these variables in the environment of this life only."""
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            self.launch()
        if not self._process.stdout.readline():
            self.again(monkeypatch)

    def again(self, monkeypatch):
        """Start once more if the server has died at its point."""
        if self._process is None or self._process.poll() is None:
            return
        assert self._process.returncode == -signal.SIGKILL
        self._process.stdout.close()
        self._process, self.deaths = None, self.deaths + 1
        self.live(monkeypatch)

    def until_done(self, monkeypatch, work):
        """Do something that fails while the server is away, until it succeeds."""
        end = time.monotonic() + 120
        while True:
            self.again(monkeypatch)
            try:
                return work()
            except (PenstockError, flight.FlightError, pa.ArrowException, OSError, AssertionError):
                assert time.monotonic() < end
                time.sleep(0.05)

    def stop(self, monkeypatch):
        """End as an operator ends it; if it dies instead, it is started and ended again."""
        while True:
            self._process.send_signal(signal.SIGTERM)
            if self._process.wait(120) == 0:
                self._process.stdout.close()
                self._process = None
                return
            self.again(monkeypatch)


def declare_often(address):
    """So many declarations that the catalogue is written anew."""
    with RawPush(address) as push:
        for number in range(800):
            declared = {"max_rate": number, "min_rate": 0, "expected_rate": 0}
            push.send("reports/quiet", 0, rows(0, 0), connect=True, declare=declared)
        push.wait_for("reports/quiet", 0)


def gate_scenario(folder, monkeypatch, **environment):
    """Push, rotate, commit, delete, compact and stop; the number of deaths."""
    with Mortal("gate", folder, "--segment-mib", "1") as gate:
        gate.live(monkeypatch)
        with Connection(gate.address) as connection:
            client = Client(connection, STREAM, SCHEMA)
            total = 0

            def push():
                nonlocal total
                client.push(rows(total, BATCH), timeout=120)
                total += BATCH
                gate.until_done(monkeypatch, lambda: client.flush(1))

            push()
            gate.kill()
            gate.live(monkeypatch, **environment)
            gate.until_done(monkeypatch, lambda: declare_often(gate.address))
            for number in range(6):
                push()
                if number % 2:
                    upto = {STREAM: total - BATCH, "reports/quiet": 0}
                    gate.until_done(
                        monkeypatch,
                        lambda upto=upto: ask(
                            gate.address, "committed", inlet="reports", reader=READER, upto=upto
                        ),
                    )
            gate.until_done(monkeypatch, lambda: client.close(5))
        gate.stop(monkeypatch)
        gate.live(monkeypatch)
        ((low, high),) = ranges(gate.address)[STREAM]
        assert low <= total - BATCH, "what was committed last"
        assert high == total
        assert numbers(gate.address, STREAM, low, high) == list(range(low, high))
        return gate.deaths


def passed(record):
    """How often each point was passed."""
    lines = map(json.loads, (record / "operations").read_text().splitlines())
    return Counter(f"{each['step']}/{each['operation']}" for each in lines)


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """Every crash point of the scenario, and how often it is passed."""
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert gate_scenario(folder / "gate", monkeypatch, PENSTOCK_RECORD=str(folder / "record")) == 0
    return passed(folder / "record")


def test_every_step_of_a_gate_is_a_crash_point_of_the_scenario(points):
    reached = {point.split("/")[0] for point in points}
    assert reached == OF_GATES, f"no scenario reaches {OF_GATES - reached}"
    assert {"catalogue/rename", "gate retention/delete", "gate index/write"} <= points.keys()


def die_at(folder, monkeypatch, point, times):
    """Die at one time of a point, the first, the last or one between."""
    sys.stderr.write(f"{point}:{times}\n")
    deaths = gate_scenario(folder, monkeypatch, PENSTOCK_DIE_AT=f"{point}:{times}")
    # Groups come together differently each time, so a late one may not come.
    assert deaths == 1 or times > 1


def test_a_gate_that_dies_at_a_point_loses_nothing(points, tmp_path, monkeypatch):
    seed = random.SystemRandom().randint(0, 10**6)
    sys.stderr.write(f"seed {seed}\n")
    die_at(tmp_path, monkeypatch, random.Random(seed).choice(sorted(points)), 1)


@pytest.mark.soak
def test_a_gate_that_dies_at_any_point_loses_nothing(points, tmp_path, monkeypatch):
    for number, (point, count) in enumerate(sorted(points.items())):
        for times in sorted({1, count // 2, max(count - 1, 1)} - {0}):
            die_at(tmp_path / f"{number}-{times}", monkeypatch, point, times)


# ---- the controller ------------------------------------------------------------------------------------

GATES = ["127.0.0.1:1", "127.0.0.1:2"]


def controller_scenario(folder, monkeypatch, **environment):
    """Ask where streams belong; every answer still holds after a death."""
    with Mortal("controller", folder) as controller:
        controller.live(monkeypatch, **environment)

        def asked(action, **body):
            return controller.until_done(monkeypatch, lambda: ask(controller.address, action, **body))

        answers = {}
        for number in range(4):
            for gate in GATES:
                asked("register", gate=gate, draining=False)
            streams = [{"stream": f"reports/{number}-{each}", "metadata": None} for each in range(3)]
            answers |= asked("where", streams=streams)["gates"]
            wanted = [{"stream": each, "metadata": None} for each in answers]
            for gate in GATES:
                asked("register", gate=gate, draining=False)
            assert asked("where", streams=wanted)["gates"] == answers
        return controller.deaths


@pytest.mark.parametrize("times", [1, 4])
def test_a_controller_that_dies_at_a_point_forgets_no_answer(tmp_path, monkeypatch, times):
    point = f"{Purpose.CONTROLLER}/reach:{times}"
    assert controller_scenario(tmp_path, monkeypatch, PENSTOCK_DIE_AT=point) == 1


@pytest.mark.soak
@pytest.mark.parametrize("times", range(1, 12))
def test_a_controller_that_dies_at_any_point_forgets_no_answer(tmp_path, monkeypatch, times):
    point = f"{Purpose.CONTROLLER}/reach:{times}"
    assert controller_scenario(tmp_path, monkeypatch, PENSTOCK_DIE_AT=point) == 1
