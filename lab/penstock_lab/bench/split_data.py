"""Rows to split: Zipf keys, and event times whose rate bursts as in the experiments ([000] §6.4)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock_lab.workloads import bursty_rate, draw, zipf_shares

__all__ = ["PANE", "SplitData"]

PANE = 1_000_000  # microseconds
_SECONDS = 200
_FILE = 500_000  # rows


@dataclass(frozen=True)
class SplitData:
    """`rows` rows of (time, key, value): 16,384 keys of Zipf(1.0), 200 s with bursts to 5 times the rate."""

    rows: int
    seed: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The rows of every second."""
        rate = bursty_rate(np.random.default_rng(self.seed), _SECONDS)
        ends = np.rint(rate.cumsum() / rate.sum() * self.rows).astype(np.int64)
        sizes: NDArray[np.int64] = np.diff(ends, prepend=0)
        return sizes

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """The part of all rows that key 0, 1, 2 and so on has."""
        return zipf_shares(16_384, 1.0)

    def write(self, folder: Path) -> Path:
        """Parquet files in the order of time; returns the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(self.seed + 1)
        time = np.repeat(np.arange(_SECONDS) * PANE, self.sizes)
        for number, start in enumerate(range(0, self.rows, _FILE)):
            times = time[start : start + _FILE]
            columns = {
                "time": np.sort(times + rng.integers(0, PANE, len(times))),
                "key": draw(rng, self.frequencies, len(times)),
                "value": rng.random(len(times)),
            }
            pq.write_table(pa.table(columns), folder / f"part-{number:04}.parquet")
        return folder
