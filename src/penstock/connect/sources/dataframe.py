"""Any Spark streaming DataFrame: Kafka, Kinesis, a rate source, or one that is already transformed.

Spark runs it as a streaming query, whose checkpoint is in the folder of the source. An epoch takes one batch:
Spark calls `foreachBatch` and waits there until the epoch is committed, so it is never more than one batch
ahead. An offset is the number of a batch and the digest of what Spark planned to read in it.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from penstock.checks import flag
from penstock.connect.source import Ahead, Offset, Reader, Source, SourceContext, Split
from penstock.connect.sources.frames import own_columns
from penstock.connect.sources.spark_offsets import SparkOffsets
from penstock.errors import BadSource, DamagedCheckpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["DataFrameSource", "dataframe"]

_LOOK_S: Final = 0.1
# By these words Spark knows that a streaming query was stopped, not broken. What Py4J says of it is so long,
# with the stack of Java, that the pattern with which Spark looks for them overflows its own stack.
_INTERRUPTED: Final = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling acquire: java.lang.InterruptedException"
)


@dataclass(frozen=True, repr=False)
class DataFrameSource(Source):
    """A Spark streaming DataFrame; the user says whether it ends."""

    frame: Any
    bounded: bool = False

    def open(self, context: SourceContext) -> "DataFrameReader":
        """Check the columns; Spark starts when the run asks for tuples."""
        own_columns(context.name, context.schema, self.frame)
        return DataFrameReader(self, context)

    def __repr__(self) -> str:
        return f"dataframe({', '.join(self.frame.columns)}{'; bounded' if self.bounded else ''})"


def dataframe(frame: "DataFrame", *, bounded: bool = False) -> DataFrameSource:
    """Any Spark streaming DataFrame with the stream's columns; set `bounded` if it ends."""
    if getattr(frame, "isStreaming", False) is not True:
        raise BadSource(f"got {type(frame).__name__} that is not streaming; read it with spark.readStream")
    return DataFrameSource(frame, flag("bounded", bounded, BadSource))


@dataclass(frozen=True)
class _Batch:
    """A batch that Spark offers; its thread waits until it is taken."""

    number: int
    frame: Any
    taken: Any


class DataFrameReader(Reader):
    """A streaming query that hands over one batch after another."""

    def __init__(self, source: DataFrameSource, context: SourceContext) -> None:
        self._source, self._context = source, context
        self._spark = SparkOffsets(context.folder / "spark")
        self._query: StreamingQuery | None = None
        self._change = threading.Condition()
        self._batch: _Batch | None = None
        self._done = -1

    def ahead(self, after: Offset) -> Ahead | None:
        """The batch that Spark offers, once it does; raises what ended the streaming query."""
        self._run(after, after)
        self.commit(after)
        batch = self._offered()
        if batch is None:
            return None
        return Ahead({"batch": batch.number, "digest": self._spark.settle(batch.number)})

    def splits(self, after: Offset, upto: Offset, tasks: int) -> Sequence[Split]:
        """None: Spark reads them."""
        del after, upto, tasks
        return ()

    def frames(self, session: "SparkSession", after: Offset, upto: Offset) -> "Sequence[DataFrame]":
        """The tuples of the batch; after a restart Spark has to offer it first."""
        del session
        self._run(after, upto)
        self.commit(after)
        while (batch := self._offered()) is None:
            if self.ended:
                raise self._lost(upto, "has ended without it")
            with self._change:
                self._change.wait(_LOOK_S)
        if batch.number != upto["batch"]:
            raise self._lost(upto, f"offers batch {batch.number}")
        self._spark.check(batch.number, upto["digest"])
        return [own_columns(self._context.name, self._context.schema, batch.frame)]

    @property
    def ended(self) -> bool:
        """Whether Spark has come to the end and every batch is taken."""
        query = self._query
        stopped = query is not None and not query.isActive and query.exception() is None
        return stopped and self._batch is None

    def commit(self, upto: Offset) -> None:
        """Let Spark commit the batch and go on with the next."""
        with self._change:
            self._done = max(self._done, _number(upto))
            batch = self._batch
            if batch is not None and batch.number <= self._done:
                self._batch = None
                batch.taken.release()

    def close(self) -> None:
        """Stop Spark, which leaves a batch that is not committed for the next run."""
        if self._query is not None:
            self._query.stop()

    def _run(self, after: Offset, upto: Offset) -> None:
        """Start Spark after an offset that the run has, without what it planned later: nobody has used it."""
        if self._query is not None:
            return
        for known in (after, upto):
            if known:
                self._spark.check(known["batch"], known["digest"])
        self._spark.set_back(_number(upto), self._context.folder / "aside" / uuid4().hex[:8])
        self._spark.restore_metadata()
        folder = self._spark.folder.for_spark
        writer = self._source.frame.writeStream.foreachBatch(self._take).option("checkpointLocation", folder)
        self._query = (writer.trigger(availableNow=True) if self._source.bounded else writer).start()

    def _take(self, frame: "DataFrame", number: int) -> None:
        """Offer a batch, and wait in Spark's own thread, where stopping the streaming query ends the wait."""
        with self._change:
            if number <= self._done:
                return
            jvm: Any = self._context.session._jvm  # noqa: SLF001 -- to wait in Spark's thread
            taken = jvm.java.util.concurrent.Semaphore(0)
            self._batch = _Batch(number, frame, taken)
            self._change.notify_all()
        try:
            taken.acquire()
        except Exception as error:
            if "InterruptedException" not in str(error):
                raise
            raise InterruptedError(_INTERRUPTED) from None

    def _offered(self) -> _Batch | None:
        batch = self._batch
        if batch is None and self._query is not None and not self._query.isActive:
            error = self._query.exception()
            if error is not None:
                raise error
            if not self._source.bounded:
                raise BadSource(
                    f"the streaming query of stream {self._context.name!r} was stopped; start the run again"
                )
        return batch

    def _lost(self, upto: Offset, what: str) -> DamagedCheckpoint:
        return DamagedCheckpoint(
            f"an epoch under way has batch {upto['batch']} of stream {self._context.name!r}, but Spark "
            f"{what}: {self._spark.folder.uri} is not what the epoch was planned with; restore the whole "
            "checkpoint from one backup, or go back with start(from_epoch=…) to an earlier epoch"
        )


def _number(offset: Offset) -> int:
    return int(offset.get("batch", -1))
