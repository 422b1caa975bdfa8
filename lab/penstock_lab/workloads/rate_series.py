"""Rates that somebody measured: series of the Numenta Anomaly Benchmark, and requests of a NASA web server.

The files are read where they lie. A series is played as work second by second: its 99.5th percentile is a
given number of nodes, each sample lasts some seconds, and tuples come at random around the line between two
samples.
"""

import csv
import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock_lab.errors import BadSimulation

__all__ = ["nab_series", "nasa_series", "played"]

Floats = NDArray[np.float64]


def nab_series(path: Path) -> dict[str, Floats]:
    """The values of every series in a tar file of CSV files with the columns timestamp and value."""
    found = {}
    with tarfile.open(path) as files:
        for member in sorted(files.getmembers(), key=lambda each: each.name):
            data = files.extractfile(member) if member.name.endswith(".csv") else None
            if data is not None:
                rows = csv.DictReader(io.TextIOWrapper(data, "utf-8"))
                found[Path(member.name).stem] = np.array([float(each["value"]) for each in rows])
    if not found:
        raise BadSimulation(f"{path} holds no CSV file; give a tar file with columns timestamp and value")
    return found


def nasa_series(path: Path, day: int) -> Floats:
    """Requests in each minute of a day, from a file with the count of each second."""
    first = 86_400 * day
    with gzip.open(path, "rt") as lines:
        counts = [int(line) for number, line in enumerate(lines) if first <= number < first + 86_400]
    if len(counts) < 86_400:
        raise BadSimulation(f"{path} has no whole day {day}; give a lower number")
    return np.asarray(np.array(counts, np.float64).reshape(-1, 60).sum(axis=1), np.float64)


def played(values: Floats, nodes: float, seconds: int, rng: np.random.Generator) -> Floats:
    """Work of each second in node seconds.

    >>> work = played(np.array([1.0, 2.0, 2.0]), 10.0, 100, np.random.default_rng(1))
    >>> len(work), bool(9 < work[150:].mean() < 11)
    (300, True)
    """
    high = float(np.quantile(values, 0.995))
    places = np.arange(len(values) * seconds) / seconds
    line = np.interp(places, np.arange(len(values)), np.maximum(values, 0.0) / max(high, 1e-300) * nodes)
    return rng.poisson(line * 1_000) / 1_000
