"""Tuples set aside: late tuples and rejects, stored and counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

from penstock.connect import EpochId
from penstock.connect.results import ResultFile, ResultFormat
from penstock.durable import Step
from penstock.state.storage import Location

__all__ = ["SetAside"]

_STAGING = "_staging"


@dataclass(frozen=True)
class SetAside:
    """An output of Parquet files, a few for each epoch that set tuples aside."""

    folder: Location
    columns: tuple[str, ...]

    def write(self, epoch_id: EpochId, frame: DataFrame) -> int:
        """Write the rows of an epoch, replace those of an earlier attempt, and return their number."""
        staging = self.folder / _STAGING
        staging.make()
        writer = _AsideWriter(ResultFormat(staging, "parquet", "snappy"))
        receipts = (
            frame.selectExpr(*self.columns).mapInArrow(writer, "part int, name string, rows bigint").collect()
        )
        for name in self.folder.names():
            if name.startswith(f"{epoch_id}."):
                self.folder.delete(name, Step.ASIDE)
        for receipt in receipts:
            name = f"{epoch_id}.{receipt['part']:05d}.parquet"
            self.folder.move(f"{_STAGING}/{receipt['name']}", name, Step.ASIDE)
        self.folder.sync_names(Step.ASIDE)
        return sum(receipt["rows"] for receipt in receipts)

    def first(self, epoch_id: EpochId) -> str:
        """The first column of the first tuple that an epoch set aside: its reason."""
        for name in self.folder.names():
            if name.startswith(f"{epoch_id}."):
                table = pq.read_table(f"{self.folder.path}/{name}", filesystem=self.folder.files)
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
                }
            )
