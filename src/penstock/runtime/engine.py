"""Starts and explains queries on Spark; installed into the query room when Penstock is imported."""

import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.compile import STRATEGIES, Subqueries, channels_of, cut, explain, is_single, optimise
from penstock.errors import BadSink, RunError
from penstock.query import ParquetSink, Query, Stream
from penstock.routing import PARTITIONINGS
from penstock.runtime.aside import Aside
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.epoch import Works
from penstock.runtime.epochs import Epochs
from penstock.runtime.frequent_keys import FrequentKeys
from penstock.runtime.graph import build
from penstock.runtime.input_merger import MERGINGS
from penstock.runtime.planning import Planner
from penstock.runtime.rescaling import Rescaling
from penstock.runtime.resources import stage_resources
from penstock.runtime.results import ResultFormat
from penstock.runtime.routers import Routers
from penstock.runtime.run import Run
from penstock.runtime.sinks import delivery_to
from penstock.runtime.sources import bounded, open_source
from penstock.runtime.spark.arrivals import together
from penstock.runtime.spark.frames import RECORD, REJECT, marked
from penstock.runtime.spark.session import spark_session
from penstock.runtime.stage_notes import note_of
from penstock.runtime.storage import Location

__all__ = ["SparkEngine"]


class SparkEngine:
    """Runs queries with Structured Streaming."""

    def explain(self, query: Query, *, form: str, strategy: str, channels: int | None) -> str:
        """The plan of a query."""
        return explain(query, form, strategy, channels)

    def start(  # noqa: PLR0913 - each is one documented option of Query.start
        self,
        query: Query,
        *,
        sinks: tuple[Any, ...],
        checkpoint: Any,
        late: Any,
        rejects: Any,
        channels: int | None,
        costs: Mapping[int, float] | None,
        session: SparkSession | None,
        name: str | None,
        strategy: str,
        merging: str,
        partitioning: str,
        resources: Mapping[int, Any] | None,
        most_moved: int,
        policy: Any,
    ) -> Run:
        """Check everything that can be checked, then start the first epoch in the background."""
        query = optimise(query).query
        subqueries = cut(query, _one_of("strategy", strategy, STRATEGIES))
        merger = _one_of("merging", merging, MERGINGS)
        spark = session or spark_session()
        root = Location.of(checkpoint if checkpoint is not None else tempfile.mkdtemp(prefix="penstock-"))
        folder = Checkpoint(root)
        deliveries = [
            delivery_to(
                sink, _own(root / "results", place, sinks), _named(name or query.fingerprint(), place)
            )
            for place, sink in enumerate(sinks)
        ]
        graph = build(spark, subqueries, deliveries, ResultFormat(folder.between, "parquet"))
        notes = [note_of(runner).to_json() for runner in graph.stages]
        folder.claim(query.fingerprint(), repr(query), notes)
        folder.collect(orphans=True)
        streams = query.streams
        frames = [
            marked(open_source(spark, each, _own(root / "rows", each.name, streams)), each)
            for each in streams
        ]
        arrivals, frame = together(streams, frames)
        run = Run(bounded=all(map(bounded, streams)))
        rescaling = Rescaling(
            runners=graph.stages,
            routers=Routers(folder.routers),
            partitioning=_one_of("partitioning", partitioning, PARTITIONINGS),
            resources=tuple(stage_resources(each, resources) for each in subqueries.stages),
            frequent={each.number: FrequentKeys() for each in subqueries.stages},
            most_bytes=_most_bytes(most_moved),
        )
        works = Works(
            arrivals=arrivals,
            graph=graph,
            checkpoint=folder,
            rescaling=rescaling,
            late={each.name: _late(late, root, each, streams) for each in streams},
            rejects={each.name: _rejects(rejects, root, each, streams) for each in streams},
            missed=lambda stage, columns: Aside(_aside(late, root / "late") / f"stage-{stage}", columns),
            merging=merger,
        )
        planner = Planner(graph, folder, _channels(channels, costs, spark, subqueries), rescaling, time.time)
        epochs = Epochs(spark, works, planner, report=run.report, policy=policy)
        if channels is not None:
            epochs.planner.match(epochs.last)
        run.begin(epochs, _starter(frame, folder, run_once=all(map(bounded, streams)), name=name))
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


def _most_bytes(given: int) -> int:
    if given < 1:
        raise RunError(f"most_moved={given}; give the bytes of state that an epoch may move, 1 or more")
    return given


def _one_of(option: str, given: str, known: tuple[Any, ...]) -> Any:
    if given not in known:
        raise RunError(f"{option}={given!r}; give one of {', '.join(known)}")
    return given


def _own(folder: Location, name: str | int, among: tuple[Any, ...]) -> Location:
    """A folder of its own where there are several."""
    return folder / str(name) if len(among) > 1 else folder


def _named(name: str, place: int) -> str:
    return name if place == 0 else f"{name}-{place}"


def _late(sink: Any, root: Location, stream: Stream, streams: tuple[Stream, ...]) -> Aside:
    columns = tuple(f"`{name}`" for name in stream.schema.names)
    return Aside(_own(_aside(sink, root / "late"), stream.name, streams), columns)


def _rejects(sink: Any, root: Location, stream: Stream, streams: tuple[Stream, ...]) -> Aside:
    columns = (f"{REJECT} AS reason", f"{RECORD} AS record")
    return Aside(_own(_aside(sink, root / "rejects"), stream.name, streams), columns)


def _aside(sink: Any, otherwise: Location) -> Location:
    if sink is None:
        return otherwise
    if isinstance(sink, ParquetSink):
        return Location.of(sink.path)
    raise BadSink(f"tuples are set aside as Parquet files, got {type(sink).__name__}; give ps.parquet(path)")


def _channels(
    channels: int | None, costs: Mapping[int, float] | None, spark: SparkSession, subqueries: Subqueries
) -> tuple[int, ...]:
    """The channels of every stage: in all as many as given, in proportion to the cost of a tuple.

    By default each stage has one for every core, since the stages of an epoch take turns on the same cores.
    """
    if channels is None:
        cores = spark.sparkContext.defaultParallelism
        return tuple(1 if is_single(stage) else cores for stage in subqueries.stages)
    if channels < 1:
        raise RunError(f"channels={channels}; give 1 or more, or leave it out for one per core")
    hosts = sum(stage.beside is None for stage in subqueries.stages)
    return channels_of(subqueries, max(channels, hosts), costs)
