"""Tuples whose rate rises and falls by the wall clock, along a line through given points, as live files.

How many tuples have arrived by an instant follows from the points alone, and tuple i arrives when the count
passes i.
"""

import math
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock_lab.bench.data import SECOND_US

__all__ = ["DDL", "FAN", "RampFiles", "Ramps"]

DDL = "time timestamp, key bigint, copies bigint"
FAN = 5
"""The copies of a tuple where a stage is to get more of them."""
_STEP_S = 0.01
_FILE_S = 0.5


@dataclass(frozen=True)
class Ramps:
    """Rates in tuples a second at seconds after `start_us`; after the last there are no more tuples.

    >>> Ramps(0, ((0, 0), (10, 100), (20, 100))).arrived(10_000_000)
    500
    """

    start_us: int
    points: tuple[tuple[float, float], ...]

    def __reduce__(self) -> tuple[type["Ramps"], tuple[int, tuple[tuple[float, float], ...]]]:
        # Without what is cached, which is a hundred times as large and soon made again.
        return Ramps, (self.start_us, self.points)

    @property
    def seconds(self) -> float:
        """The length of the whole."""
        return self.points[-1][0]

    @property
    def total(self) -> int:
        """All tuples."""
        return int(self._counts[-1])

    def arrived(self, now_us: int) -> int:
        """How many tuples have arrived by an instant."""
        return int(np.interp((now_us - self.start_us) / SECOND_US, self._times, self._counts))

    def arrivals(self, first: int, last: int) -> NDArray[np.int64]:
        """When the tuples from number `first` up to, not including, `last` arrive, in microseconds."""
        number = np.arange(first + 1, last + 1)
        seconds = np.interp(number, self._counts, self._times)
        found: NDArray[np.int64] = self.start_us + np.round(seconds * SECOND_US).astype(np.int64)
        return found

    @cached_property
    def _times(self) -> NDArray[np.float64]:
        return np.arange(0, self.seconds + _STEP_S / 2, _STEP_S)

    @cached_property
    def _counts(self) -> NDArray[np.float64]:
        at, worth = (np.array(each, np.float64) for each in zip(*self.points, strict=True))
        rates = np.interp(self._times, at, worth)
        steps = (rates[1:] + rates[:-1]) / 2 * _STEP_S
        # Interpolation backwards needs counts that grow.
        return np.concatenate([[0.0], np.cumsum(np.maximum(steps, 1e-9))])


class RampFiles:
    """Writes the tuples into a folder as they arrive, a Parquet file every half second; a context manager.

    A tuple has one copy, and from the second `fanned` on five.
    """

    def __init__(self, ramps: Ramps, folder: Path, keys: int, fanned: float = math.inf) -> None:
        self._ramps, self._folder, self._keys, self._fanned = ramps, folder, keys, fanned
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._write, name="ramps", daemon=True)

    def __enter__(self) -> Self:
        self._folder.mkdir()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _write(self) -> None:
        written = 0
        while written < self._ramps.total and not self._done.wait(_FILE_S):
            arrived = self._ramps.arrived(time.time_ns() // 1000)
            if arrived > written:
                self._file(written, arrived)
                written = arrived

    def _file(self, first: int, last: int) -> None:
        arrivals = self._ramps.arrivals(first, last)
        many = (arrivals - self._ramps.start_us) / SECOND_US >= self._fanned
        copies = pa.array(np.where(many, FAN, 1))
        times = pa.array(arrivals).cast(pa.timestamp("us", tz="UTC"))
        keys = pa.array(np.arange(first, last) % self._keys)
        rows = pa.table({"time": times, "key": keys, "copies": copies})
        hidden = self._folder / f".{first}.parquet"
        pq.write_table(rows, hidden)
        hidden.rename(self._folder / f"{first:09}.parquet")
