"""The stream of reports that runs under test read from files, and the files."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps


def write_input(folder: Path, epochs: int, seed: int) -> None:
    """Files of 400 tuples, 2 s of event time each, some of them late by far, some without a time."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for number in range(epochs):
        seconds = number * 2 + rng.random(400) * 2 - rng.random(400) * 2
        seconds[rng.random(400) < 0.03] -= 60
        micros = (seconds * 1e6).astype(np.int64)
        table = pa.table(
            {
                "time": pa.array(micros, pa.timestamp("us", tz="UTC"), mask=rng.random(400) < 0.01),
                "area": pa.array([f"area {n}" for n in rng.zipf(1.5, 400) % 50]),
                "speed": rng.integers(0, 1000, 400) / 8,
                "n": rng.integers(0, 10**6, 400),
            }
        )
        path = folder / f"{number:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def reports(folder):
    """One file to an epoch."""
    return ps.stream(
        "reports",
        "time timestamp, area string, speed double, n bigint",
        time="time",
        delay="3 seconds",
        source=ps.files(folder, files_per_epoch=1),
    )
