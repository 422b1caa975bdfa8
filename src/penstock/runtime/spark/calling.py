"""A function of the user over a frame, with the rows that it refuses kept apart.

The function runs in a job of its own. A task writes what the function makes to one file and the rows that it
refuses to another, and reports both together: whatever is retried or lost, a row is in one of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.columns import TIME
from penstock.connect.results import Output, ResultFile, ResultFormat
from penstock.operators import Step
from penstock.runtime.refusals import Refusals

__all__ = ["CalledApart", "called_apart"]

_RECEIPT = "refused boolean, part int, name string, rows bigint, bytes bigint"


@dataclass(frozen=True)
class CalledApart:
    """What a function made of a frame: its columns, its files, the files of refused rows, and the job."""

    schema: StructType
    made: tuple[Output, ...]
    refused: tuple[Output, ...]
    job: DataFrame


def called_apart(frame: DataFrame, step: Step, target: ResultFormat, refusals: Refusals) -> CalledApart:
    """Call the function of a step with every row of a frame."""
    declared = step.declared(lambda name: frame.schema[name].dataType.simpleString())
    schema = cast("StructType", StructType.fromDDL(f"{declared}, {TIME} bigint"))
    fields = [each.with_nullable(True) for each in to_arrow_schema(schema, timezone="UTC")]
    job = frame.mapInArrow(_Apart(step, pa.schema(fields), target, refusals), _RECEIPT)
    receipts = sorted(job.collect(), key=lambda row: (row["part"], row["name"]))
    made = tuple(_output(row) for row in receipts if not row["refused"])
    return CalledApart(schema, made, tuple(_output(row) for row in receipts if row["refused"]), job)


@dataclass(frozen=True)
class _Apart:
    """The callable that Spark ships to the workers for a function."""

    step: Step
    schema: Any
    target: ResultFormat
    refusals: Refusals

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        made, refused = ResultFile(self.target, self.schema), self.refusals.open()
        for batch in batches:
            if batch.num_rows:
                found = self.step.call(pa.Table.from_batches([batch]), refused.add)
                made.write(found.cast(self.schema))
        made.close()
        receipt = made.receipt()
        files = [(False, receipt)] if receipt is not None else []
        files += [(True, each) for each in refused.close()]
        for flag, each in files:
            yield pa.RecordBatch.from_pydict(
                {
                    "refused": [flag],
                    "part": pa.array([context.partitionId()], pa.int32()),
                    "name": [each.name],
                    "rows": [each.rows],
                    "bytes": [each.bytes],
                }
            )


def _output(row: Any) -> Output:
    return Output(row["name"], row["rows"], row["bytes"])
