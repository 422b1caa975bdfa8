"""A live run on a cluster of up to two executors, under a load that this process writes as files.

At first every row takes a while, until a second executor is there; then rows come now and then, until it is
gone. Prints the numbers of executors, the changes, and what the windows hold next to what was written.
"""

import datetime as dt
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from penstock.runtime.spark.executors import Executors
from penstock_lab.bench.cluster import standalone_cluster

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SCALING = {"policy": "incremental", "high": 0.35, "low": 0.2, "tick": 0.5}
PATIENCE_S = 240.0


class Writer:
    """Writes a file of rows, each a second after the one before it; remembers how many each window has."""

    def __init__(self, folder):
        self.folder, self.rows, self.windows = folder, 0, Counter()

    def write(self, rows, millis):
        """So many rows that take so many milliseconds each."""
        times = [START + dt.timedelta(seconds=self.rows + number) for number in range(rows)]
        for each in times:
            self.windows[each.replace(second=0).isoformat()] += 1
        table = pa.table({"time": pa.array(times, pa.timestamp("us", "UTC")), "millis": [millis] * rows})
        hidden = self.folder / f".{self.rows}"
        pq.write_table(table, hidden)
        hidden.rename(self.folder / f"{self.rows:06}.parquet")
        self.rows += rows


def takes_time(rows):
    """Occupy the executor for as long as the rows say."""
    time.sleep(sum(rows["millis"].to_pylist()) / 1000)
    return rows


def until(done, write, pause):
    """Write again and again until it is done."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > deadline:
            sys.exit(f"not done after {PATIENCE_S} s")
        write()
        time.sleep(pause)


def results(sink):
    """The windows that came, with their rows."""
    found = sink.table().to_pylist()
    return {each["window_start"].astimezone(dt.UTC).isoformat(): each["n"] for each in found}


def main():
    """Run it."""
    with tempfile.TemporaryDirectory() as scratch, standalone_cluster(2) as session:
        folder = Path(scratch, "in")
        folder.mkdir()
        writer, sink, executors = Writer(folder), ps.memory(), Executors(session.sparkContext)
        executors.request(1)
        until(lambda: executors.count() == 1, lambda: None, 0.1)
        counts = [executors.count()]
        stream = ps.stream(
            "calls", "time timestamp, millis bigint", "time", source=ps.files(folder, live=True)
        )
        windows = stream.map(takes_time, "millis bigint").window("1 minute").agg(n=ps.count())
        seen = []
        run = windows.start(
            sink,
            checkpoint=Path(scratch, "state"),
            session=session,
            executors=(1, 2),
            scaling=SCALING,
            trigger="1 second",
            policy=lambda epoch: seen.append(epoch) or (),
        )
        with run:
            until(lambda: executors.count() == 2, lambda: writer.write(20, 50), 0.5)
            counts.append(executors.count())
            until(lambda: executors.count() == 1, lambda: writer.write(1, 0), 0.5)
            counts.append(executors.count())
            closed = dict(writer.windows)
            # A row of a later window closes all before it, in an epoch after that of the last decision.
            writer.rows += 120
            writer.write(1, 0)
            until(lambda: closed.items() <= results(sink).items(), lambda: None, 0.2)
            changes = [(each.before, each.after) for each in run.decisions]
        found = {
            "executors": counts,
            "changes": changes,
            "rows": writer.rows,
            "operators": [each.name.split(":")[0] for each in seen[-1].operators],
            "results": {name: results(sink)[name] for name in closed},
            "expected": closed,
        }
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
