"""Starts and explains queries on Spark; installed into the query room when Penstock is imported."""

import tempfile
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.compile import compile_aggregation, explain
from penstock.errors import BadSink, RunError
from penstock.query import ParquetSink, Query
from penstock.runtime.aside import Aside
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.epoch import Epochs
from penstock.runtime.pane_query import PaneQuery
from penstock.runtime.prefix import RECORD, REJECT, describe, late_columns, prefixed
from penstock.runtime.run import Run
from penstock.runtime.session import spark_session
from penstock.runtime.sinks import delivery_to
from penstock.runtime.sources import bounded, open_source
from penstock.runtime.storage import Location

__all__ = ["SparkEngine"]


class SparkEngine:
    """Runs queries with Structured Streaming."""

    def explain(self, query: Query, *, form: str, strategy: str, channels: int | None) -> str:
        """The plan of a query as text, as a Mermaid graph or as JSON."""
        return explain(query, form, strategy, channels)

    def start(  # noqa: PLR0913 - each is one documented option of Query.start
        self,
        query: Query,
        *,
        sink: Any,
        checkpoint: Any,
        late: Any,
        rejects: Any,
        channels: int | None,
        session: SparkSession | None,
        name: str | None,
    ) -> Run:
        """Check everything that can be checked, then start the first epoch in the background."""
        spark = session or spark_session()
        root = Location.of(checkpoint if checkpoint is not None else tempfile.mkdtemp(prefix="penstock-"))
        plan = compile_aggregation(query, describe(spark, query.relation))
        folder = Checkpoint(root)
        folder.claim(query.fingerprint(), repr(query))
        folder.collect(orphans=True)
        delivery = delivery_to(sink, root / "results", name or query.fingerprint())
        delivery.prepare(plan.schema)
        stream = query.relation.stream
        frame = prefixed(open_source(spark, stream, root / "rows"), query, plan)
        run = Run(bounded=bounded(stream))
        epochs = Epochs(
            session=spark,
            query=query,
            plan=plan,
            panes=PaneQuery(query, plan),
            checkpoint=folder,
            delivery=delivery,
            late=Aside(_aside(late, root / "late"), tuple(f"`{each}`" for each in late_columns(query))),
            rejects=Aside(_aside(rejects, root / "rejects"), (f"{REJECT} AS reason", f"{RECORD} AS record")),
            channels=_channels(channels, spark, query),
            report=run.report,
        )
        run.begin(epochs, _starter(frame, folder, run_once=bounded(stream), name=name))
        return run


def _starter(
    frame: DataFrame, folder: Checkpoint, *, run_once: bool, name: str | None
) -> Callable[[Callable[[DataFrame, int], None]], StreamingQuery]:
    def start(epoch: Callable[[DataFrame, int], None]) -> StreamingQuery:
        writer = frame.writeStream.foreachBatch(epoch).option("checkpointLocation", folder.spark)
        if name:
            writer = writer.queryName(name)
        return (writer.trigger(availableNow=True) if run_once else writer).start()

    return start


def _aside(sink: Any, otherwise: Location) -> Location:
    if sink is None:
        return otherwise
    if isinstance(sink, ParquetSink):
        return Location.of(sink.path)
    raise BadSink(f"tuples are set aside as Parquet files, got {type(sink).__name__}; give ps.parquet(path)")


def _channels(channels: int | None, spark: SparkSession, query: Query) -> int:
    if channels is None:
        return spark.sparkContext.defaultParallelism if query.keys else 1
    if channels < 1:
        raise RunError(f"channels={channels}; give 1 or more, or leave it out for one per core")
    return channels
