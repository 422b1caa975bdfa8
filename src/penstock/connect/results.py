"""The results of an epoch on their way to a sink: channels write files, and the driver delivers them.

A channel writes one file for each sink, under a name that no other attempt has, and reports it by an
`Output`. Nothing names the files of a failed attempt. A sink gets the files of an epoch as `Results`.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.durable import Purpose
from penstock.state.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EpochId", "Output", "ResultFile", "ResultFormat", "Results"]


@dataclass(frozen=True, order=True)
class EpochId:
    """The id of an epoch for sinks. The drain at the end of a bounded source is a separate delivery.

    The same id means the same results, however often they are delivered.

    >>> last, drain = EpochId(7), EpochId(7, drain=True)
    >>> last < drain, last.version, drain.version, str(drain)
    (True, 14, 15, '000000000007-drain')
    """

    epoch: int
    drain: bool = False

    @property
    def version(self) -> int:
        """The id as one number, which increases from delivery to delivery."""
        return 2 * self.epoch + int(self.drain)

    def __str__(self) -> str:
        # Names sort in the order of ids.
        return f"{self.epoch:012d}-{'drain' if self.drain else 'data'}"


@dataclass(frozen=True)
class ResultFormat:
    """Where channels write results, and in which format; the names of their files begin with `label`."""

    folder: Location
    kind: Literal["parquet", "arrow"]
    compression: str = "none"
    label: str = ""


@dataclass(frozen=True)
class Output:
    """The receipt of a result file; `exit` is the number of the exit by which its rows left their stage."""

    name: str
    rows: int
    bytes: int
    exit: int = 0


@dataclass(frozen=True)
class Results:
    """The results of one epoch for one sink: the files that channels wrote, and three ways to read them.

    Use `batches` to save memory, `table` if a whole epoch fits on the driver, and `frame` to let
    Spark's workers read. `table` sorts by the columns in `order`.
    """

    epoch: EpochId
    schema: pa.Schema
    format: ResultFormat
    files: tuple[Output, ...]
    order: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of results; an epoch may have none."""
        return sum(each.rows for each in self.files)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Every row, file by file; one batch is in memory at a time."""
        for each in self.files:
            with self.format.folder.input(each.name) as file:
                if self.format.kind == "parquet":
                    for batch in pq.ParquetFile(file).iter_batches():
                        yield batch.cast(self.schema)
                    continue
                reader = pa.ipc.open_file(file)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)

    def table(self) -> pa.Table:
        """Every row in one table, sorted by `order`; equal rows keep their order."""
        table = pa.Table.from_batches(self.batches(), self.schema)
        return table.sort_by([(name, "ascending") for name in self.order]) if self.order else table

    def frame(self, session: "SparkSession") -> "DataFrame":
        """Every row as a Spark DataFrame; workers read Parquet files, Arrow files pass through the driver."""
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 -- declaring needs no Spark

        schema = from_arrow_schema(self.schema)
        if self.format.kind == "parquet" and self.files:
            paths = [f"{self.format.folder.for_spark}/{each.name}" for each in self.files]
            return session.read.schema(schema).parquet(*paths)
        if not self.rows:
            return session.createDataFrame([], schema)
        return session.createDataFrame(self.table(), schema)


class ResultFile:
    """A result file that is created with its first rows; its name belongs to this attempt."""

    def __init__(self, target: ResultFormat, schema: pa.Schema) -> None:
        self._target = target
        self._schema = schema
        self._name = f"{target.label}{uuid4().hex}.{target.kind}"
        self._rows = 0
        self._open_files = ExitStack()
        self._stream: Any = None
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        if not table.num_rows:
            return
        if self._writer is None:
            self._stream = self._open_files.enter_context(
                self._target.folder.output(self._name, Purpose.RESULT)
            )
            self._writer = self._open()
        self._writer.write_table(table)
        self._rows += table.num_rows

    def close(self) -> None:
        """Finish the file and make it durable."""
        if self._writer is not None:
            self._writer.close()
            self._open_files.close()
            self._target.folder.sync(self._name, Purpose.RESULT)

    def receipt(self) -> Output | None:
        """The receipt of what was written, if anything; only after the file is closed."""
        if self._writer is None:
            return None
        size = self._target.folder.size(self._name)
        assert size is not None
        return Output(self._name, self._rows, size)

    def _open(self) -> Any:
        if self._target.kind == "arrow":
            return pa.ipc.new_file(self._stream, self._schema)
        # A dictionary pays off if values repeat: bounds of windows and keys, not measured values.
        plain = [f.name for f in self._schema if pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)]
        return pq.ParquetWriter(
            self._stream,
            self._schema,
            compression=self._target.compression.upper(),
            use_dictionary=[name for name in self._schema.names if name not in plain],
            store_schema=False,
        )
