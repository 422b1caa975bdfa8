"""Tuples set aside: late tuples and rejects, stored and counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

from penstock.connect import EpochId, Output
from penstock.connect.results import ResultFile, ResultFormat
from penstock.connect.sinks.parquet import ParquetFiles

__all__ = ["SetAside"]


@dataclass(frozen=True)
class SetAside:
    """An output of Parquet files, a few for each epoch that set tuples aside."""

    files: ParquetFiles
    columns: tuple[str, ...]

    def write(self, epoch_id: EpochId, frame: DataFrame) -> int:
        """Write and deliver the rows of an epoch and return their number."""
        written = self.written(frame)
        self.files.deliver(epoch_id, written)
        return sum(each.rows for each in written)

    def written(self, frame: DataFrame) -> list[Output]:
        """Write rows to staging; they count once they are delivered with all others of the epoch."""
        writer = _AsideWriter(self.files.format())
        job = frame.selectExpr(*self.columns).mapInArrow(
            writer, "part int, name string, rows bigint, bytes bigint"
        )
        receipts = sorted(job.collect())
        return [Output(each["name"], each["rows"], each["bytes"]) for each in receipts]

    def reason(self, written: Output) -> str:
        """The first column of the first tuple of a file that is not delivered yet."""
        with self.files.format().folder.input(written.name) as file:
            return str(pq.ParquetFile(file).read_row_group(0, columns=["reason"]).column(0)[0])


@dataclass(frozen=True)
class _AsideWriter:
    target: ResultFormat

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        file: ResultFile | None = None
        for batch in batches:
            if file is None:
                file = ResultFile(self.target, batch.schema)
            file.write(pa.Table.from_batches([batch]))
        if file is None:
            return
        file.close()
        receipt = file.receipt()
        if receipt is not None:
            yield pa.RecordBatch.from_pydict(
                {
                    "part": pa.array([context.partitionId()], pa.int32()),
                    "name": [receipt.name],
                    "rows": [receipt.rows],
                    "bytes": [receipt.bytes],
                }
            )
