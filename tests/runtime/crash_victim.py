"""A run with windows, moves of state, late tuples, rejects, refused results and retention.

crash_victim.py OUTPUT CHECKPOINT [takeover] [delta] [files=FOLDER | dataframe=FOLDER]

Tuples come from memory, from files that workers read, or from a streaming query of Spark's over these files.
"""

import datetime as dt
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import penstock as ps
from sessions import interpret, quick_session

EPOCHS = 3
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SCHEMA = "time timestamp, area string, n bigint"


def rows():
    """A list for each epoch; some tuples are late by far, some have no time."""
    rng = np.random.default_rng(11)
    for epoch in range(EPOCHS):
        seconds = epoch * 4 + rng.random(60) * 4
        seconds[rng.random(60) < 0.1] -= 60
        yield [
            {
                "time": None if rng.random() < 0.05 else START + dt.timedelta(seconds=second),
                "area": f"area {rng.zipf(1.5) % 20}",
                "n": int(rng.integers(0, 1000)),
            }
            for second in seconds
        ]


def write_files(folder):
    """The same tuples, a file for each epoch, in the order of their times."""
    folder.mkdir()
    types = pa.schema([("time", pa.timestamp("us", "UTC")), ("area", pa.string()), ("n", pa.int64())])
    for epoch, each in enumerate(rows()):
        path = folder / f"{epoch}.parquet"
        pq.write_table(pa.Table.from_pylist(each, types), path)
        os.utime(path, (1_700_000_000 + epoch,) * 2)


def source(kind="rows", folder=""):
    """Tuples, one epoch after another."""
    if kind == "files":
        return ps.files(folder, files_per_epoch=1)
    if kind == "dataframe":
        frames = quick_session().readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return ps.dataframe(frames.parquet(folder), bounded=True)
    return ps.rows(list(rows()))


def query(given):
    stream = ps.stream("t", SCHEMA, "time", source=given, delay="1 second")
    windows = stream.group_by("area").window("6 seconds", slide="2 seconds").agg(n=ps.sum("n"), c=ps.count())
    return windows.map(picky, "area string, n bigint, c bigint")


def picky(batch):
    """Refuses the results of some areas."""
    if pc.any(pc.equal(pc.bit_wise_and(batch["n"], 15), 3)).as_py():
        raise ValueError("a number that nobody wants")
    return batch.select(["area", "n", "c"])


def back_and_forth(seen):
    """Two channels and three in turn: some keys of a segment move, the others stay behind a mask."""
    return [ps.Rescale(0, 3 - seen.epoch % 2, "consistent")]


if __name__ == "__main__":
    interpret(quick_session())
    output, checkpoint, *rest = sys.argv[1:]
    found = [each.partition("=")[::2] for each in rest if "=" in each]
    query(source(*found[0]) if found else source()).start(
        ps.delta(output) if "delta" in rest else ps.parquet(output),
        checkpoint=checkpoint,
        channels=2,
        policy=back_and_forth,
        keep_epochs=1,
        takeover="takeover" in rest,
        on_error="set aside",
    ).wait()
