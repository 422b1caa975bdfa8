"""Starts and explains queries on Spark; registered with the query package when Penstock is imported."""

import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.compile import Stage, Subqueries, channels_of, cut, explain, is_single, optimise
from penstock.connect import ParquetSink, ResultFormat, Sink
from penstock.query import Query, RunOptions, Stream
from penstock.routing import Resources
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.delivering import OpenSink
from penstock.runtime.epoch import RunSetup
from penstock.runtime.epochs import Epochs
from penstock.runtime.graph import build
from penstock.runtime.planning import Planner
from penstock.runtime.rescale.frequent_keys import FrequentKeys
from penstock.runtime.rescale.policies import guarded
from penstock.runtime.rescale.requests import Rescaling
from penstock.runtime.routers import Routers
from penstock.runtime.run import Run
from penstock.runtime.set_aside import SetAside
from penstock.runtime.sources import bounded, open_source
from penstock.runtime.spark.arrivals import together
from penstock.runtime.spark.clock import clock_frame, steady_time
from penstock.runtime.spark.frames import FILE, RECORD, REJECT
from penstock.runtime.spark.plans import check_filesystem
from penstock.runtime.spark.session import spark_session
from penstock.runtime.stage import StageRunner
from penstock.state.storage import Location
from penstock.state.view import StageNote

__all__ = ["SparkEngine"]


class SparkEngine:
    """Runs queries with Structured Streaming."""

    def explain(self, query: Query, *, form: str, strategy: str, channels: int | None) -> str:
        """The plan of a query."""
        return explain(query, form, strategy, channels)

    def start(self, query: Query, sinks: tuple[Sink, ...], options: RunOptions) -> Run:
        """Check everything that can be checked, then start the first epoch in the background."""
        query = optimise(query).query
        subqueries = cut(query, options.strategy)
        options.check_stages(len(subqueries.stages))
        spark = options.session or spark_session()
        root = Location.of(options.checkpoint or tempfile.mkdtemp(prefix="penstock-"))
        folder = Checkpoint(root)
        check_filesystem(spark, folder.spark)
        deliveries = [
            OpenSink(
                sink=sink,
                name=_named(options.name or query.fingerprint(), place),
                folder=_own(root / "results", place, sinks),
                order=query.outputs[place].order,
                session=spark,
            )
            for place, sink in enumerate(sinks)
        ]
        graph = build(spark, subqueries, deliveries, ResultFormat(folder.between, "parquet"))
        notes = [_note(runner).to_json() for runner in graph.stages]
        folder.claim(query.fingerprint(), repr(query), notes)
        folder.collect(orphans=True)
        streams = query.streams
        ends = all(map(bounded, streams))
        run = Run(bounded=ends, name=options.name, close=lambda: _close(deliveries))
        arrivals, frame = together(
            [open_source(spark, each, _own(root / "rows", each.name, streams), run.warn) for each in streams],
            clock=None if ends else clock_frame(spark, streams),
        )
        rescaling = Rescaling(
            runners=graph.stages,
            routers=Routers(folder.routers),
            partitioning=options.partitioning,
            resources=tuple(_resources(each, options) for each in subqueries.stages),
            frequent={each.number: FrequentKeys() for each in subqueries.stages},
            most_bytes=options.most_moved,
        )
        works = RunSetup(
            arrivals=arrivals,
            graph=graph,
            checkpoint=folder,
            rescaling=rescaling,
            late={each.name: _late(options.late, root, each, streams) for each in streams},
            rejects={each.name: _rejects(options.rejects, root, each, streams) for each in streams},
            missed=lambda stage, columns: SetAside(
                _aside(options.late, root / "late") / f"stage-{stage}", columns
            ),
            merging=options.merging,
        )
        planner = Planner(
            graph, folder, _channels(options, spark, subqueries), rescaling, time.time, steady_time(streams)
        )
        policy = None if options.policy is None else guarded(options.policy, rescaling.check)
        epochs = Epochs(spark, works, planner, report=run.report, policy=policy)
        if options.channels is not None:
            epochs.planner.match(epochs.last)
        run.begin(epochs, _starter(frame, folder, run_once=ends, name=options.name))
        return run


def _resources(stage: Stage, options: RunOptions) -> Resources:
    """How the cost of a key grows with its frequency: as given for the stage, else as its operator says."""
    given = (options.resources or {}).get(stage.number)
    if given is None:
        return stage.operator.resources()
    return Resources.of(given) if isinstance(given, str) else given


def _note(runner: StageRunner) -> StageNote:
    """Notes on a stage, so that its state can be read without the query."""
    return StageNote(str(runner.stage.operator), runner.stage.operator.key_names, runner.kernel.tables)


def _starter(
    frame: DataFrame, folder: Checkpoint, *, run_once: bool, name: str | None
) -> Callable[[Callable[[DataFrame, int], None]], StreamingQuery]:
    def start(epoch: Callable[[DataFrame, int], None]) -> StreamingQuery:
        writer = frame.writeStream.foreachBatch(epoch).option("checkpointLocation", folder.spark)
        if name:
            writer = writer.queryName(name)
        return (writer.trigger(availableNow=True) if run_once else writer).start()

    return start


def _own(folder: Location, name: str | int, among: tuple[Any, ...]) -> Location:
    """A folder for each where there are several."""
    return folder / str(name) if len(among) > 1 else folder


def _named(name: str, place: int) -> str:
    return name if place == 0 else f"{name}-{place}"


def _late(sink: ParquetSink | None, root: Location, stream: Stream, streams: tuple[Stream, ...]) -> SetAside:
    columns = tuple(f"`{name}`" for name in stream.schema.names)
    return SetAside(_own(_aside(sink, root / "late"), stream.name, streams), columns)


def _rejects(
    sink: ParquetSink | None, root: Location, stream: Stream, streams: tuple[Stream, ...]
) -> SetAside:
    columns = (f"{REJECT} AS reason", f"{RECORD} AS record", f"{FILE} AS file")
    return SetAside(_own(_aside(sink, root / "rejects"), stream.name, streams), columns)


def _aside(sink: ParquetSink | None, otherwise: Location) -> Location:
    return otherwise if sink is None else sink.folder


def _channels(options: RunOptions, spark: SparkSession, subqueries: Subqueries) -> tuple[int, ...]:
    """The channels of every stage: the given total, in proportion to the cost of a tuple.

    By default each stage has one per core, since the stages of an epoch take turns on the same cores.
    """
    if options.channels is None:
        cores = spark.sparkContext.defaultParallelism
        return tuple(1 if is_single(stage) else cores for stage in subqueries.stages)
    hosts = sum(stage.host is None for stage in subqueries.stages)
    return channels_of(subqueries, max(options.channels, hosts), options.costs)


def _close(sinks: Iterable[OpenSink]) -> None:
    """Close every sink, then raise the first failure."""
    with ExitStack() as stack:
        for each in sinks:
            stack.callback(each.close)
