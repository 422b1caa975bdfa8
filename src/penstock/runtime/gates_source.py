"""Gates as a Spark streaming source: the offset says for every stream which row comes next.

Spark writes an offset down before an epoch runs and hands it back in a replay, and a row never changes once
it has its sequence, so an epoch has the same rows however often it runs. The driver asks gates what they
hold; tasks fetch rows from them directly.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from penstock.ingest.access import Access
from penstock.ingest.gathering import Gathering, Part
from penstock.ingest.inlet_reader import InletReader
from penstock.ingest.offsets import Offsets
from penstock.ingest.watch import Watch
from penstock.query import GatesSource, Stream
from penstock.runtime.storage import Location

__all__ = ["gates_frame"]

_TASKS_PER_CORE: Final = 2
_NAME: Final = "reader"


def gates_frame(session: SparkSession, stream: Stream, source: GatesSource, folder: Location) -> DataFrame:
    """The tuples of an inlet; `folder` keeps the name under which gates know this reader."""
    assert source.inlet is not None, "a stream gives its source an inlet"
    columns = stream.schema.columns
    reading = _Reading(
        addresses=source.addresses,
        name=_name_of_reader(folder),
        rows_per_epoch=source.rows_per_epoch,
        tasks=session.sparkContext.defaultParallelism * _TASKS_PER_CORE,
        # Spark takes only nullable columns from a Python source; nulls are found by the prefix and set aside.
        ddl=", ".join(f"`{each.name}` {each.type}" for each in columns),
        gathering=Gathering(
            inlet=source.inlet,
            access=Access(source.tls, source.token),
            schema=pa.schema([each.with_nullable(True) for each in stream.schema.arrow()]),
            stream_column=source.stream_column,
            patience=source.patience / 1e6,
        ),
    )
    format_ = _format_for(reading)
    session.dataSource.register(format_)
    return session.readStream.format(format_.name()).load()


@dataclass(frozen=True)
class _Reading:
    """All that driver and tasks have to know."""

    addresses: tuple[str, ...]
    name: str
    rows_per_epoch: int | None
    tasks: int
    ddl: str
    gathering: Gathering


@dataclass
class _Task(InputPartition):
    """What one task fetches."""

    parts: tuple[Part, ...]


def _format_for(reading: _Reading) -> type[DataSource]:
    """A source of its own for each run.

    A class that is made in a function is pickled whole, with what it closes over, and goes to the workers so.
    Options would be shown in plans and logs, and the reading holds a token.
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
    """Offsets on the driver, rows in tasks; what gates hold is only asked for when the driver wants it."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._opened: InletReader | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Before every row."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """The rows of one epoch."""
        rows = self._reading.rows_per_epoch
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """As far as every stream can be read."""
        begin = Offsets.unpacked(start)
        end = self._inlet.latest(begin, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        return start if end is begin else end.packed()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """What waits to be read, for the progress of the streaming query."""
        return asdict(self._inlet.waiting)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The rows of an epoch for its tasks."""
        found = self._inlet.tasks(Offsets.unpacked(start), Offsets.unpacked(end), self._reading.tasks)
        return [_Task(parts) for parts in found]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task."""
        assert isinstance(partition, _Task), "Spark hands back what partitions() gave"
        return self._reading.gathering.rows(partition.parts)

    def commit(self, end: dict[str, Any]) -> None:
        """Gates may delete what no replay can ask for."""
        self._inlet.commit(Offsets.unpacked(end))

    def stop(self) -> None:
        """Let the gates go."""
        if self._opened is not None:
            self._opened.close()

    @property
    def _inlet(self) -> InletReader:
        if self._opened is None:
            given = self._reading.gathering
            watch = Watch(self._reading.addresses, given.access, given.inlet)
            self._opened = InletReader(watch, given.inlet, self._reading.name, patience=given.patience)
        return self._opened


def _name_of_reader(folder: Location) -> str:
    """A name that stays with the checkpoint, because gates keep for each reader what it has not committed."""
    folder.make()
    if not folder.has(_NAME):
        folder.write(_NAME, uuid.uuid4().hex.encode())
    return folder.read(_NAME).decode()
