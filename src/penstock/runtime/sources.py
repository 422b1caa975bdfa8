"""From a declared source to a Spark streaming DataFrame."""

import os
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import BadSource, WrongType
from penstock.query import DataFrameSource, FilesSource, GatesSource, RowsSource, Stream
from penstock.runtime.gates_source import gates_frame
from penstock.runtime.spark.frames import CORRUPT
from penstock.runtime.storage import Location

__all__ = ["bounded", "open_source"]


def bounded(stream: Stream) -> bool:
    """Whether the stream's source comes to an end."""
    source = stream.source
    if isinstance(source, DataFrameSource):
        return source.bounded
    return isinstance(source, RowsSource) or (isinstance(source, FilesSource) and not source.live)


def open_source(session: SparkSession, stream: Stream, folder: Location) -> DataFrame:
    """The tuples of a stream; `folder` keeps rows that were given in memory, or a reader's name."""
    source = stream.source
    if source is None:
        raise BadSource(f"stream {stream.name!r} has no source; give ps.stream(..., source=ps.files(...))")
    if isinstance(source, FilesSource):
        return _files(session, stream, source)
    if isinstance(source, RowsSource):
        return _files(session, stream, _kept(source, folder))
    if isinstance(source, GatesSource):
        return gates_frame(session, stream, source, folder)
    return _checked(stream, source.frame)


def _files(session: SparkSession, stream: Stream, source: FilesSource) -> DataFrame:
    location = Location.of(source.path)
    pattern = any(character in source.path for character in "*?[{")
    if location.local and not pattern and not Path(location.path).exists():
        raise BadSource(
            f"path {source.path!r} of stream {stream.name!r} does not exist; make it or correct it"
        )
    schema = stream.schema.ddl()
    # Spark has no NOT NULL in files; nulls are found by the prefix and set aside.
    reader = session.readStream.format(source.format)
    if source.format in {"csv", "json"}:
        schema = f"{schema}, `{CORRUPT}` STRING"
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    if source.files_per_epoch is not None:
        reader = reader.option("maxFilesPerTrigger", source.files_per_epoch)
    return reader.options(**dict(source.options)).schema(schema).load(location.uri)


def _kept(source: RowsSource, folder: Location) -> FilesSource:
    """Rows in memory as files of the checkpoint, one per epoch, so that a restart can replay them."""
    folder.make()
    for number, table in enumerate(source.batches):
        name = f"{number:08d}.parquet"
        if not folder.has(name):
            with folder.output(f"_{name}") as stream:
                pq.write_table(table, stream)
            folder.move(f"_{name}", name)
            if folder.local:
                # Files are taken in the order of their modification, to the millisecond.
                os.utime(f"{folder.path}/{name}", (1_000_000_000 + number, 1_000_000_000 + number))
    return FilesSource(path=folder.uri, format="parquet", files_per_epoch=1, live=False, options=())


def _checked(stream: Stream, frame: DataFrame) -> DataFrame:
    """The stream's columns of a DataFrame, which must have the declared types."""
    found = {field.name.lower(): field for field in frame.schema}
    for column in stream.schema.columns:
        field = found.get(column.name.lower())
        if field is None:
            raise BadSource(
                f"the DataFrame of stream {stream.name!r} has no column {column.name!r}; it has "
                f"{', '.join(frame.columns)}"
            )
        if field.dataType.simpleString() != column.type:
            raise WrongType(
                f"column {column.name!r} of stream {stream.name!r} is declared {column.type}, the DataFrame "
                f"has {field.dataType.simpleString()}; cast it or change the schema"
            )
    return frame.select(*(f"`{name}`" for name in stream.schema.names))
