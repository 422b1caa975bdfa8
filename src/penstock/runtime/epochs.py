"""Epoch after epoch of one query: what each begins from, and what is told of it when it is done."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import DamagedCheckpoint
from penstock.query import Stream
from penstock.runtime.epoch import Epoch, Works
from penstock.runtime.intake import Intake
from penstock.runtime.observation import Decision, Observation, Policy, StageChannels, decided
from penstock.runtime.observing import epoch_progress, stage_channels
from penstock.runtime.planning import Planner
from penstock.runtime.progress import EpochProgress, Phases
from penstock.runtime.receipts import Receipt
from penstock.runtime.records import Manifest, Moment
from penstock.runtime.rescaling import Rescaling
from penstock.runtime.spark.failures import translated
from penstock.runtime.spark.session import prepare
from penstock.runtime.splits import splits_decided

__all__ = ["MOST_DECISIONS", "Epochs"]

MOST_DECISIONS = 1000
"""How many decisions a run remembers."""


@dataclass
class Epochs:
    """Runs epoch after epoch of one query; the manifest of the last one is all it remembers."""

    session: SparkSession
    works: Works
    planner: Planner
    report: Callable[[EpochProgress], None]
    clock: Callable[[], float] = time.time
    last: Manifest | None = field(init=False)
    policy: Policy | None = None
    receipts: dict[int, list[Receipt]] = field(init=False, default_factory=dict)
    decisions: deque[Decision] = field(init=False, default_factory=lambda: deque(maxlen=MOST_DECISIONS))

    @property
    def rescaling(self) -> Rescaling:
        """What is asked for of its stages."""
        return self.works.rescaling

    def __post_init__(self) -> None:
        self.last = self.works.checkpoint.latest()
        self._first = True
        for number, record in enumerate(self.last.stages if self.last else ()):
            self.rescaling.frequent[number].resume(record.keys)

    def run(self, frame: DataFrame, epoch: int, query: StreamingQuery) -> None:
        """One micro-batch of Structured Streaming; `query` is the one that runs it."""
        moment = Moment(epoch)
        last = self.last
        if self._first:
            self._check_continuity(moment)
            self._first = False
        if last is not None and last.moment >= moment:
            return
        prepare(frame.sparkSession)
        with translated():
            self._happen(moment, frame.sparkSession, self.works.arrivals.apart(frame, query))

    def drain(self) -> None:
        """Close every window that is still open; what the end of a bounded source means."""
        last = self.last
        if last is None or last.moment.drain or all(each.newest is None for each in last.frontiers.values()):
            return
        # A session of its own: the settings of epochs are not for the user's.
        session = self.session.newSession()
        prepare(session)
        with translated():
            self._happen(Moment(last.moment.epoch, drain=True), session, {})

    def _check_continuity(self, moment: Moment) -> None:
        """Spark's part of the checkpoint and ours must tell the same story."""
        known = -1 if self.last is None else self.last.moment.epoch
        if moment.epoch not in {known, known + 1}:
            raise DamagedCheckpoint(
                f"checkpoint {self.works.checkpoint.root.uri}: Spark continues at epoch {moment.epoch}, the "
                f"last manifest is of epoch {known}; restore the whole folder from one backup, or use a new "
                "one"
            )

    def _happen(self, moment: Moment, session: SparkSession, arrivals: Mapping[str, DataFrame]) -> None:
        phases = Phases()
        plan = self.planner.plan(moment, self.last)
        before = self.last or Manifest(moment, plan)
        phases.ends("plan")
        routers = self.rescaling.routers
        intake = Intake(session, arrivals, self._bounds(before), routers, self._floors(before))
        epoch = Epoch(self.works, moment, plan, before, intake, phases)
        manifest = epoch.run()
        self.works.checkpoint.commit(manifest)
        self.last = manifest
        self.planner.splits.observe(epoch.receipts)
        self.receipts |= epoch.receipts
        self.rescaling.settle(plan.stages)
        phases.ends("commit")
        epoch.clean_up()
        self.works.checkpoint.collect(orphans=False)
        phases.ends("collect")
        self.decisions += decided(manifest, before, self.planner.followed)
        self.decisions += splits_decided(manifest, before)
        seen = epoch_progress(
            self.works.graph.stages, manifest, before, phases.times, epoch.receipts, self.clock()
        )
        self.report(seen)
        if self.policy is not None:
            for wish in self.policy(Observation(moment.epoch, self.observed())):
                self.rescaling.ask(wish)

    def observed(self) -> tuple[StageChannels, ...]:
        """The channels of every stage that has channels of its own, after the last epoch."""
        if self.last is None:
            return ()
        return tuple(
            stage_channels(runner, plan, record, self.receipts.get(runner.stage.number, []), self.rescaling)
            for runner, plan, record in zip(
                self.works.graph.stages, self.last.plan.stages, self.last.stages, strict=True
            )
            if runner.stage.beside is None
        )

    def _bounds(self, before: Manifest) -> dict[str, int | None]:
        """The times below which tuples of a stream are late: an operator that they feed has passed them."""
        bounds: dict[str, int | None] = {}
        for place, record in enumerate(before.stages):
            runner = self.works.graph.stages[place]
            for port, entrance in enumerate(runner.entrances):
                bound = runner.bound(record, port)
                for feed in entrance.port:
                    if isinstance(feed.origin, Stream) and bound is not None:
                        known = bounds.get(feed.origin.name)
                        bounds[feed.origin.name] = bound if known is None else max(known, bound)
        return bounds

    def _floors(self, before: Manifest) -> dict[tuple[int, int], int]:
        """By best effort a port may have passed what a slower stage still gives; how far each has come."""
        if self.works.merging == "transparent":
            return {}
        found = {
            entrance.number: self.works.graph.stages[place].bound(record, port)
            for place, record in enumerate(before.stages)
            for port, entrance in enumerate(self.works.graph.stages[place].entrances)
        }
        return {number: bound for number, bound in found.items() if bound is not None}
