"""Rows with skewed keys, one file an epoch: drawn from a Zipf distribution, or real keys in their order."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from penstock.errors import BadSource
from penstock_lab.bench.data import SECOND_US, START_US
from penstock_lab.workloads import draw, zipf_shares

__all__ = ["SubKeyData"]

KEYS = 100_000
EXPONENT = 1.5
_EPOCH_US = 60 * SECOND_US


@dataclass(frozen=True)
class SubKeyData:
    """`epochs` files of `rows` rows (time, key, value), a minute of event time each.

    `keys` is a file with one key a line, of which the first ones are taken; without it keys follow Zipf 1.5.
    """

    rows: int
    epochs: int
    seed: int
    keys: Path | None = None

    @property
    def name(self) -> str:
        """What the keys are."""
        return f"Zipf {EXPONENT} keys" if self.keys is None else f"keys of {self.keys.name}"

    def write(self, folder: Path) -> Path:
        """The files; returns their folder."""
        folder.mkdir(parents=True)
        rng = np.random.default_rng(self.seed)
        keys = self._keys(rng)
        for epoch in range(self.epochs):
            offsets = np.arange(self.rows, dtype=np.int64) * _EPOCH_US // self.rows
            columns = {
                "time": pa.array(START_US + epoch * _EPOCH_US + offsets, pa.timestamp("us", "UTC")),
                "key": keys.slice(epoch * self.rows, self.rows),
                "value": pa.array(rng.integers(0, 1 << 40, self.rows)),
            }
            pq.write_table(pa.table(columns), folder / f"epoch-{epoch:04}.parquet")
        return folder

    def _keys(self, rng: np.random.Generator) -> pa.Array:
        wanted = self.rows * self.epochs
        if self.keys is None:
            return pa.array(draw(rng, zipf_shares(KEYS, EXPONENT), wanted)).cast(pa.string())
        if not self.keys.is_file():
            raise BadSource(f"no file {self.keys}; give a text file with one key a line, plain or .gz")
        options = pa_csv.ConvertOptions(column_types={"key": pa.string()}, include_columns=["key"])
        table = pa_csv.read_csv(
            self.keys, read_options=pa_csv.ReadOptions(column_names=["key"]), convert_options=options
        )
        if table.num_rows < wanted:
            raise BadSource(
                f"{self.keys} has {table.num_rows:,} keys, {self.epochs} epochs of {self.rows:,} rows need "
                f"{wanted:,}; give fewer --rows or --epochs"
            )
        return table["key"].slice(0, wanted).combine_chunks()
