"""The sources of a query, opened: a reader for each stream."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from penstock.connect import Reader, SourceContext
from penstock.errors import BadSource
from penstock.query import Stream
from penstock.state.storage import Location

__all__ = ["bounded", "open_source"]


def bounded(stream: Stream) -> bool:
    """Whether the stream's source is bounded."""
    return stream.source is not None and stream.source.bounded


def open_source(
    session: SparkSession, stream: Stream, folder: Location, warn: Callable[[str], None], run: str
) -> Reader:
    """The reader of a stream's source."""
    if stream.source is None:
        raise BadSource(f"stream {stream.name!r} has no source; give ps.stream(..., source=ps.files(...))")
    context = SourceContext(
        session=session,
        name=stream.name,
        schema=stream.schema,
        time=stream.time,
        folder=folder,
        warn=warn,
        run=run,
    )
    reader = stream.source.open(context)
    if not isinstance(reader, Reader):
        raise BadSource(
            f"source {stream.source!r} of stream {stream.name!r} gave a {type(reader).__name__}, expected a "
            "Reader; return one from open()"
        )
    return reader
