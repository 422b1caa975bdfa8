"""The stream of `penstock bench rescale`: a row for every key with its payload, then small epochs of them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock.query import MOST_MOVED
from penstock_lab.bench.data import SECOND_US, START_US

__all__ = ["DDL", "KeyedPayloads", "payloads"]

DDL = "time timestamp not null, key bigint not null, value bigint not null, payload string not null"

_PAYLOAD = 100
_STATE_ROW = 3 * 8 + _PAYLOAD  # key, two counters, payload
_KEPT_ROW = 150  # what a row of state takes in a segment, about
_VERSIONS = 10  # epochs whose older versions of keys may still lie in segments, about
_LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8)


@dataclass(frozen=True)
class KeyedPayloads:
    """Files of one epoch each: some that fill the state, `steady` ones, and those of and after the change.

    Each key comes once while the state is filled; later epochs draw theirs evenly. The payload of a key is
    always the same, so that the last and the largest one agree in every engine. There are at least `later`
    epochs after the change.
    """

    state_mb: int
    seed: int
    fill_rows: int = 500_000
    epoch_rows: int = 20_000
    steady: int = 10
    later: int = 0

    @property
    def keys(self) -> int:
        """Keys whose plain values take `state_mb` megabytes."""
        return max(1, self.state_mb * 10**6 // _STATE_ROW)

    @property
    def small(self) -> int:
        """Rows of an epoch that fills nothing: no more than a tenth of the keys."""
        return max(1, min(self.epoch_rows, self.keys // 10))

    @property
    def step(self) -> int:
        """The default bound of a step, in proportion for less than a gigabyte, so that there are steps."""
        return min(MOST_MOVED, self.state_mb * 2**19)

    @property
    def before(self) -> int:
        """Epochs before the change."""
        return -(-self.keys // self.fill_rows) + self.steady

    @property
    def after(self) -> int:
        """Epochs of and after the change: 1.5 times what moving half of the state needs, and steady ones."""
        rows = self.keys + _VERSIONS * self.small
        return max(self.later + 1, -(-rows * _KEPT_ROW * 3 // (4 * self.step)) + self.steady)

    def part(self, number: int, streams: int) -> "KeyedPayloads":
        """One of several streams of the same keys that have as much together."""
        return replace(
            self,
            state_mb=max(1, self.state_mb // streams),
            seed=self.seed + number,
            fill_rows=self.fill_rows // streams,
            epoch_rows=self.epoch_rows // streams,
        )

    def write(self, folder: Path) -> list[Path]:
        """One file for each epoch, in their order."""
        folder.mkdir(parents=True)
        found, row = [], 0
        for number, keys in enumerate(self._epochs()):
            path = folder / f"{number:06d}.parquet"
            pq.write_table(_table(keys, row), path, compression="snappy")
            moment = START_US // SECOND_US + number  # Spark reads files in order of modification time
            os.utime(path, (moment, moment))
            found.append(path)
            row += len(keys)
        return found

    def _epochs(self) -> Iterator[NDArray[np.int64]]:
        rng = np.random.default_rng(self.seed)
        every = rng.permutation(np.arange(self.keys, dtype=np.int64))
        for start in range(0, self.keys, self.fill_rows):
            yield every[start : start + self.fill_rows]
        for _ in range(self.steady + self.after):
            yield rng.integers(0, self.keys, self.small)


def payloads(keys: NDArray[np.int64]) -> pa.StringArray:
    """For each key 100 letters that depend on nothing else and that no store can compress."""
    drawn = np.empty((len(keys), -(-_PAYLOAD // 8)), np.uint64)
    for place in range(drawn.shape[1]):
        mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
            place * 0x632BE59BD9B4E019 % 2**64
        )
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        drawn[:, place] = mixed ^ (mixed >> np.uint64(31))
    letters = _LETTERS[drawn.view(np.uint8)[:, :_PAYLOAD] & 63]
    offsets = np.arange(len(keys) + 1, dtype=np.int32) * _PAYLOAD
    return pa.StringArray.from_buffers(
        len(keys), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(letters))
    )


def _table(keys: NDArray[np.int64], first: int) -> pa.Table:
    schema = pa.schema(
        [
            pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
            pa.field("key", pa.int64(), nullable=False),
            pa.field("value", pa.int64(), nullable=False),
            pa.field("payload", pa.string(), nullable=False),
        ]
    )
    rows = np.arange(first, first + len(keys), dtype=np.int64)
    times = pa.array(START_US + rows, schema.field("time").type)
    return pa.table([times, keys, rows % 1000, payloads(keys)], schema=schema)
