"""Exactly once from client to result, whatever is killed on the way and wherever streams are redirected."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from ingest.gate_processes import Served
from oracle import fetched
from penstock.errors import PenstockError
from penstock.ingest import Directory
from runtime.test_kill import kill

HERE = Path(__file__).parent
WINDOW_S = 5
KINDS = {
    "JVM": "java",
    "gate": " gate ",
    "client": "gates_pusher",
    "driver": "gates_victim",
    "source": "python_streaming_source_runner",
    "worker": "pyspark.worker",
}


@dataclass(frozen=True)
class Ordeal:
    """So many streams from client processes through gates, for so long, with so many misfortunes."""

    streams: int
    rate: int
    seconds: int
    gates: int
    clients: int
    gate_kills: int
    driver_kills: int
    redirections: int


class Stage:
    """Controller, gates, clients and the run, under one folder."""

    def __init__(self, folder, ordeal, chance):
        self.folder = folder
        self.ordeal = ordeal
        self.chance = chance
        # Streams are spread over all gates, whose memory is measured.
        self.directory = Directory("127.0.0.1:0", folder / "directory", away_seconds=3, control="off")
        names = [folder / f"gate-{number}" for number in range(ordeal.gates)]
        options = ("--controller", self.directory.address, "--segment-mib", "1")
        self.gates = [Served("gate", name, *options) for name in names]
        self.streams = [f"reports/s{number}" for number in range(ordeal.streams)]
        self.driver = None
        self.peaks = {}

    def begin(self, stack):
        stack.enter_context(self.directory)
        for gate in self.gates:
            stack.callback(gate.kill)
            gate.launch()
        stack.callback(lambda: kill(self.driver))
        self.drive()
        for gate in self.gates:
            gate.ready()
        each = self.ordeal.streams // self.ordeal.clients
        self.clients = [self.client(number * each, each) for number in range(self.ordeal.clients)]
        for client in self.clients:
            stack.callback(client.kill)

    def client(self, first, number):
        given = [self.directory.address, first, number, self.ordeal.rate, self.ordeal.seconds]
        given += [self.folder / f"client-{first}.json", self.folder / "go"]
        command = [sys.executable, str(HERE / "gates_pusher.py"), *map(str, given)]
        with (self.folder / "clients.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def drive(self):
        given = [self.directory.address, self.folder / "out", self.folder / "state"]
        with (self.folder / "driver.log").open("ab") as log:
            self.driver = subprocess.Popen(
                [sys.executable, str(HERE / "gates_victim.py"), *map(str, given)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def epochs(self):
        return len(list((self.folder / "state" / "manifests").glob("[0-9]*.json")))

    def kill_gate(self):
        gate = self.chance.choice(self.gates)
        gate.kill()
        time.sleep(self.chance.uniform(0, 1))
        gate.start()

    def kill_driver(self):
        kill(self.driver)
        self.drive()

    def redirect(self):
        some = self.chance.sample(self.streams, max(1, len(self.streams) // 8))
        with suppress(PenstockError):  # the gate may be away
            self.directory.redirect(some, self.chance.choice(self.gates).address)

    def misfortunes(self):
        ordeal = self.ordeal
        found = [self.kill_gate] * ordeal.gate_kills + [self.kill_driver] * ordeal.driver_kills
        found += [self.redirect] * ordeal.redirections
        self.chance.shuffle(found)
        return found

    def measure(self, ended):
        """Peak memory of the processes of each kind, in MB, once a second."""
        while not ended.wait(1):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error, StopIteration):
                    words = " ".join(process.cmdline())
                    kind = next(kind for kind, word in KINDS.items() if word in words)
                    self.peaks[kind] = max(self.peaks.get(kind, 0), process.memory_info().rss >> 20)


def results(folder):
    """The rows of every stream in the order of delivery, and its windows."""
    rows = fetched(
        f"""SELECT stream, list(n ORDER BY filename, file_row_number)
            FROM read_parquet('{folder}/out/rows/*.parquet', filename=true, file_row_number=true)
            GROUP BY stream"""
    )
    windows = fetched(
        f"""SELECT stream, epoch_us(window_start), rows, low, high, total
            FROM read_parquet('{folder}/out/windows/*.parquet')"""
    )
    return dict(rows), windows


def delivered(folder):
    if not list((folder / "out" / "rows").glob("*.parquet")):
        return 0
    try:
        return fetched(f"SELECT count(*) FROM read_parquet('{folder}/out/rows/*.parquet')")[0][0]
    except Exception:  # noqa: BLE001 -- a killed epoch takes its files back while they are read
        return 0


def survive(folder, ordeal, patience):
    """Live through all misfortunes, then wait until every row is there; what was acknowledged, and peaks."""
    seed = int(os.environ.get("PENSTOCK_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}, {ordeal}")  # noqa: T201
    stage = Stage(folder, ordeal, random.Random(seed))
    ended = threading.Event()
    with ExitStack() as stack:
        stage.begin(stack)
        stack.callback(ended.set)
        threading.Thread(target=stage.measure, args=(ended,), daemon=True).start()
        wait_until(lambda: delivered(folder) == ordeal.streams, patience, stage)
        (folder / "go").touch()
        began = time.monotonic()
        for place, misfortune in enumerate(turns := stage.misfortunes()):
            at = began + (place + stage.chance.random()) * ordeal.seconds / len(turns)
            time.sleep(max(0.0, at - time.monotonic()))
            misfortune()
        assert [client.wait(patience) for client in stage.clients] == [0] * ordeal.clients, log_of(folder)
        acknowledged = [json.loads(each.read_text()) for each in folder.glob("client-*.json")]
        total = sum(len(each["streams"]) * each["rows"] for each in acknowledged)
        wait_until(lambda: delivered(folder) >= total, patience, stage)
        stage.driver.terminate()
        stage.driver.wait(patience)
    return {name: each["rows"] for each in acknowledged for name in each["streams"]}, stage.peaks


def wait_until(there, patience, stage):
    until = time.monotonic() + patience
    while not there():
        assert stage.driver.poll() is None, log_of(stage.folder)
        assert time.monotonic() < until, log_of(stage.folder)
        time.sleep(0.5)


def log_of(folder):
    return "\n".join(path.read_text()[-3000:] for path in folder.glob("*.log"))


def check(folder, ordeal, patience):
    acknowledged, peaks = survive(folder, ordeal, patience)
    rows, windows = results(folder)
    assert {name: len(each) for name, each in rows.items()} == acknowledged, log_of(folder)
    assert all(each == list(range(acknowledged[name])) for name, each in rows.items())
    assert not list((folder / "state" / "late").rglob("*.parquet"))
    per_window = WINDOW_S * ordeal.rate
    exact = {(name, start): per_window * (start // 1_000_000 // WINDOW_S) for name, start, *_ in windows}
    assert len(exact) == len(windows)
    for name, start, *found in windows:
        low = exact[name, start]
        assert found == [per_window, low, low + per_window - 1, sum(range(low, low + per_window))], (
            name,
            start,
        )
    closed = int(ordeal.seconds) // WINDOW_S - 1
    assert len(windows) >= closed * ordeal.streams
    return peaks


def test_every_acknowledged_row_is_delivered_once_and_in_order(tmp_path):
    ordeal = Ordeal(
        streams=24, rate=50, seconds=8, gates=2, clients=1, gate_kills=2, driver_kills=1, redirections=6
    )
    check(tmp_path, ordeal, patience=600)


@pytest.mark.soak
def test_thousands_of_streams_survive_everything(tmp_path):
    streams = int(os.environ.get("PENSTOCK_STREAMS", "2000"))
    seconds = int(os.environ.get("PENSTOCK_SECONDS", "300"))
    ordeal = Ordeal(
        streams=streams,
        rate=int(os.environ.get("PENSTOCK_RATE", "5")),
        seconds=seconds,
        gates=4,
        clients=2,
        gate_kills=max(2, seconds // 15),
        driver_kills=max(1, seconds // 75),
        redirections=max(5, seconds // 2),
    )
    peaks = check(tmp_path, ordeal, patience=900)
    print("most memory of one process, MB:", peaks)  # noqa: T201
    # A gate may hold 256 MB of rows that are not durable yet, beside itself and its index.
    assert peaks["gate"] < 600
    assert peaks["client"] < 600
