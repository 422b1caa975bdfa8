"""Tuples that reach a sink through no stage: Spark writes the files, channels are not needed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from penstock.query import quoted
from penstock.runtime.graph import Outlet, Written
from penstock.runtime.intake import Intake
from penstock.runtime.results import Output, ResultFile, ResultFormat
from penstock.runtime.spark.plans import observed_by

__all__ = ["written"]


def written(outlet: Outlet, way: Written, intake: Intake, exchanges: int) -> list[tuple[int, Output]]:
    """Write the tuples of a feed in the form of the outlet's sink; the receipts of the files."""
    rows = intake.rows(way.feed, way.exit, exchanges=exchanges)
    if rows is None:
        return []
    names = ", ".join(quoted(name) for name in outlet.schema.names)
    writer = _Writer(outlet.delivery.target, outlet.schema)
    chosen = intake.session.sql(f"SELECT {names} FROM {rows}")
    job = chosen.mapInArrow(writer, "part int, name string, rows bigint, bytes bigint")
    found = job.collect()
    intake.settle(observed_by(job, intake.watched()))
    return [(row["part"], Output(row["name"], row["rows"], row["bytes"])) for row in sorted(found)]


@dataclass(frozen=True)
class _Writer:
    target: ResultFormat
    schema: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        file = ResultFile(self.target, self.schema)
        for batch in batches:
            file.write(pa.Table.from_batches([batch]).cast(self.schema))
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
