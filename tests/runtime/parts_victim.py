"""A run whose results leave in parts: parts_victim.py HOME DISORDER PARTS.

One channel waits for a file `go`; a file `had` is there once the sink has so many parts.
"""

import datetime as dt
import json
import math
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import penstock as ps
from penstock.connect import Delivery, EpochId, Sink
from sessions import interpret, quick_session

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
EPOCHS, WINDOWS, KEYS = 3, 12, 16


@dataclass(frozen=True)
class Journal(Sink):
    """A file for each epoch, with a line for each part; it drops epochs that were never committed."""

    folder: Path
    parts: int = 0

    takes_parts = True

    def open(self, context):
        self.folder.mkdir(exist_ok=True)
        last = context.begins.last
        for path in self.folder.glob("*.jsonl"):
            if last is None or path.stem > str(last):
                path.unlink()
        return _Lines(self.folder, self.parts)


@dataclass
class _Lines(Delivery):
    folder: Path
    parts: int
    had: int = 0

    def deliver(self, epoch, results):
        raise AssertionError(f"epoch {epoch} came as a whole: {results}")

    def part(self, epoch: EpochId, rows):
        windows = {int((each - NOON).total_seconds()) // 10 for each in rows["window_start"].to_pylist()}
        with (self.folder / f"{epoch}.jsonl").open("a") as file:
            file.write(json.dumps([*windows, rows["k"].to_pylist()]) + "\n")
        self.had += 1
        if self.had == self.parts:
            (self.folder.parent / "had").touch()


def held(flag, batch):
    """Wait for a file where key 0 is."""
    while 0 in batch["k"].to_pylist() and not Path(flag).exists():
        time.sleep(0.01)
    return batch.select(["k", "n"])


def query(home):
    """Windows of ten seconds, all of them with all keys."""
    rows = [
        [
            {"time": NOON + dt.timedelta(seconds=10 * (epoch * WINDOWS + window)), "k": key}
            for window in range(WINDOWS)
            for key in range(KEYS)
        ]
        for epoch in range(EPOCHS)
    ]
    stream = ps.stream("t", "time timestamp, k bigint", "time", source=ps.rows(rows))
    counted = stream.group_by("k").window("10 seconds").agg(n=ps.count())
    return counted.map(partial(held, str(home / "go")), "k bigint, n bigint")


def begin(home, disorder, parts=0, session=None):
    """Start the run, or go on with it."""
    return query(home).start(
        Journal(home / "out", parts), home / "state", session=session, channels=2, disorder=disorder
    )


if __name__ == "__main__":
    interpret(quick_session())
    home, disorder, parts = sys.argv[1:]
    begin(Path(home), math.inf if disorder == "inf" else int(disorder), int(parts)).wait()
