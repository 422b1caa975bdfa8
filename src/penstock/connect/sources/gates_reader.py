"""Gates as a Spark data source: the offset holds the next row of every stream and what was promised of it.

Spark records an offset before an epoch runs and passes it back in a replay. A row never changes once it has
its sequence number, so an epoch has the same rows however often it runs, and knows of the same promises. A
new promise makes a new offset, so an epoch runs for it without any row. The driver asks gates what they hold;
tasks fetch rows from them directly.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from penstock.connect.source import ARRIVED, SourceContext
from penstock.connect.sources.gates import GatesSource
from penstock.durable import Purpose
from penstock.ingest.reader import GateWatch, Gathering, InletReader, Offsets, Part
from penstock.ingest.security import Access
from penstock.state.storage import Location

__all__ = ["gates_frame"]

_TASKS_PER_CORE: Final = 2
_NAME: Final = "reader"


def gates_frame(source: GatesSource, context: SourceContext) -> DataFrame:
    """The tuples of an inlet; the folder stores the name of this reader at the gates."""
    assert source.inlet is not None, "a stream gives its source an inlet"
    session, columns = context.session, context.schema.columns
    reading = _Reading(
        addresses=source.addresses,
        stream=context.name,
        name=_name_of_reader(context.folder),
        rows_per_epoch=source.rows_per_epoch,
        tasks=context.slots * _TASKS_PER_CORE,
        # Spark takes only nullable columns from a Python source; the prefix finds nulls and sets them aside.
        ddl=", ".join([*(f"`{each.name}` {each.type}" for each in columns), f"{ARRIVED} bigint"]),
        gathering=Gathering(
            inlet=source.inlet,
            access=Access(source.tls, source.token),
            schema=pa.schema(
                [*(each.with_nullable(True) for each in context.schema.arrow()), (ARRIVED, pa.int64())]
            ),
            stream_column=source.stream_column,
            patience=source.patience / 1e6,
            arrived=ARRIVED,
        ),
    )
    format_ = _format_for(reading)
    session.dataSource.register(format_)
    return session.readStream.format(format_.name()).load()


@dataclass(frozen=True)
class _Reading:
    """Everything that the driver and the tasks need."""

    addresses: tuple[str, ...]
    stream: str
    name: str
    rows_per_epoch: int | None
    tasks: int
    ddl: str
    gathering: Gathering


@dataclass
class _Task(InputPartition):
    """The rows that one task fetches."""

    parts: tuple[Part, ...]


def _format_for(reading: _Reading) -> type[DataSource]:
    """A separate data source class for each run.

    A class made in a function is pickled whole, with its closure, and so travels to the workers.
    Options would appear in plans and logs, and the reading holds a token.
    """

    class Gates(DataSource):
        @classmethod
        def name(cls) -> str:
            return f"penstock_gates_{reading.name}"

        def schema(self) -> str:
            return reading.ddl

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802  Spark's
            return _Reader(reading)

    return Gates


class _Reader(DataSourceStreamReader):
    """Offsets on the driver, rows in tasks; gates are asked what they hold only when the driver needs it."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._opened: InletReader | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """The offset before every row."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """The rows of one epoch."""
        rows = self._reading.rows_per_epoch
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The offset up to which every stream can be read."""
        begin = Offsets.unpacked(start)
        end = self._inlet.latest(begin, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        if end is begin:
            return start
        # The names tell the runtime whose streams are expected, and which column tells these apart
        # (`runtime.spark.offsets`).
        column = self._reading.gathering.stream_column
        named = {"stream": self._reading.stream, **({} if column is None else {"column": column})}
        return {**end.packed(), **named, "left": self._inlet.left}

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """The rows that wait to be read, for the progress of the streaming query."""
        return asdict(self._inlet.waiting)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The rows of an epoch for its tasks."""
        found = self._inlet.tasks(Offsets.unpacked(start), Offsets.unpacked(end), self._reading.tasks)
        return [_Task(parts) for parts in found]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task."""
        assert isinstance(partition, _Task), "Spark passes back what partitions() returned"
        return self._reading.gathering.rows(partition.parts)

    def commit(self, end: dict[str, Any]) -> None:
        """Let gates delete what no replay can ask for."""
        self._inlet.commit(Offsets.unpacked(end))

    def stop(self) -> None:
        """Close the connections to the gates."""
        if self._opened is not None:
            self._opened.close()

    @property
    def _inlet(self) -> InletReader:
        if self._opened is None:
            given = self._reading.gathering
            watch = GateWatch(self._reading.addresses, given.access, given.inlet)
            self._opened = InletReader(watch, given.inlet, self._reading.name, patience=given.patience)
        return self._opened


def _name_of_reader(folder: Location) -> str:
    """A name that stays with the checkpoint: for each reader, gates keep what it has not committed."""
    folder.make()
    if not folder.has(_NAME):
        folder.write(_NAME, uuid.uuid4().hex.encode(), Purpose.SOURCE)
    return folder.read(_NAME).decode()
