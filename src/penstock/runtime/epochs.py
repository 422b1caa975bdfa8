"""Runs one epoch of a query after another: what each begins from, and what it reports at its end."""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.connect import EpochId, EpochTaken
from penstock.control.observation import Observation, StageChannels
from penstock.control.scaling.pacing import EpochTaken as EpochCommitted
from penstock.errors import BadSource, DamagedCheckpoint
from penstock.query import Stream
from penstock.runtime.control import RunControl
from penstock.runtime.epoch import Epoch, RunSetup
from penstock.runtime.epoch_input import EpochInput, StreamSeen
from penstock.runtime.latency import LatencyMeter
from penstock.runtime.merger import EpochMergers, Merger, Receiver
from penstock.runtime.observation import (
    Decision,
    TasksRan,
    decided,
    epoch_progress,
    scaled,
    stage_channels,
)
from penstock.runtime.pacer import Pacer
from penstock.runtime.planning import Planner
from penstock.runtime.progress import EpochProgress, Phases, ResultLatency
from penstock.runtime.records import Manifest, StageRecord
from penstock.runtime.refusals import EpochRefusals
from penstock.runtime.rescale.batching import batches_decided
from penstock.runtime.rescale.grouping import groupings_decided
from penstock.runtime.rescale.requests import Rescaling
from penstock.runtime.rescale.splitting import splits_decided
from penstock.runtime.results import ResultReaders
from penstock.runtime.sources import bounded
from penstock.runtime.spark.failures import Failing, translated
from penstock.runtime.spark.frames import marked
from penstock.runtime.spark.offsets import SourceNote, SparkOffsets
from penstock.runtime.spark.session import prepare
from penstock.runtime.stage import Receipt, hosted_by

__all__ = ["MOST_DECISIONS", "ORPHANS_EVERY", "Epochs"]

ORPHANS_EVERY = 64
"""After so many epochs the files of failed attempts are searched for and deleted."""

_LOGGER = logging.getLogger("penstock.run")
MOST_DECISIONS = 1000
"""The number of decisions that a run remembers."""


@dataclass(frozen=True)
class Offered:
    """What Spark brings for an epoch: new tuples by stream, files they came from, and what sources say."""

    session: SparkSession
    arrivals: Mapping[str, DataFrame] = field(default_factory=dict)
    taken: Mapping[str, EpochTaken] = field(default_factory=dict)
    notes: Mapping[str, SourceNote] = field(default_factory=dict)


