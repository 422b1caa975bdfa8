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
        """Write the rows of an epoch and return their number."""
        writer = _AsideWriter(self.files.format())
        job = frame.selectExpr(*self.columns).mapInArrow(
            writer, "part int, name string, rows bigint, bytes bigint"
        )
        receipts = sorted(job.collect())
        written = [Output(each["name"], each["rows"], each["bytes"]) for each in receipts]
        self.files.deliver(epoch_id, written)
        return sum(each.rows for each in written)

    def first(self, epoch_id: EpochId) -> str:
        """The first column of the first tuple that an epoch set aside: its reason."""
        folder = self.files.folder
        for name in folder.names():
            if name.startswith(f"{epoch_id}."):
                table = pq.read_table(f"{folder.path}/{name}", filesystem=folder.files)
                return str(table.column(0)[0])
        return ""


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
