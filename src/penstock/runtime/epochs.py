"""Runs one epoch of a query after another: what each begins from, and what it reports at its end."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from penstock.connect import NOTHING_SAID, EpochId, SourceNote, Split
from penstock.control.observation import Observation, StageChannels
from penstock.errors import RunError
from penstock.query import Stream
from penstock.runtime.control import RunControl
from penstock.runtime.cores import Node, here, usable_cores
from penstock.runtime.dataflow.channels import Receipt
from penstock.runtime.dataflow.receipts import StreamSeen, TaskReceipt
from penstock.runtime.epoch import Differs, Epoch, RunSetup
from penstock.runtime.latency import LatencyMeter
from penstock.runtime.merger import EpochMergers, Merger, Receiver
from penstock.runtime.observation import (
    Decision,
    TasksRan,
    decided,
    epoch_progress,
    operators_worked,
    scaled,
    stage_channels,
    units_worked,
)
from penstock.runtime.outlook import Outlook
from penstock.runtime.pacer import Pacer
from penstock.runtime.planning import Planner
from penstock.runtime.progress import EpochProgress, Phases, ResultLatency
from penstock.runtime.records import EpochPlan, Manifest, StageRecord, StreamRead
from penstock.runtime.requests import Requests
from penstock.runtime.results import ResultReaders
from penstock.runtime.sampling import sampled_keys
from penstock.runtime.spark.entries import LEAST_BYTES, Reads, shared_out
from penstock.runtime.spark.failures import Failing, translated
from penstock.runtime.spark.session import prepare
from penstock.runtime.stage import members_of

__all__ = ["MOST_DECISIONS", "ORPHANS_EVERY", "Epochs"]

ORPHANS_EVERY = 64
"""After so many epochs the files of failed attempts are searched for and deleted."""

_LOGGER = logging.getLogger("penstock.run")
MOST_DECISIONS = 1000
"""The number of decisions that a run remembers."""
_FINER = 3
"""So many tasks for each slot read where executors come and go, if they have enough to do."""
_WORTH_S, _DEAR_S = 0.1, 0.5
"""So much work is worth a task of its own, if reading takes so long that more tasks are to be had."""
_MOST_TRIES = 4
"""So often is an epoch run if tasks have to run again while it runs."""


@dataclass
class Epochs:
    """Runs the epochs of one query; the manifest of the last epoch is all it remembers.

    With a `tick`, an epoch runs at least so often, in seconds, also if no stream has tuples.
    """

    works: RunSetup
    planner: Planner
    report: Callable[[EpochProgress], None]
    control: RunControl
    clock: Callable[[], float] = time.time
    meter: LatencyMeter | None = None
    pacer: Pacer | None = None
    tick: float | None = None
    slots: int = field(init=False)
    readers: ResultReaders = field(default_factory=ResultReaders)
    last: Manifest | None = field(init=False)
    receipts: dict[int, list[Receipt]] = field(init=False, default_factory=dict)
    tasks: dict[int, TasksRan] = field(init=False, default_factory=dict)
    decisions: deque[Decision] = field(init=False, default_factory=lambda: deque(maxlen=MOST_DECISIONS))

    @property
    def requests(self) -> Requests:
        """The requests for its stages."""
        return self.works.requests

    def __post_init__(self) -> None:
        self.last = self.works.checkpoint.latest()
        self._shown = self.last
        self.outlook = Outlook(self.works.readers)
        self._happened = 0
        self._ran = time.monotonic()
        self._noted: Mapping[str, SourceNote] = {}
        self._grain = LEAST_BYTES
        self._nodes: dict[str, Node] = {}
        self.slots = self.works.jobs.slots
        if self.last is not None:
            self.planner.resume(self.last)
            self.control.resume(self.last.control)

    def next(self) -> bool:
        """Run the next epoch if there is something to run it for: an earlier try, new tuples, or a tick."""
        epoch_id = EpochId(0 if self.last is None else self.last.epoch_id.epoch + 1)
        with self.works.checkpoint.owned(), translated(Failing(epoch_id.epoch)):
            known = self.planner.known(epoch_id)
            if known is not None:
                self._happen(epoch_id, known.reads)
                return True
            reads, news = self._ahead()
            ticked = self.tick is not None and time.monotonic() - self._ran >= self.tick
            if not news and not ticked:
                return False
            self._happen(epoch_id, reads)
        return True

    @property
    def ended(self) -> bool:
        """Of bounded sources that have nothing new: whether all have come to their end."""
        return all(each.ended for each in self.works.readers.values())

    def drain(self) -> None:
        """Close every window that is still open, because all sources have ended."""
        last = self.last
        if (
            last is None
            or last.epoch_id.drain
            or all(each.newest is None for each in last.frontiers.values())
        ):
            return
        with self.works.checkpoint.owned(), translated(Failing(last.epoch_id.epoch)):
            self._happen(EpochId(last.epoch_id.epoch, drain=True), last.plan.reads)

    def _after(self, name: str) -> Mapping[str, Any]:
        """How far a stream has been read."""
        known = {} if self.last is None else self.last.plan.reads
        return known[name].upto if name in known else {}

    def _ahead(self) -> tuple[dict[str, StreamRead], bool]:
        """How far the next epoch reads each stream, and whether any of them has news."""
        reads, news = {}, False
        for name, reader in self.works.readers.items():
            after = self._after(name)
            found = reader.ahead(after)
            news |= found is not None
            reads[name] = (
                StreamRead(after) if found is None else StreamRead(found.offset, found.whole, found.left)
            )
        return reads, news

    def _splits(self, reads: Mapping[str, StreamRead]) -> dict[str, Sequence[Split]]:
        """What an epoch reads of each stream that has news, as splits."""
        found = {}
        for name, reader in self.works.readers.items():
            after, upto = self._after(name), reads[name].upto
            if upto != after:
                found[name] = reader.splits(after, upto, self.slots)
        return found

    def _sampled(self, reads: Mapping[str, StreamRead], stage: int, port: int, now: int) -> Iterator[Any]:
        """The keys of a port that an epoch is about to read."""
        tasks = shared_out(self._splits(reads), 1)
        return sampled_keys(self.works.graph.compiled, tasks, stage, port, now)

    def _reads(self, plan: EpochPlan) -> Reads:
        """What an epoch reads by its plan."""
        splits, frames = {}, {}
        for name, reader in self.works.readers.items():
            after, upto = self._after(name), plan.reads[name].upto
            if upto == after:
                continue
            splits[name] = reader.splits(after, upto, plan.tasks)
            found = reader.frames(self.works.jobs.session, after, upto)
            for each in found:
                prepare(each.sparkSession, self.works.graph.setting)
            if found:
                frames[name] = found
        tasks = shared_out(splits, plan.tasks, plan.grain) if any(splits.values()) else ()
        return Reads(tasks, frames)

    def _notes(self, plan: EpochPlan) -> Mapping[str, SourceNote]:
        """What the offsets of an epoch say of the streams behind its sources; what is new is logged."""
        notes = {name: reader.note(plan.reads[name].upto) for name, reader in self.works.readers.items()}
        notes = {name: each for name, each in notes.items() if each != NOTHING_SAID}
        for name, note in notes.items():
            if (note.away or note.waiting) and str(note) != str(self._noted.get(name)):
                _LOGGER.warning("stream %s: %s", name, note)
        self._noted = notes
        return notes

    def _happen(self, epoch_id: EpochId, reads: Mapping[str, StreamRead]) -> None:
        phases, arrived = Phases(), self.clock()
        remembered = self.control.remembered()
        # As many tasks as executors at most would leave some idle while there are fewer.
        tasks = self.slots * (1 if self.control.executors is None else _FINER), self._grain
        plan = self.planner.plan(epoch_id, self.last, reads, tasks, partial(self._sampled, reads))
        before = self.last or Manifest(epoch_id, plan)
        notes = {} if epoch_id.drain else self._notes(plan)
        mergers = self._mergers(epoch_id)
        phases.ends("plan")
        started = self.clock()
        epoch, manifest = self._tried(epoch_id, plan, before, notes, mergers, phases)
        manifest = replace(manifest, control=remembered)
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
        for name, reader in self.works.readers.items():
            reader.commit(plan.reads[name].upto)
        epoch.clean_up()
        self.readers.committed()
        self._happened += 1
        self._ran = time.monotonic()
        self.works.checkpoint.collect(orphans=self._happened % ORPHANS_EVERY == 0)
        phases.ends("collect")
        self.decisions += decided(manifest, before, self.planner.followed, self.requests.steering)
        self.requests.settle(plan.stages)
        seen = epoch_progress(
            self.works.graph.stages, manifest, before, phases.times, epoch.receipts, self.clock()
        )
        away = tuple(gate for note in notes.values() for gate in note.away)
        latency = self._latency(epoch.seen, manifest, before, arrived, delivered)
        left = {name: _left(read, epoch.seen.get(name)) for name, read in plan.reads.items()}
        waiting = 0 if epoch_id.drain else sum(left.values())
        told = epoch.told()
        self._grain = _grain(epoch.reads, told, self._grain)
        seen = replace(
            seen,
            warnings=tuple(epoch.warnings),
            away=away,
            latency=latency,
            waiting=waiting,
            disorder=mergers.disorder,
        )
        self.planner.ended()
        rulings, expected = [], {}
        if not epoch_id.drain:
            taken = {name: each.rows for name, each in epoch.seen.items()}
            expected = self.outlook.after(taken, left, arrived, committed)
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
                    operators=operators_worked(self.works.streams, self.works.graph.stages, told, left),
                    units=units_worked(told),
                    expected=expected,
                    **self._at_hand(told),
                ),
            )
            self.decisions += scaled(rulings)
        if self.pacer is not None and not epoch_id.drain:
            self.pacer.after(arrived, committed, rulings)
            seen = replace(seen, wait_seconds=self.pacer.wait, pace=self.pacer.reason)
        self.report(seen)

    def _tried(  # noqa: PLR0913, PLR0917 -- all that an epoch begins with
        self,
        epoch_id: EpochId,
        plan: EpochPlan,
        before: Manifest,
        notes: Mapping[str, SourceNote],
        mergers: EpochMergers,
        phases: Phases,
    ) -> tuple[Epoch, Manifest]:
        """Run an epoch; again if a task ran twice and channels took rows from different attempts of it."""
        for _ in range(_MOST_TRIES):
            epoch = Epoch(
                self.works,
                epoch_id,
                plan,
                before,
                Reads() if epoch_id.drain else self._reads(plan),
                self._bounds(before),
                self._floors(before),
                notes,
                phases,
                mergers,
            )
            try:
                return epoch, epoch.run()
            except Differs as differing:
                _LOGGER.warning("epoch %d is run again: %s ran twice", epoch_id.epoch, differing)
                if mergers.mergers:
                    raise RunError(
                        f"epoch {epoch_id.epoch}: a task was lost and ran again when some of its results had "
                        "left already; start again with the same checkpoint"
                    ) from differing
            finally:
                epoch.release()
        raise RunError(
            f"epoch {epoch_id.epoch}: tasks were lost in each of {_MOST_TRIES} tries; look at the executors, "
            "then start again with the same checkpoint"
        )

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
            if len(outlet.exits) == 1 and outlet.by_channels:
                ways[outlet.exits[0]] = place
        return EpochMergers(found, ways)

    def _at_hand(self, told: Sequence[TaskReceipt]) -> dict[str, Any]:
        """The task slots that there are now and their cores, and the executors if their number can change."""
        executors = self.control.executors
        nodes = None if executors is None else executors.observed()
        slots = self.slots if nodes is None else max(nodes.executors * nodes.cores, 1)
        self._met(told, slots if nodes is None else nodes.executors)
        known = self._nodes.values() or [here()]
        return {"slots": slots, "cores": usable_cores(known, slots), "nodes": nodes}

    def _met(self, told: Sequence[TaskReceipt], executors: int) -> None:
        """Remember the executors that ran a task lately, as many as there may be.

        One that had nothing to do in an epoch is there all the same: on a single channel a run would never
        learn that it could have more.
        """
        ran = {each.took.node for each in told if each.took.node.name}
        for node in sorted(ran, key=lambda each: each.name):
            self._nodes.pop(node.name, None)
            self._nodes[node.name] = node
        while len(self._nodes) > max(executors, 1):
            del self._nodes[next(iter(self._nodes))]

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
                members_of(stages, each.number),
                self._shown,
                self.receipts,
                self.requests.steering[each.number],
                self.tasks.get(each.number),
            )
            for each in stages
            if each.stage.host is None
        )

    def shown(self) -> tuple[StageChannels, ...]:
        """The same for people, with the most frequent keys."""
        last = self._shown
        if last is None:
            return ()
        return tuple(
            replace(
                each,
                tracked=self.requests.steering[each.stage].tracked(last.plan.stages[each.stage].own),
            )
            for each in self.observed()
        )

    def _bounds(self, before: Manifest) -> dict[str, int | None]:
        """The times below which tuples of a stream are late: an operator that they feed has passed them."""
        bounds: dict[str, int | None] = {}
        for (place, port), bound in self._port_bounds(before).items():
            for feed in self.works.graph.stages[place].ports[port]:
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
            for port, feeds in enumerate(runner.ports):
                bound = runner.kernel.bound(before.stages[place].position, port)
                if runner.stage.operator.passing:
                    bound = passing.get(place)
                found[place, port] = bound
                for feed in feeds:
                    if isinstance(feed.origin, int) and bound is not None:
                        passing[feed.origin] = max(bound, passing.get(feed.origin, bound))
        return found

    def _floors(self, before: Manifest) -> dict[tuple[int, int], int]:
        """How far each port has come; with best effort it may have passed what a slower stage still gives."""
        if self.works.merging == "transparent":
            return {}
        return {number: bound for number, bound in self._port_bounds(before).items() if bound is not None}


def _left(read: StreamRead, seen: StreamSeen | None) -> int:
    """The tuples that a source had and the epoch left; a guess where it does not count."""
    return read.left or (0 if read.whole else max(1 if seen is None else seen.rows, 1))


def _grain(reads: Reads, told: Sequence[TaskReceipt], before: int) -> int:
    """The bytes of a source that are worth a task, by what those of an epoch cost: few if rows are dear."""
    size = sum(split.size for task in reads.tasks for _, split in task)
    seconds = sum(each.took.work for each in told if each.streams)
    if not size:
        return before
    if seconds < _DEAR_S:
        return LEAST_BYTES
    return min(max(int(_WORTH_S * size / seconds), 1), LEAST_BYTES)
