"""Keys that come and go: a Parquet file for each epoch, with hot keys that are exchanged for others."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock_lab.bench.data import SECOND_US, START_US
from penstock_lab.workloads import draw, zipf_shares

__all__ = ["DDL", "HotSets", "write_epochs"]

DDL = "time timestamp, key bigint, value bigint"
_SECONDS = 10  # of event time in an epoch
_NAMES = 2**62


@dataclass(frozen=True)
class HotSets:
    """So many rows in each epoch, whose keys are drawn by Zipf, uniformly if the exponent `zipf` is 0.

    Every `epochs` epochs the hot set is exchanged, so that there are `sets` of them. The seed decides on the
    draws and on the names of the keys, and so on the channels that hot keys meet in.
    """

    rows: int
    epochs: int
    sets: int = 1
    zipf: float = 0.0
    keys: int = 100_000

    def drawn(self, seed: int, side: int = 0) -> Iterator[NDArray[np.int64]]:
        """The keys of each epoch; the sides of a join have the same keys, and draws of their own."""
        names = np.random.default_rng(seed).integers(0, _NAMES, self.keys)
        rng = np.random.default_rng((seed, side))
        shares = zipf_shares(self.keys, self.zipf)
        for epoch in range(self.epochs * self.sets):
            # Ranks that lie far apart, so that no two hot sets have a key in common.
            rotated = draw(rng, shares, self.rows) + (epoch // self.epochs) * (self.keys // self.sets)
            yield names[rotated % self.keys]


def write_epochs(folder: Path, epochs: Iterable[NDArray[np.int64]], seed: int) -> tuple[int, ...]:
    """A file for the keys of each epoch; the rows of its most frequent key are told."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    hottest = []
    for epoch, keys in enumerate(epochs):
        spread = np.sort(rng.integers(0, _SECONDS * SECOND_US, len(keys)))
        table = pa.table(
            {
                "time": pa.array(START_US + epoch * _SECONDS * SECOND_US + spread, pa.timestamp("us", "UTC")),
                "key": keys,
                "value": rng.integers(0, 1000, len(keys)),
            }
        )
        pq.write_table(table, folder / f"{epoch:05}.parquet", compression="zstd", compression_level=1)
        hottest.append(int(np.unique(keys, return_counts=True)[1].max()))
    return tuple(hottest)
