"""Rates of streams from files: measured series, cut into pieces and scaled to the load of the six workloads.

Nothing is declared of such streams, and no parameter of a strategy was chosen on them.
"""

import csv
import gzip
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock_lab.errors import BadData
from penstock_lab.workloads.rates import HIGH, LOW, Rates

__all__ = ["read_series", "streams_of"]

Floats = NDArray[np.float64]

# Values a second are summed over as many to make a period; other series have a value a period already.
_SECONDS = 60
# A stream alone must not exceed a gate of 1,000 rows/s.
_MOST = 900.0


def read_series(path: Path) -> Mapping[str, Floats]:
    """The series of a file by name.

    A `.csv` file has a header and the value in its last column, one row a period. A `.txt` file has one count
    a line, one line a second. Either may be compressed (`.gz`). A `.tar.gz` file holds several `.csv` files.
    """
    try:
        if path.name.endswith((".tar.gz", ".tgz")):
            return _members(path)
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            if ".txt" in path.suffixes:
                counts = np.loadtxt(lines, dtype=np.float64)
                whole = len(counts) // _SECONDS * _SECONDS
                return {path.name: counts[:whole].reshape(-1, _SECONDS).sum(axis=1)}
            return {path.name: _column(lines)}
    except (OSError, ValueError, IndexError, tarfile.TarError) as error:
        raise BadData(
            f"{path} holds no rates: {error}; give .csv files with the rate in the last column, a .tar.gz of "
            "them, or a .txt file with one count a line"
        ) from error


def _members(path: Path) -> Mapping[str, Floats]:
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".csv") else None
            if file is not None:
                found[member.name] = _column(io.TextIOWrapper(file))
    return found


def _column(lines: io.TextIOBase) -> Floats:
    rows = csv.reader(lines)
    next(rows)
    return np.array([float(row[-1]) for row in rows])


def streams_of(
    series: Sequence[Floats], rng: np.random.Generator, periods: int, *, streams: int = 80
) -> Rates:
    """Streams whose rates are pieces of the series, each scaled to a mean like those of the six workloads.

    Pieces are drawn at random; one without any value above 0 is drawn again. A peak that would exceed a gate
    is cut.
    """
    long = [each for each in series if len(each) >= periods]
    if not long:
        raise BadData(
            f"{len(series)} series, the longest of {max(map(len, series), default=0)} periods; give at "
            f"least one of {periods}"
        )
    rows = np.empty((periods, streams))
    for stream in range(streams):
        piece = np.zeros(periods)
        while piece.max() <= 0:
            chosen = long[int(rng.integers(len(long)))]
            start = int(rng.integers(len(chosen) - periods + 1))
            piece = np.maximum(np.nan_to_num(chosen[start : start + periods]), 0.0)
        rows[:, stream] = np.minimum(piece * (rng.uniform(LOW[0], HIGH[1]) / piece.mean()), _MOST)
    return Rates("series", rows, {})
