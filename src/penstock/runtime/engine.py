"""Starts and explains queries on Spark; registered with the query package when Penstock is imported."""

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

from pyspark.sql import SparkSession

from penstock.compile import Stage, Subqueries, channels_of, cut, explain, is_single, optimise
from penstock.connect import Begins, ParquetSink, Reader, ResultFormat, Sink
from penstock.connect.sinks.parquet import COMPRESSION, ParquetFiles
from penstock.connect.sinks.unkept import UnkeptSink
from penstock.control.function_policy import FunctionPolicy
from penstock.control.limits import Limits
from penstock.control.setup import Setup
from penstock.distribution.distribution import Counts, Form, Settings
from penstock.durable import Purpose
from penstock.errors import BadOption, BadSink
from penstock.query import Query, RunOptions, Stream
from penstock.query.qos import most_disorder
from penstock.routing import REGISTRY, Resources
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.control import RunControl
from penstock.runtime.dataflow.tasks import Compiled
from penstock.runtime.delivering import OpenSink
from penstock.runtime.epoch import RunSetup
from penstock.runtime.epochs import Epochs
from penstock.runtime.going_back import go_back, resume_going_back, went_back
from penstock.runtime.graph import Graph, build
from penstock.runtime.latency import LatencyMeter, result_ways
from penstock.runtime.layout_files import LayoutFiles
from penstock.runtime.pacer import Pacer
from penstock.runtime.places import check_places
from penstock.runtime.planning import Planner
from penstock.runtime.progress import EpochProgress
from penstock.runtime.recording import RecordingFiles
from penstock.runtime.refusals import RefusalSetup
from penstock.runtime.requests import Requests
from penstock.runtime.run import Run
from penstock.runtime.sources import bounded, open_source
from penstock.runtime.spark.executors import Executors
from penstock.runtime.spark.failures import hushed
from penstock.runtime.spark.frames import typed
from penstock.runtime.spark.jobs import SparkJobs
from penstock.runtime.spark.plans import check_filesystem
from penstock.runtime.spark.session import prepare, spark_session, sql_setting
from penstock.runtime.stage import StageRunner, hosted_by
from penstock.runtime.time_steps import period, steady_time
from penstock.state.storage import Location
from penstock.state.view import StageNote

__all__ = ["Claimed", "SparkEngine"]


class SparkEngine:
    """Runs queries on Spark."""

    def explain(self, query: Query, *, form: str, strategy: str, channels: int | None) -> str:
        """The plan of a query."""
        return explain(query, form, strategy, channels)

    @hushed()
    def start(self, query: Query, sinks: tuple[Sink, ...], options: RunOptions) -> Run:
        """Check everything that can be checked, then start the first epoch in the background."""
        query = optimise(query).query
        # What is wrong is told before a session starts, which takes seconds.
        options.check_stages(len(cut(query, options.strategy).stages))
        check_places(query.streams, sinks, options.checkpoint)
        spark = options.session or spark_session()
        subqueries = cut(query, options.strategy, sql_setting(spark))
        root = Location.of(options.checkpoint or tempfile.mkdtemp(prefix="penstock-"))
        check_filesystem(spark, root.for_spark)
        folder = replace(Checkpoint(root), kept=options.keep_epochs).identified()
        deliveries = [
            OpenSink(
                sink=sink,
                id=f"{folder.id}-{place}",
                name=_named(options.name or query.fingerprint(), place),
                folder=_own(root / "results", place, sinks),
                order=query.outputs[place].order,
                session=spark,
                disorder=None if options.disorder is None else most_disorder(options.disorder),
                in_parts=options.disorder is not None and sink.takes_parts,
            )
            for place, sink in enumerate(sinks)
        ]
        between = ResultFormat(folder.between, "parquet")
        graph = build(partial(typed, spark), subqueries, deliveries, between, folder.routers)
        if options.from_epoch is not None:
            _check_takes_back(sinks)
        notes = [_note(runner).to_json() for runner in graph.stages]
        folder = folder.claim(
            query.fingerprint(),
            repr(query),
            notes,
            streams={each.name: each.declared for each in query.streams},
            setting=subqueries.setting,
            run=options.name or "",
            takeover=options.takeover,
        )
        # Everything from here on is done as the owner, and undone if it fails.
        with ExitStack() as undo:
            undo.callback(_close, deliveries, folder)
            undo.enter_context(folder.owned())
            run = self._begin(Claimed(query, subqueries, options, folder, graph), spark)
            undo.pop_all()
        return run

    def _begin(self, claimed: "Claimed", spark: SparkSession) -> Run:
        query, options, graph = claimed.query, claimed.options, claimed.graph
        ends = all(map(bounded, query.streams))
        nodes = _nodes(options, spark, live=not ends)
        # A separate session: the settings of epochs must not change the user's.
        own = spark.newSession()
        prepare(own, graph.setting)
        deliveries = [each.delivery for each in graph.outlets]
        closing: list[Callable[[], None]] = []
        run = Run(
            bounded=ends,
            name=options.name,
            close=lambda: _close(deliveries, claimed.folder, closing),
            outputs=len(deliveries),
            unkept=any(isinstance(each.sink, UnkeptSink) for each in deliveries),
            disorder=options.disorder,
        )

        def opened(stream: Stream, folder: Location) -> Reader:
            called = options.name or claimed.folder.root.uri
            return open_source(own, stream, folder, partial(run.warn, stream=stream.name), called)

        epochs = claimed.epochs(nodes, opened, partial(SparkJobs, own), run.report)
        closing += [each.close for each in epochs.works.readers.values()]
        closing.append(epochs.works.jobs.close)
        epochs.readers = run.readers
        epochs.outlook.bound = options.latency_seconds
        if not ends:
            epochs.meter = LatencyMeter(result_ways(graph), query.streams, options.latency_seconds)
            epochs.tick = period(query.streams)
            epochs.pacer = Pacer(options.trigger_seconds, epochs.tick)
        run.begin(epochs)
        return run


