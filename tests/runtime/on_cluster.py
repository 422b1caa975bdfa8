"""Queries on a cluster of two workers with an executor each: python on_cluster.py FOLDER [ROUNDS].

First a plain query, then one whose functions come to grief: at chosen points they stop until this process has
killed what it should, an executor or a whole worker, or they kill their own process, or wait for a
speculative copy of themselves. Faults of "mapping" come while tuples are read, others while channels run.
"""

import datetime as dt
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps
from oracle import fetched
from penstock_lab.bench.cluster import standalone_cluster

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
# Those of each epoch; a worker that is lost does not come back, so it is the last.
FAULTS = (
    ("process",),
    ("other executor",),
    ("own executor",),
    ("straggler", "mapping process"),
    ("mapping own executor",),
    ("reader's executor",),
)
LAST = "worker"
SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.task.maxFailures": "8",
}


def results(session, checkpoint):
    """The rows of a windowed query on three channels, and how many executors there are."""
    rows = [
        [
            {"time": START + dt.timedelta(minutes=minute, seconds=n), "key": n % 7, "value": minute}
            for n in range(60)
        ]
        for minute in range(3)
    ]
    stream = ps.stream("r", "time timestamp, key bigint, value bigint", "time", source=ps.rows(rows))
    windows = stream.group_by("key").window("2 minutes", slide="1 minute")
    sink = ps.memory()
    query = windows.agg(n=ps.count(), total=ps.sum("value"))
    query.start(sink, checkpoint=checkpoint, session=session, channels=3).wait()
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    return {"executors": executors, "rows": sorted(map(str, sink.table().to_pylist()))}


def executor():
    """The process of the executor that this Python worker belongs to: the parent of its daemon."""
    return parent(os.getppid())