@dataclass
class Epochs:
    """Runs the epochs of one query; the manifest of the last epoch is all it remembers."""

    session: SparkSession
    works: RunSetup
    planner: Planner
    report: Callable[[EpochProgress], None]
    control: RunControl
    clock: Callable[[], float] = time.time
    meter: LatencyMeter | None = None
    pacer: Pacer | None = None
    pause: float = field(init=False, default=0.0)
    most_slots: int | None = None
    readers: ResultReaders = field(default_factory=ResultReaders)
    last: Manifest | None = field(init=False)
    receipts: dict[int, list[Receipt]] = field(init=False, default_factory=dict)
    tasks: dict[int, TasksRan] = field(init=False, default_factory=dict)
    decisions: deque[Decision] = field(init=False, default_factory=lambda: deque(maxlen=MOST_DECISIONS))

    @property
    def rescaling(self) -> Rescaling:
        """The requests for its stages."""
        return self.works.rescaling

    def __post_init__(self) -> None:
        self.last = self.works.checkpoint.latest()
        self._shown = self.last
        self._first = True
        self._happened = 0
        self.offsets = SparkOffsets(self.works.checkpoint.spark)
        self._noted: Mapping[str, SourceNote] = {}
        self._slots = self.session.sparkContext.defaultParallelism
        if self.last is not None:
            self.planner.resume(self.last)
            self.control.resume(self.last.control)
        for number, record in enumerate(self.last.stages if self.last else ()):
            self.rescaling.frequent[number].resume(record.keys)
        for number, plan in enumerate(self.last.plan.stages if self.last else ()):
            self.rescaling.costs[number].resume(plan.costs, self.rescaling.routers)

    def run(self, frame: DataFrame, epoch: int, query: StreamingQuery) -> None:
        """Run one micro-batch of Structured Streaming; `query` is the streaming query that runs it."""
        epoch_id = EpochId(epoch)
        last = self.last
        with self.works.checkpoint.owned(), translated(Failing(epoch)):
            if self._first:
                self._check_continuity(epoch_id)
                self._first = False
            if last is not None and last.epoch_id >= epoch_id:
                return
            prepare(frame.sparkSession, self.works.graph.setting)
            if self.most_slots is not None:
                # Spark cuts files for the executors that there are now; more may come while the epoch runs.
                frame.sparkSession.conf.set("spark.sql.files.minPartitionNum", str(self.most_slots))
            digest = self.offsets.settle(epoch)
            arrivals = self.works.arrivals
            try:
                arrivals.check_files(epoch, query)
            except BadSource:
                # If Spark reads other files than the epoch was planned with, that is the reason.
                plan = self.works.checkpoint.plan(epoch_id)
                if plan is not None:
                    self.offsets.check(epoch, plan.offsets, "plan")
                raise
            offered = Offered(
                frame.sparkSession,
                arrivals.apart(frame, query),
                arrivals.files_taken(query),
                self._notes(epoch_id),
            )
            self._happen(epoch_id, offered, digest)

    def drain(self) -> None:
        """Close every window that is still open, because a bounded source has ended."""
        last = self.last
        if (
            last is None
            or last.epoch_id.drain
            or all(each.newest is None for each in last.frontiers.values())
        ):
            return
        # A separate session: the settings of epochs must not change the user's.
        session = self.session.newSession()
        prepare(session, self.works.graph.setting)
        with self.works.checkpoint.owned(), translated(Failing(last.epoch_id.epoch)):
            self._happen(EpochId(last.epoch_id.epoch, drain=True), Offered(session), last.plan.offsets)

    def _notes(self, epoch_id: EpochId) -> Mapping[str, SourceNote]:
        """What the sources said of themselves when the epoch was planned; what is new is logged."""
        if all(map(bounded, self.works.arrivals.streams)):
            return {}
        notes = self.offsets.notes(epoch_id.epoch)
        for name, note in notes.items():
            if (note.away or note.waiting) and str(note) != str(self._noted.get(name)):
                _LOGGER.warning("stream %s: %s", name, note)
        self._noted = notes
        return notes

    def _check_continuity(self, epoch_id: EpochId) -> None:
        """Check that Spark's part of the checkpoint and ours are of the same epoch."""
        known = -1 if self.last is None else self.last.epoch_id.epoch
        if epoch_id.epoch not in {known, known + 1}:
            raise DamagedCheckpoint(
                f"checkpoint {self.works.checkpoint.root.uri}: Spark continues at epoch {epoch_id.epoch}, "
                f"but the last manifest is of epoch {known}; restore the whole folder from one "
                "backup, or use a new one"
            )
        if self.last is not None:
            self.offsets.check(known, self.last.plan.offsets, "manifest")

    def _happen(self, epoch_id: EpochId, offered: Offered, offsets: str) -> None:
        phases, arrived = Phases(), self.clock()
        remembered = self.control.remembered()
        plan = self.planner.plan(epoch_id, self.last, offsets)
        if plan.offsets != offsets:
            self.offsets.check(epoch_id.epoch, plan.offsets, "plan")
        before = self.last or Manifest(epoch_id, plan)
        phases.ends("plan")
        started = self.clock()
        streams = {each.name: each for each in self.works.arrivals.streams}
        intake = EpochInput(
            offered.session,
            {name: marked(frame, streams[name], plan.now) for name, frame in offered.arrivals.items()},
            self._bounds(before),
            self.rescaling.routers,
            self._floors(before),
            notes=offered.notes,
            refused=None if self.works.refusals is None else EpochRefusals(self.works.refusals),
        )
        epoch = Epoch(self.works, epoch_id, plan, before, intake, phases, offered.taken)
        epoch.mergers = self._mergers(epoch_id)
        manifest = replace(epoch.run(), control=remembered)
        delivered = self.clock()
        ended = delivered - phases.times["deliver"]
        self.works.checkpoint.commit(manifest)
        self.last = manifest
        if self._shown is None or not epoch_id.drain:
            # A drain takes no rows and leaves no state: what the channels had before it says more.
            self._shown, self.receipts = manifest, epoch.receipts
            self.tasks = {
                number: TasksRan(tuple(epoch.tasks[number]), wall) for number, wall in epoch.walls.items()
            }
        committed = self.clock()
        phases.ends("commit")
        epoch.clean_up()
        self.readers.committed()
        self._happened += 1
        self.works.checkpoint.collect(orphans=self._happened % ORPHANS_EVERY == 0)
        phases.ends("collect")
        self.decisions += decided(manifest, before, self.planner.followed)
        self.decisions += splits_decided(manifest, before, self.planner.split)
        self.decisions += groupings_decided(manifest, before, self.planner.grouped)
        self.decisions += batches_decided(manifest, before, self.planner.batched)
        self.rescaling.settle(plan.stages)
        seen = epoch_progress(
            self.works.graph.stages, manifest, before, phases.times, epoch.receipts, self.clock()
        )
        away = tuple(gate for note in offered.notes.values() for gate in note.away)
        latency = self._latency(intake.seen, manifest, before, arrived, delivered)
        waiting = self._left(offered, manifest)
        seen = replace(
            seen,
            warnings=tuple(epoch.warnings),
            away=away,
            latency=latency,
            waiting=waiting,
            disorder=epoch.mergers.disorder,
        )
        if self.pacer is not None and not epoch_id.drain:
            pace = self.pacer.after(
                EpochCommitted(
                    epoch=epoch_id.epoch,
                    rows=manifest.counts.rows,
                    started=self.pacer.taken(arrived),
                    committed=committed,
                    waiting=waiting,
                    moved=bool(manifest.moved),
                )
            )
            self.pause = pace.wait
            seen = replace(seen, wait_seconds=pace.wait, pace=pace.reason)
        self.planner.ended()
        self.report(seen)
        # After a drain nothing comes that could be decided on.
        if not self.control.silent and not epoch_id.drain:
            rulings = self.control.after(
                epoch_id.epoch,
                lambda: Observation(
                    epoch=epoch_id.epoch,
                    stages=self.observed(),
                    arrived=arrived,
                    started=started,
                    ended=ended,
                    committed=committed,
                    rows=manifest.counts.rows,
                    left=waiting,
                    latency=None if latency is None else latency.p99,
                    **self._at_hand(),
                ),
            )
            self.decisions += scaled(rulings)

    def _mergers(self, epoch_id: EpochId) -> EpochMergers:
        """A merger for each output that somebody reads, or takes before the epoch is whole."""
        found: dict[int, Merger] = {}
        ways = {}
        for place, outlet in enumerate(self.works.graph.outlets):
            delivery = outlet.delivery
            to: list[Receiver] = [*([delivery] if delivery.in_parts else []), *self.readers.of(place)]
            if not to:
                continue
            found[place] = Merger(epoch_id, delivery.target, outlet.schema, delivery.order, to)
            if len(outlet.exits) == 1 and not outlet.written:
                ways[outlet.exits[0]] = place
        return EpochMergers(found, ways)

    def _at_hand(self) -> dict[str, Any]:
        """The task slots that there are now, and the executors if their number can be changed."""
        executors = self.control.executors
        if executors is None:
            return {"slots": self._slots}
        nodes = executors.observed()
        return {"slots": max(nodes.executors * nodes.cores, 1), "nodes": nodes}

    def _left(self, offered: Offered, manifest: Manifest) -> int:
        """The number of tuples that the sources had and the epoch left; a guess where they do not count."""
        left = 0
        for name, frontier in manifest.frontiers.items():
            told = offered.notes.get(name)
            if told is not None:
                left += told.left
            elif not frontier.whole:
                left += max(manifest.counts.rows, 1)
        return left

    def _latency(
        self,
        seen: Mapping[str, StreamSeen],
        manifest: Manifest,
        before: Manifest,
        offered: float,
        delivered: float,
    ) -> ResultLatency | None:
        """How old the results of an epoch were when they were delivered."""
        if self.meter is None:
            return None
        earlier = before.stages or (StageRecord(),) * len(manifest.stages)
        ends = {
            runner.number: runner.kernel.ends(then.position, now.position)
            for runner, then, now in zip(self.works.graph.stages, earlier, manifest.stages, strict=True)
        }
        return self.meter.epoch(
            seen, ends, offered=offered, delivered=delivered, results=manifest.counts.results
        )

    def observed(self) -> tuple[StageChannels, ...]:
        """The channels of every stage that has its own, after the last epoch that was no drain."""
        if self._shown is None:
            return ()
        stages = self.works.graph.stages
        return tuple(
            stage_channels(
                [each, *hosted_by(stages, each.number)],
                self._shown,
                self.receipts,
                self.rescaling,
                self.tasks.get(each.number),
            )
            for each in stages
            if each.stage.host is None
        )

    def _bounds(self, before: Manifest) -> dict[str, int | None]:
        """The times below which tuples of a stream are late: an operator that they feed has passed them."""
        bounds: dict[str, int | None] = {}
        for (place, port), bound in self._port_bounds(before).items():
            for feed in self.works.graph.stages[place].inputs[port].port:
                if isinstance(feed.origin, Stream) and bound is not None:
                    known = bounds.get(feed.origin.name)
                    bounds[feed.origin.name] = bound if known is None else max(known, bound)
        return bounds

    def _port_bounds(self, before: Manifest) -> dict[tuple[int, int], int | None]:
        """The times below which tuples come too late for a port.

        Where a stage passes tuples on at once, these are the bounds of the ports that it feeds.
        """
        found: dict[tuple[int, int], int | None] = {}
        passing: dict[int, int] = {}
        for place in reversed(range(len(before.stages))):
            runner = self.works.graph.stages[place]
            for port, entrance in enumerate(runner.inputs):
                bound = runner.kernel.bound(before.stages[place].position, port)
                if runner.stage.operator.passing:
                    bound = passing.get(place)
                found[place, port] = bound
                for feed in entrance.port:
                    if isinstance(feed.origin, int) and bound is not None:
                        passing[feed.origin] = max(bound, passing.get(feed.origin, bound))
        return found

    def _floors(self, before: Manifest) -> dict[tuple[int, int], int]:
        """How far each port has come; with best effort it may have passed what a slower stage still gives."""
        if self.works.merging == "transparent":
            return {}
        return {number: bound for number, bound in self._port_bounds(before).items() if bound is not None}
