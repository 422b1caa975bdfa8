"""The data set of the measurements: Zipf keys, even event time, arrivals out of order by less than 1 s."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

START_US = 1_704_067_200_000_000  # 2024-01-01 00:00 UTC
SECOND_US = 1_000_000
SCHEMA = pa.schema(
    [
        pa.field("time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("key", pa.int64(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
DDL = "time timestamp not null, key bigint not null, value double not null"


@dataclass(frozen=True)
class DataSet:
    """A stream of `rows` tuples evenly over `seconds` of event time, the same for the same fields.

    Keys follow Zipf(1.0). Each tuple arrives less than a second of event time after it happened, so a delay
    of one second makes none late. Values are multiples of 1/128 below 128: their sums are exact in a double
    in whatever order they are added, so engines that agree, agree to the last bit.
    """

    rows: int
    seconds: int
    keys: int
    seed: int
    rows_per_file: int = 100_000

    @property
    def files(self) -> int:
        """The number of parquet files."""
        return -(-self.rows // self.rows_per_file)

    def table(self) -> pa.Table:
        """All tuples in order of arrival; takes about 100 bytes a tuple while it works."""
        rng = np.random.default_rng(self.seed)
        time = START_US + np.arange(self.rows, dtype=np.int64) * (self.seconds * SECOND_US) // self.rows
        arrival = time + rng.integers(0, SECOND_US, self.rows)
        time = time[np.argsort(arrival, kind="stable")]
        return pa.table(
            [
                pa.array(time, SCHEMA.field("time").type),
                pa.array(zipf(rng, self.rows, self.keys)),
                pa.array(rng.integers(0, 128 * 128, self.rows) / 128),
            ],
            schema=SCHEMA,
        )

    def write(self, folder: Path) -> Path:
        """Write the files into a folder of their own under `folder`, unless they are there already."""
        name = f"zipf-{self.rows}-{self.seconds}-{self.keys}-{self.seed}-{self.rows_per_file}"
        return write_files(folder / name, self.table, self.rows_per_file)


def write_files(target: Path, table: Callable[[], pa.Table], rows_per_file: int) -> Path:
    """Write a table as parquet files into `target`, in order, unless that folder is there already."""
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    # One rename at the end, so that a folder of that name is always whole.
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    whole = table()
    for number, first in enumerate(range(0, whole.num_rows, rows_per_file)):
        path = unfinished / f"{number:06d}.parquet"
        pq.write_table(whole.slice(first, rows_per_file), path, compression="snappy")
        # Spark reads files in order of modification time.
        moment = START_US // SECOND_US + number
        os.utime(path, (moment, moment))
    unfinished.rename(target)
    return target


def first_files(folder: Path, files: int) -> Path:
    """A folder with the first `files` files of a data set, as hard links."""
    paths = sorted(folder.glob("*.parquet"))
    if files >= len(paths):
        return folder
    target = folder.parent / f"{folder.name}-first-{files}"
    if target.exists():
        return target
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=folder.parent))
    for path in paths[:files]:
        (unfinished / path.name).hardlink_to(path)
    unfinished.rename(target)
    return target


def zipf(rng: np.random.Generator, rows: int, keys: int) -> NDArray[np.int64]:
    """Keys below `keys` by Zipf(1.0): the i-th most frequent one has a share in proportion to 1/i."""
    cumulative = np.cumsum(1.0 / np.arange(1, keys + 1))
    drawn = rng.random(rows) * cumulative[-1]  # may round up to the last sum, hence [:-1]
    rank = np.searchsorted(cumulative[:-1], drawn, side="right")
    # Without the permutation hot keys would be neighbours, which flatters range partitioning.
    drawn_keys: NDArray[np.int64] = rng.permutation(np.arange(keys, dtype=np.int64))[rank]
    return drawn_keys
