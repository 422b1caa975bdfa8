"""Tuples set aside: late ones and those that do not fit the schema, kept and counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from penstock.runtime.records import Moment
from penstock.runtime.results import ResultFile, ResultFormat
from penstock.runtime.storage import Location

__all__ = ["Aside"]

_STAGING = "_staging"


@dataclass(frozen=True)
class Aside:
    """An output of Parquet files, some for each epoch that set tuples aside."""

    folder: Location
    columns: tuple[str, ...]

    def write(self, moment: Moment, frame: DataFrame) -> int:
        """Write the rows of an epoch in place of what an earlier try of it left; how many there were."""
        staging = self.folder / _STAGING
        staging.make()
        writer = _Writer(ResultFormat(staging, "parquet", "snappy"))
        receipts = (
            frame.selectExpr(*self.columns).mapInArrow(writer, "part int, name string, rows bigint").collect()
        )
        for name in self.folder.names():
            if name.startswith(f"{moment}."):
                self.folder.delete(name)
        for receipt in receipts:
            self.folder.move(f"{_STAGING}/{receipt['name']}", f"{moment}.{receipt['part']:05d}.parquet")
        return sum(receipt["rows"] for receipt in receipts)


@dataclass(frozen=True)
class _Writer:
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
