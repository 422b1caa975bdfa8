"""The cases of `penstock bench peers` with what is asked of each, and the files that they read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock_lab.bench.data import SECOND_US, START_US, DataSet, first_files
from penstock_lab.bench.engines import WindowSpan
from penstock_lab.bench.joins import JoinSize
from penstock_lab.bench.peer_queries import FilterQuery, JoinQuery, PeerQuery, WindowQuery

__all__ = ["CASES", "SIXTY_BY_TEN", "Case", "EpochSize", "Files"]

# Spark's watermark is a second behind the newest row, which may be a second older than its arrival.
_OPEN_S = 2


@dataclass(frozen=True)
class Files:
    """The parquet files of one or two streams, as many rows in each."""

    folders: tuple[Path, ...]
    rows: int
    rows_per_file: int
    seconds: int

    @classmethod
    def of_reports(cls, data: DataSet, folder: Path) -> "Files":
        """Write a data set, unless it is there already."""
        return cls((data.write(folder),), data.rows, data.rows_per_file, data.seconds)

    @classmethod
    def of_calls(cls, size: JoinSize, folder: Path, seed: int) -> "Files":
        """Write the calls of two networks, unless they are there already."""
        name = f"calls-{size.calls}-{size.seconds}-{seed}-{size.calls_per_file}"
        networks = size.write(folder / name, seed)
        return cls(networks, len(networks) * size.calls, size.calls_per_file, size.seconds)

    def first(self, part: float) -> "Files":
        """The first files of each stream, a part of all."""
        count = max(1, round(part * self._files))
        if count >= self._files:
            return self
        rows = count * self.rows_per_file * len(self.folders)
        folders = tuple(first_files(each, count) for each in self.folders)
        return Files(folders, rows, self.rows_per_file, self.seconds * rows // self.rows)

    def each_epoch(self, epoch_rows: int) -> int:
        """Files of each stream that make an epoch of so many rows."""
        return max(1, epoch_rows // (self.rows_per_file * len(self.folders)))

    @property
    def settled_us(self) -> int:
        """Windows that end by this moment are closed by the rows alone, without the end of the input."""
        return START_US + (self.seconds - _OPEN_S) * SECOND_US

    @property
    def _files(self) -> int:
        return -(-self.rows // (self.rows_per_file * len(self.folders)))


@dataclass(frozen=True)
class EpochSize:
    """Epochs of so many rows: how many run first, how many are then measured."""

    rows: int
    warm: int
    counted: int

    def data(self, like: DataSet) -> DataSet:
        """As many rows a second as another data set has."""
        rows = self.rows * (self.warm + self.counted)
        return replace(
            like,
            rows=rows,
            seconds=max(1, rows * like.seconds // like.rows),
            rows_per_file=min(self.rows, like.rows_per_file),
        )


@dataclass(frozen=True)
class Case:
    """A query to measure, and the goals that it has.

    `over_duckdb` are ceilings of the processor time over DuckDB's, at smaller and at larger epochs;
    `over_spark` is the floor of Spark's time over ours, by the clock and in processor time, at the smaller
    ones; `cpu_s` is the ceiling of processor seconds for ten million rows.

    Spark gets the first `spark_part` of the rows where it takes long; times are then compared per row.
    `absent` says which engines cannot run the case, and why.
    """

    option: str
    name: str
    query: PeerQuery
    over_duckdb: tuple[float, ...] = ()
    over_spark: float | None = None
    cpu_s: float | None = None
    spark_part: float = 1.0
    absent: Mapping[str, str] = field(default_factory=dict)


SIXTY_BY_TEN = WindowSpan(60, 10)
_TOO_LONG = "not run: at a hundredfold overlap it takes more than ten minutes of processor time"

CASES = (
    Case("filter", "filter and project", FilterQuery(), over_duckdb=(8, 5), over_spark=1.5),
    Case("tumbling", "60 s tumbling", WindowQuery(WindowSpan(60, 60)), over_duckdb=(5, 3), over_spark=4),
    Case(
        "60-by-10",
        "60 s by 10 s",
        WindowQuery(SIXTY_BY_TEN),
        over_duckdb=(3, 2),
        over_spark=5.5,
        spark_part=0.5,
    ),
    Case(
        "100-by-1",
        "100 s by 1 s",
        WindowQuery(WindowSpan(100, 1)),
        cpu_s=22,
        absent={"spark": _TOO_LONG, "spark-tuned": _TOO_LONG},
    ),
    Case(
        "join",
        "join within 20 s",
        JoinQuery(20),
        over_duckdb=(4, 3),
        over_spark=9,
        spark_part=0.5,
        absent={"polars": "not run: it has no join by a key and a range of times"},
    ),
)