@dataclass(frozen=True)
class Claimed:
    """A query that is compiled, and the checkpoint that this run owns."""

    query: Query
    subqueries: Subqueries
    options: RunOptions
    folder: Checkpoint
    graph: Graph

    def epochs(
        self,
        nodes: "_Nodes",
        opened: Callable[[Stream, Location], Reader],
        jobs: Callable[[Compiled], SparkJobs],
        report: Callable[[EpochProgress], None],
    ) -> Epochs:
        """What runs its epochs, from where the checkpoint is; sinks are opened first, then sources."""
        options, folder, graph, streams = self.options, self.folder, self.graph, self.query.streams
        begins = _begins(folder, options.from_epoch)
        for outlet in graph.outlets:
            outlet.delivery.prepare(outlet.schema, begins)
        aside = _Aside(folder.root, folder.id, begins, options, streams)
        readers = {
            each.name: opened(each, _own(folder.root / "rows", each.name, streams)) for each in streams
        }
        files = LayoutFiles(folder.routers)
        requests = Requests(
            graph.stages,
            {
                each.number: each.kernel.distribution.steering(_settings(each, graph.stages, options), files)
                for each in graph.stages
                if not each.hosted
            },
        )
        late = {each.name: aside.late(each) for each in streams}
        rejects = aside.all_rejects(len(graph.stages))
        missed = aside.missed(len(graph.stages)) if options.merging == "best effort" else {}
        compiled = replace(
            graph.compiled,
            late={name: files.format() for name, files in late.items()},
            rejects={each.name: rejects[each.name].format() for each in streams},
            missed={number: files.format() for number, files in missed.items()},
        )
        works = RunSetup(
            streams=streams,
            readers=readers,
            graph=replace(graph, compiled=compiled),
            checkpoint=folder,
            requests=requests,
            late=late,
            rejects=rejects,
            missed=missed,
            judged=aside.judged([each.number for each in graph.stages if each.kernel.judges]),
            merging=options.merging,
            jobs=jobs(compiled),
            refusals=_refusals(options, rejects),
        )
        planner = Planner(
            graph,
            folder,
            _channels(options, nodes.slots, self.subqueries),
            requests,
            time.time,
            steady_time(streams),
        )
        control = _control(options, requests, files, folder, nodes)
        found = Epochs(works, planner, report=report, control=control)
        found.slots = nodes.slots
        if options.channels is not None:
            planner.match(found.last, options.channels)
        return found