def parent(process):
    stat = Path(f"/proc/{process}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def strike(folder, fault):
    """Come to grief here if nobody has before; without a folder nothing happens."""
    if not folder or not fault:
        return
    reached, again = Path(folder, f"{fault}.reached"), Path(folder, f"{fault}.again")
    try:
        os.close(os.open(reached, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        again.touch()
        return
    kind = kind_of(fault)
    if kind == "process":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "straggler":
        wait_for(again)
        return
    hidden, reader = Path(folder, f"{fault}.hidden"), Path(folder, f"{fault}.reader")
    hidden.write_text(reader.read_text() if kind == "reader's executor" else str(executor()))
    hidden.rename(Path(folder, f"{fault}.asked"))
    wait_for(Path(folder, f"{fault}.done"))


def kind_of(fault):
    return fault.partition(" in ")[0].removeprefix("mapping ")


def wait_for(path):
    while not path.exists():
        time.sleep(0.01)


class Faulty(ps.Processor):
    """Counts the rows of each key, at its peril."""

    def __init__(self, folder):
        self.folder = folder

    def step(self, block):
        for fault in pc.unique(block.rows["fault"]).to_pylist():
            if fault and not fault.startswith("mapping"):
                strike(self.folder, fault)
        before = block.state["n"].fill_null(0).to_numpy()
        n = np.arange(len(block.groups)) - block.first[block.groups] + 1 + before[block.groups]
        table = pa.table({"n": n})
        return ps.Outcome(table, np.arange(len(n)), table.take(pa.array(block.last)))


def mapped(folder):
    """A function that raises for some rows."""

    def parsed(batch):
        for fault in pc.unique(batch["fault"]).to_pylist():
            if fault.startswith("mapping"):
                strike(folder, fault)
            elif folder and fault.startswith("reader"):
                # The channels wait in the files of this executor's disk.
                Path(folder, f"{fault}.reader").write_text(str(executor()))
        return pa.record_batch(
            [batch["key"], batch["fault"], pc.cast(batch["text"], pa.int64())], ["key", "fault", "value"]
        )

    return parsed


def faults(rounds):
    """The faults of all epochs."""
    return [
        *([f"{each} in {number}" for each in epoch] for number in range(rounds) for epoch in FAULTS),
        [LAST],
    ]


def disturbed(session, folder, rounds, *, quiet):
    """Results and rejects of a query with two stages and three channels; `quiet`: without any fault."""
    rows = [
        [
            {
                "time": START + dt.timedelta(minutes=minute, seconds=n),
                "key": n % 7,
                "fault": struck[n] if n < len(struck) else "",
                "text": "x" if n == 17 else str(minute),
            }
            for n in range(60)
        ]
        for minute, struck in enumerate(faults(rounds))
    ]
    points = "" if quiet else str(folder / "points")
    stream = ps.stream(
        "r", "time timestamp, key bigint, fault string, text string", "time", source=ps.rows(rows)
    )
    parsed = stream.map(mapped(points), "key bigint, fault string, value bigint")
    counted = parsed.group_by("key").process(Faulty(points), state="n bigint", result="n bigint")
    windows = counted.group_by("key").window("2 minutes", slide="1 minute").agg(n=ps.sum("n"), c=ps.count())
    run = ps.outputs(counted, windows).start(
        ps.parquet(folder / "counted"),
        ps.parquet(folder / "windows"),
        checkpoint=folder / "state",
        session=session,
        channels=6,
        on_error="set aside",
    )
    run.wait()
    parts = {"counted": "*", "windows": "*", "state/rejects": "reason, record"}
    return {
        part: [
            str(row)
            for row in fetched(
                f"SELECT {columns} FROM read_parquet({ps.delivered(folder / part)}) ORDER BY ALL"
            )
        ]
        for part, columns in parts.items()
    }


def children(process, name):
    """The processes that a process has started, with a name in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if parent(path.name) == process and name in (path / "cmdline").read_text():
                found.append(int(path.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def workers():
    return children(os.getpid(), "deploy.worker.Worker")


def executors():
    return [each for worker in workers() for each in children(worker, "CoarseGrainedExecutorBackend")]


def avenge(points, over):
    """Kill what functions ask for, each thing once."""
    while not over.wait(0.01):
        for asked in points.glob("*.asked"):
            fault, own = asked.name.partition(".")[0], int(asked.read_text())
            kind = kind_of(fault)
            if kind == "other executor":
                victims = [each for each in executors() if each != own]
            elif kind in {"own executor", "reader's executor"}:
                victims = [own]
            else:
                worker = parent(own)
                victims = [worker, *children(worker, "CoarseGrainedExecutorBackend")]
            for each in victims:
                os.kill(each, signal.SIGKILL)
            asked.rename(points / f"{fault}.done")


class Replays(logging.Handler):
    """Counts the epochs that were run again, since channels took rows of different attempts of a task."""

    count = 0

    def emit(self, record):
        self.count += "is run again" in record.getMessage()


def attempts(session):
    """How many stages of Spark were tried again."""
    store = session.sparkContext._jsc.sc().statusStore()
    gateway = session.sparkContext._gateway
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    stages = store.stageList(None, False, False, quantiles, None)
    return sum(stages.apply(place).attemptId() > 0 for place in range(stages.size()))


if __name__ == "__main__":
    home, rounds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with standalone_cluster(2, workers=2, settings=SETTINGS) as session:
        plain = results(session, home / "plain")
        points, over = home / "points", threading.Event()
        points.mkdir()
        replays = Replays()
        logging.getLogger("penstock.run").addHandler(replays)
        avenger = threading.Thread(target=avenge, args=(points, over))
        avenger.start()
        began = time.monotonic()
        try:
            found = disturbed(session, home, rounds, quiet=False)
        finally:
            over.set()
            avenger.join()
        seen = sorted(each.name for each in points.iterdir())
        told = {"seen": seen, "attempts": attempts(session), "replays": replays.count}
        told |= {"seconds": time.monotonic() - began}
        print(json.dumps({"plain": plain, "disturbed": found, **told}))  # noqa: T201 -- the test reads it
