"""From the source of a stream to a checked Spark streaming DataFrame."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.connect import ARRIVED, CORRUPT, REASON, SourceContext
from penstock.errors import BadSource, WrongType
from penstock.expressions.schema import quoted
from penstock.query import Stream
from penstock.state.storage import Location

__all__ = ["OpenSource", "bounded", "open_source"]


def bounded(stream: Stream) -> bool:
    """Whether the stream's source is bounded."""
    return stream.source is not None and stream.source.bounded


@dataclass(frozen=True)
class OpenSource:
    """A stream's streaming DataFrame; if the source reads files, `read` gives the tuples of an epoch."""

    stream: Stream
    frame: DataFrame
    context: SourceContext

    @property
    def reads_files(self) -> bool:
        """Whether the tuples of an epoch come from `read`."""
        return self.stream.source is not None and self.stream.source.reads_files

    def read(self, session: SparkSession, files: Sequence[str]) -> DataFrame:
        """The stream's columns in these files."""
        assert self.stream.source is not None
        frame = self.stream.source.read(replace(self.context, session=session), files)
        return _own_columns(self.stream, frame)


def open_source(
    session: SparkSession, stream: Stream, folder: Location, warn: Callable[[str], None], slots: int
) -> OpenSource:
    """The stream's columns of its source's DataFrame, which must have the declared types."""
    if stream.source is None:
        raise BadSource(f"stream {stream.name!r} has no source; give ps.stream(..., source=ps.files(...))")
    context = SourceContext(
        session=session,
        name=stream.name,
        schema=stream.schema,
        time=stream.time,
        folder=folder,
        warn=warn,
        slots=slots,
    )
    frame = stream.source.open(context)
    if getattr(frame, "isStreaming", False) is not True:
        raise BadSource(
            f"source {stream.source!r} of stream {stream.name!r} gave a {type(frame).__name__} that is not "
            "streaming; make it with session.readStream"
        )
    return OpenSource(stream, _own_columns(stream, frame), context)


def _own_columns(stream: Stream, frame: DataFrame) -> DataFrame:
    _check(stream, frame)
    marks = [each for each in (CORRUPT, REASON, ARRIVED) if each in frame.columns]
    return frame.select(*(quoted(name) for name in (*stream.schema.names, *marks)))


def _check(stream: Stream, frame: DataFrame) -> None:
    found = {field.name.lower(): field.dataType.simpleString() for field in frame.schema}
    declared: Any = StructType.fromDDL(stream.schema.ddl())
    for column, wanted in zip(stream.schema.columns, declared, strict=True):
        given = found.get(column.name.lower())
        if given is None:
            raise BadSource(
                f"the DataFrame of stream {stream.name!r} has no column {column.name!r}; it has "
                f"{', '.join(frame.columns)}"
            )
        if given != wanted.dataType.simpleString():
            raise WrongType(
                f"column {column.name!r} of stream {stream.name!r} is declared {column.type}, but the "
                f"DataFrame has {given}; cast it or change the schema"
            )