def _begins(folder: Checkpoint, from_epoch: int | None) -> Begins:
    """Where the run begins, once everything that does not count any more is gone from the checkpoint."""
    assert folder.ownership is not None
    resume_going_back(folder)
    if from_epoch is not None:
        go_back(folder, from_epoch)
    # Before anything is deleted: if the newest epoch is damaged, an older one may be needed.
    latest = folder.latest()
    folder.collect(orphans=True)
    last = None if latest is None else latest.epoch_id
    return Begins(last, back=went_back(folder, last), owner=folder.ownership.number, hold=folder.hold)


def _check_takes_back(sinks: tuple[Sink, ...]) -> None:
    for sink in sinks:
        if not sink.takes_back:
            raise BadSink(
                f"from_epoch: {sink!r} cannot take back what it has of later epochs; give a sink that can, "
                "such as ps.parquet(), or one of your own with takes_back = True"
            )


@dataclass(frozen=True)
class _Aside:
    """Where late tuples and rejects go: to a folder of the checkpoint, or to the one that was given."""

    root: Location
    id: str
    begins: Begins
    options: RunOptions
    streams: tuple[Stream, ...]

    def late(self, stream: Stream) -> ParquetFiles:
        """Late tuples of a stream."""
        return self._open(_own(self._folder("late", self.options.late), stream.name, self.streams), "late")

    def all_rejects(self, stages: int) -> dict[str | int, ParquetFiles]:
        """Tuples of each stream that do not fit, and rows of each stage that a function cannot take."""
        rejects = self._folder("rejects", self.options.rejects)
        folders: dict[str | int, Location] = {
            each.name: _own(rejects, each.name, self.streams) for each in self.streams
        }
        for number in range(stages):
            folder = rejects / f"stage-{number}"
            # An earlier run may have refused rows of an epoch that it did not commit.
            if self.options.on_error == "set aside" or folder.names():
                folders[number] = folder
        return {origin: self._open(folder, "rejects") for origin, folder in folders.items()}

    def missed(self, stages: int) -> dict[int, ParquetFiles]:
        """Tuples of each stage that a slower input brought too late."""
        late = self._folder("late", self.options.late)
        return {number: self._open(late / f"stage-{number}", "late") for number in range(stages)}

    def judged(self, stages: Iterable[int]) -> dict[int, ParquetFiles]:
        """Tuples that came too late for each of these stages, which judge by their state."""
        late = self._folder("late", self.options.late)
        return {number: self._open(late / f"into-stage-{number}", "late") for number in stages}

    def _folder(self, kind: str, given: ParquetSink | None) -> Location:
        return self.root / kind if given is None else given.folder

    def _open(self, folder: Location, kind: str) -> ParquetFiles:
        given = self.options.late if kind == "late" else self.options.rejects
        shared = given is not None and given.shared
        return ParquetFiles(
            folder,
            f"{self.id}-{kind}",
            kind,
            self.begins,
            shared,
            Purpose.ASIDE,
            compression=COMPRESSION if given is None else given.compression,
        )


def _refusals(options: RunOptions, rejects: dict[str | int, ParquetFiles]) -> RefusalSetup | None:
    """Where rows go for which a function raises; None if the run fails instead."""
    if options.on_error == "fail":
        return None
    return RefusalSetup(rejects, options.most_errors)


def _settings(runner: StageRunner, runners: Sequence[StageRunner], options: RunOptions) -> Settings:
    """What is set for a stage with channels of its own."""
    return Settings(
        resources=_resources(runner.stage, options),
        partitioning=options.partitioning,
        most_bytes=options.most_moved,
        sigma=options.sigma,
        dealing=options.dealing,
        hosted=tuple(each.number for each in hosted_by(runners, runner.number)),
        counted=_counts(options),
        adapts=options.control,
    )


def _counts(options: RunOptions) -> Counts:
    """Whether keys are counted: for policies, or for a partitioning that the user chose for it."""
    chosen = options.partitioning != "balanced" and REGISTRY[options.partitioning].next is not None
    if options.policy is not None or chosen:
        return "always"
    return "never" if options.control == "off" else "as asked"


def _resources(stage: Stage, options: RunOptions) -> dict[Form, Resources]:
    """How the cost of a key grows with its frequency: as given for the stage, else as its operator says."""
    given = (options.resources or {}).get(stage.number)
    if isinstance(given, Resources):
        return dict.fromkeys(get_args(Form), given)
    return {
        form: replace(
            stage.operator.resources(form) if given is None else Resources.of(given),
            tolerances=options.tolerances,
        )
        for form in get_args(Form)
    }


@dataclass(frozen=True)
class _Nodes:
    """What a run may use: task slots at most, and executors that it may change, if any.

    A `live` run has sources that do not end.
    """

    slots: int
    live: bool
    executors: Executors | None = None
    least: int = 1
    most: int = 1


def _nodes(options: RunOptions, spark: SparkSession, *, live: bool) -> _Nodes:
    """Executors are changed in live runs on clusters, unless that is switched off."""
    slots = spark.sparkContext.defaultParallelism
    if options.scaling_name == "off" or options.control == "off" or not live:
        return _Nodes(slots, live)
    executors = Executors(spark.sparkContext)
    if executors.why_fixed:
        if options.scaling is not None:
            raise BadOption(f"scaling={options.scaling!r}; {executors.why_fixed}: give 'off', or None")
        return _Nodes(slots, live)
    least, most = options.executors or (1, executors.expected())
    return _Nodes(max(most * executors.observed().cores, 1), live, executors, least, most)


def _control(
    options: RunOptions,
    requests: Requests,
    files: LayoutFiles,
    folder: Checkpoint,
    nodes: _Nodes,
) -> RunControl:
    """The controller of a run: the user's policy first, then Penstock's own unless they are switched off."""
    given: Any = options.policy
    own = {} if given is None else {"policy": FunctionPolicy(given)}
    setup = Setup(
        policies={} if options.control == "off" else _policies(options, requests, nodes),
        limits=options.limits or Limits(),
        mode="observe" if options.control == "observe" else "on",
        foreign=tuple(own),
    )
    controller = setup.controller(files.router, own)
    controller.check = requests.check_decision
    assert folder.ownership is not None
    recording = RecordingFiles(
        folder.control, folder.ownership.number, setup, files.router, controller.to_json
    )
    return RunControl(controller, requests, recording, nodes.executors)


def _policies(options: RunOptions, requests: Requests, nodes: _Nodes) -> dict[str, dict[str, Any]]:
    """Penstock's own policies: for layouts, groupings, batches, executors and the pace."""
    layout: dict[str, Any] = {"total": True}
    if not isinstance(options.channels, int):
        least, most = options.channels or (1, None)
        layout = {"least": least, "most": most}
    policies: dict[str, dict[str, Any]] = {"layout": layout}
    settings = {name for each in requests.steering.values() for name in each.choices()}
    if "grouping" in settings:
        policies["grouping"] = {} if "total" in layout else layout
    if "batch" in settings:
        bound = options.latency_seconds
        policies["batches"] = {} if bound is None else {"bound": bound}
    if nodes.executors is not None:
        policies["scaling"] = options.scaling_policy(nodes.least, nodes.most)
    if nodes.live and options.trigger is None:
        policies["pacing"] = {"bound": options.latency_seconds}
    return policies


def _note(runner: StageRunner) -> StageNote:
    """Notes on a stage, so that its state can be read without the query."""
    return StageNote(str(runner.stage.operator), runner.stage.operator.key_names, runner.kernel.tables)


def _own(folder: Location, name: str | int, among: tuple[Any, ...]) -> Location:
    """A folder for each where there are several."""
    return folder / str(name) if len(among) > 1 else folder


def _named(name: str, place: int) -> str:
    return name if place == 0 else f"{name}-{place}"


def _channels(options: RunOptions, slots: int, subqueries: Subqueries) -> tuple[int, ...]:
    """The channels of every stage: the given total, in proportion to the cost of a tuple.

    Of a range each stage has the least at first. By default each has one per core, since the stages of an
    epoch take turns on the same cores. Where executors come and go, these are the cores of all that there can
    be: then no state moves with them.
    """
    if not isinstance(options.channels, int):
        first = slots if options.channels is None else options.channels[0]
        return tuple(1 if is_single(stage) else first for stage in subqueries.stages)
    hosts = sum(stage.host is None for stage in subqueries.stages)
    return channels_of(subqueries, max(options.channels, hosts), options.costs)


def _close(
    sinks: Iterable[OpenSink], checkpoint: Checkpoint, more: Iterable[Callable[[], None]] = ()
) -> None:
    """Close every sink and what else is open and give the checkpoint back, then raise the first failure."""
    with ExitStack() as stack:
        stack.callback(checkpoint.release)
        for close in more:
            stack.callback(close)
        for each in sinks:
            stack.callback(each.close)
