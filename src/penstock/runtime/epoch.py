"""One epoch, in order: its stages one after another, delivery, and the records it leaves.

The plan, the tuples and the manifest before it decide everything that an epoch does, so a replay
does the same again. Nothing that it leaves behind counts before its manifest is written.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.connect import EpochId, EpochTaken
from penstock.connect.results import Output
from penstock.connect.sinks.parquet import ParquetFiles
from penstock.control.observation import Moved
from penstock.durable import Purpose
from penstock.operators.exchange import TIME
from penstock.operators.kernel import Advance, Ends, Seen, WindowEnds
from penstock.query import Stream
from penstock.routing import Spread
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.delivering import QueryOutput, written
from penstock.runtime.epoch_input import EpochInput, StageFiles, StreamSeen
from penstock.runtime.frontier import Frontier, Merging, merged
from penstock.runtime.graph import Graph
from penstock.runtime.merger import EpochMergers
from penstock.runtime.progress import Phases
from penstock.runtime.records import Counts, EpochPlan, Manifest, StageRecord
from penstock.runtime.refusals import RefusalSetup
from penstock.runtime.rescale.moving import Moving, relocated
from penstock.runtime.rescale.requests import Rescaling
from penstock.runtime.set_aside import SetAside
from penstock.runtime.spark.arrivals import Arrivals
from penstock.runtime.spark.channels import FinishedChannels, run_channels, run_staying
from penstock.runtime.spark.exchange import MapSide
from penstock.runtime.spark.failures import Failing, translated
from penstock.runtime.spark.frames import REJECT
from penstock.runtime.spark.offsets import SourceNote
from penstock.runtime.spark.session import settings
from penstock.runtime.stage import ChannelTask, Receipt, StageRunner, folded, hosted_by, window_channels
from penstock.state.segments import Segment

__all__ = ["Epoch", "RunSetup"]


@dataclass(frozen=True)
class RunSetup:
    """What all epochs of a query share.

    Rejects are kept by the name of their stream; those of functions after a stage by the stage's number.
    """

    arrivals: Arrivals
    graph: Graph
    checkpoint: Checkpoint
    rescaling: Rescaling
    late: Mapping[str, SetAside]
    rejects: Mapping[str | int, SetAside]
    missed: Mapping[int, ParquetFiles]
    judged: Mapping[int, ParquetFiles]
    merging: Merging
    finished: FinishedChannels
    refusals: RefusalSetup | None = None


@dataclass
class Epoch:
    """An epoch in progress: what its stages have done so far.

    `receipts` are those of channels; those of `tasks` differ where rows stay where they are. `walls` is how
    long each stage took, its map side included.
    """

    works: RunSetup
    epoch_id: EpochId
    plan: EpochPlan
    before: Manifest
    intake: EpochInput
    phases: Phases
    taken: Mapping[str, EpochTaken] = field(default_factory=dict)
    frontiers: dict[str, Frontier] = field(default_factory=dict)
    moved: dict[int, StageRecord] = field(default_factory=dict)
    records: dict[int, StageRecord] = field(default_factory=dict)
    moves: list[Moved] = field(default_factory=list)
    outputs: dict[tuple[int, int], list[tuple[int, Output]]] = field(default_factory=dict)
    sides: list[MapSide] = field(default_factory=list)
    delivered: list[tuple[Any, list[Output]]] = field(default_factory=list)
    receipts: dict[int, list[Receipt]] = field(default_factory=dict)
    tasks: dict[int, list[Receipt]] = field(default_factory=dict)
    walls: dict[int, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    aside: dict[str, int] = field(default_factory=dict)
    mergers: EpochMergers = field(default_factory=EpochMergers)

    def run(self) -> Manifest:
        """Run every stage, deliver, and return what is left behind."""
        for runner in self.works.graph.stages:
            if runner.stage.host is None:
                with translated(Failing(self.epoch_id.epoch, _stages(runner, self.works.graph))):
                    self._run_group(runner)
        results = self._deliver()
        with translated(Failing(self.epoch_id.epoch, "late tuples and rejects")):
            aside = self._set_aside()
        self.phases.ends("deliver")
        refused = 0 if self.intake.refused is None else self.intake.refused.rows
        rows = {each.name: self._rows(each) for each in self.works.arrivals.streams}
        counts = replace(
            aside,
            rows=sum(rows.values()),
            results=results,
            rejected=aside.rejected + refused,
            partly_late=sum(each.partly_late for every in self.tasks.values() for each in every),
        )
        return Manifest(
            epoch_id=self.epoch_id,
            plan=self.plan,
            frontiers={
                each.name: replace(self._frontier(each), whole=self._whole(each, rows[each.name]))
                for each in self.works.arrivals.streams
            },
            stages=tuple(self.records[place] for place in range(len(self.works.graph.stages))),
            counts=counts,
            total=self.before.total + counts,
            moved=tuple(self.moves),
        )

    def _rows(self, stream: Stream) -> int:
        """The number of tuples of a stream that came in; known once those set aside are written."""
        rows = self.intake.seen.get(stream.name, StreamSeen(rows=0)).rows
        if rows is not None:
            return rows
        # It feeds one stage and nothing else: the tuples that the channels took, plus those set aside.
        (number,) = (
            runner.number
            for runner in self.works.graph.stages
            if any(feed.origin == stream for each in runner.inputs for feed in each.port)
        )
        taken = self.records[number].tuples - self._before(number).tuples
        return taken + self.aside.get(stream.name, 0)

    def clean_up(self) -> None:
        """After the commit: delete what only this epoch needed."""
        for delivery, outputs in self.delivered:
            delivery.forget(outputs)
        for handed in (*self.intake.handed.values(), *self.intake.called.values()):
            for output in handed.outputs:
                handed.folder.delete(output.name, Purpose.COLLECT)
        for aside in (*self.works.late.values(), *self.works.rejects.values()):
            aside.files.committed()
        for files in (*self.works.missed.values(), *self.works.judged.values()):
            files.committed()
        for side in self.sides:
            side.release()

    def _run_group(self, runner: StageRunner) -> None:
        """Run a stage and those in its channels."""
        number = runner.number
        members = [runner, *hosted_by(self.works.graph.stages, number)]
        self._move(members)
        record, plan = self._before(number), self.plan.stages[number]
        bound = runner.kernel.bound(record.position, 0)
        began = time.perf_counter()
        side = runner.exchange.run(self.intake, plan, bound, record.grids)
        self.sides.append(side)
        self.phases.ends("map")
        receipts: dict[int, list[Receipt]] = {}
        if side.staying is not None:
            task = self._task(runner, Advance(record.position))
            receipts[number], observed = run_staying(side.staying, task, self.intake.watched())
            self.intake.settle(observed)
            side = replace(side, seen=Seen(rows=any(each.received for each in receipts[number])))
        advances: dict[int, Advance] = {}
        for member in members:
            before = self._before(member.number).position
            frontiers = tuple(
                merged([self._promised(feed.origin, advances) for feed in each.port], self.works.merging)
                for each in member.inputs
            )
            frontiers = _onward(before.frontiers, frontiers)
            held = any(self._before(member.number).channels)
            seen = replace(side.seen if member is runner else Seen(), state=held)
            advances[member.number] = member.kernel.advance(before, frontiers, seen, self._drained)
        if side.staying is None and not all(each.idle for each in advances.values()):
            tasks = tuple(self._task(member, advances[member.number]) for member in members)
            receipts = self._run_channels(side, tasks)
        judged = [pair for each in receipts.get(number, []) for pair in each.late]
        late = runner.exchange.judged_late(self.intake, plan, judged) if judged else None
        if late is not None:
            self.intake.judged.append((number, late))
        if receipts:
            self.walls[number] = time.perf_counter() - began
        for member in members:
            found = side.spread if member is runner else None
            self._record(member, advances[member.number], receipts.get(member.number, []), found)
            if member is runner and side.buckets:
                taken = self.records[number].tuples - self._before(number).tuples
                self.records[number] = replace(self.records[number], in_bucket=taken / side.buckets)
        self.phases.ends("channels")

    def _run_channels(self, side: MapSide, tasks: tuple[ChannelTask, ...]) -> dict[int, list[Receipt]]:
        """Run the channels; their results leave as they finish, where somebody takes them."""
        session, channels = self.intake.session, len(tasks[0].state)
        ends = {
            each.stage: self._ends(each)
            for each in tasks
            if any(stage == each.stage for stage, _ in self.mergers.ways)
        }
        if not ends:
            return run_channels(session, side, channels, tasks)
        with self.mergers.running(ends, channels) as told:
            return self.works.finished.run(session, side, channels, tasks, told)

    def _ends(self, task: ChannelTask) -> Ends:
        """The windows that a stage closes, without those that must be empty: before its very first tuple."""
        ends = task.kernel.ends(task.before, task.after)
        if ends is None or any(task.state):
            return ends
        earliest = []
        for each in self.works.graph.stages[task.stage].inputs:
            for feed in each.port:
                if not isinstance(feed.origin, Stream):
                    return ends
                earliest.append(self.intake.seen.get(feed.origin.name, StreamSeen()).earliest)
        first = min((each for each in earliest if each is not None), default=None)
        if first is None:
            return ends
        times = np.asarray(ends.times, np.int64)
        size = np.broadcast_to(np.asarray(ends.size, np.int64), len(times))
        return WindowEnds(times[times > first].tolist(), size[times > first].tolist())

    def _move(self, members: list[StageRunner]) -> None:
        """Move the state of a stage and those in its channels to where the plan's router places it."""
        number = members[0].number
        before, after = self.before.plan.stages[number], self.plan.stages[number]
        if not self.before.stages or not relocated(before, after):
            return
        if not any(each.kernel.tables for each in members):
            self.moved[number] = replace(self._before(number), channels=((),) * after.channels)
            self.moves.append(Moved(number, before.channels, after.channels))
            return
        moving = Moving(
            self.intake.session,
            self.works.rescaling.routers,
            self.works.checkpoint.segments,
            f"{self.epoch_id}-{number}-moved",
        )
        records, moved = moving.run(members, [self._before(each.number) for each in members], before, after)
        self.moved.update({each.number: record for each, record in zip(members, records, strict=True)})
        self.moves.append(replace(moved, left=self.works.rescaling.left(after)))
        self.phases.ends("move")

    def _task(self, runner: StageRunner, advance: Advance) -> ChannelTask:
        number = runner.number
        record, plan = self._before(number), self.plan.stages[number]
        return ChannelTask(
            stage=number,
            kernel=runner.kernel,
            folder=self.works.checkpoint.segments,
            label=f"{self.epoch_id}-{number}",
            state=record.channels or ((),) * plan.channels,
            before=record.position,
            after=advance.position,
            exits=runner.exits,
            form=plan.form,
            ended=advance.ended,
            hosts=runner.hosts,
            in_place=runner.in_place,
            refusals=None if self.intake.refused is None else self.intake.refused.refusals(number),
            thorough=self.works.rescaling.frequent[number].curious,
            sampled=self.works.rescaling.costs[number].sampled(self.epoch_id.epoch),
            windows=window_channels(runner.kernel, plan.batches, plan.channels),
        )

    def _record(
        self, runner: StageRunner, advance: Advance, receipts: list[Receipt], spread: Spread | None
    ) -> None:
        number = runner.number
        before = self._before(number)
        plan = self.plan.stages[number]
        frequent = self.works.rescaling.frequent[number]
        if receipts:
            self.receipts[number] = (
                receipts if plan.grouping != "in place" else folded(receipts, plan.channels)
            )
            self.tasks[number] = receipts
            self.works.rescaling.costs[number].update([each for one in receipts if (each := one.learnt)])
            copies = _copies(before.spread if spread is None else spread)
            frequent.update([each.keys.without_copies(copies) for each in receipts])
        if self.intake.refused is not None:
            self.intake.refused.take(number, [file for each in receipts for file in each.refused])
        tuples, busy = sum(each.tuples for each in receipts), sum(each.busy for each in receipts)
        received = sum(receipt.received for receipt in receipts)
        combined = received and plan.form == "combined"
        self.records[number] = StageRecord(
            channels=_kept(runner, receipts) or before.channels or ((),) * plan.channels,
            position=advance.position,
            shrinkage=tuples / received if combined else before.shrinkage,
            tuples=before.tuples + tuples,
            seconds=before.seconds + busy,
            recent=before.recent.after(tuples, busy),
            spread=before.spread if spread is None else spread,
            keys=frequent.counts(),
            in_bucket=before.in_bucket,
        )
        for receipt in receipts:
            for output in receipt.outputs:
                self.outputs.setdefault((number, output.exit), []).append((receipt.channel, output))
        for place, exit_ in enumerate(runner.exits):
            schema = self.works.graph.handed.get((number, place))
            if schema is not None and exit_.target is not None:
                files = tuple(output for _, output in self.outputs.get((number, place), []))
                self.intake.handed[number, place] = StageFiles(exit_.target.folder, schema, files)

    def _before(self, number: int) -> StageRecord:
        """What a stage had when the epoch began, once its state is where the plan places it."""
        if number in self.moved:
            return self.moved[number]
        return self.before.stages[number] if self.before.stages else StageRecord()

    @property
    def _drained(self) -> int | None:
        """The frontier when all streams have ended: just after the latest tuple."""
        if not self.epoch_id.drain:
            return None
        return 1 + max(each.newest for each in self.before.frontiers.values() if each.newest is not None)

    def _promised(self, origin: Stream | int, advances: Mapping[int, Advance]) -> int | None:
        if isinstance(origin, Stream):
            return self._frontier(origin).value
        position = advances[origin].position if origin in advances else self.records[origin].position
        return position.promise

    def _frontier(self, stream: Stream) -> Frontier:
        """The frontier of a stream after this epoch; known once a stage that it feeds ran its map side."""
        if stream.name not in self.frontiers:
            before = self.before.frontiers.get(stream.name, Frontier())
            seen = self._seen(stream)
            # Without a key, all tuples of the source are one stream.
            note = self.intake.notes.get(stream.name, SourceNote())
            waiting = note.waiting if stream.key is not None else ()
            own = stream.key is not None and stream.key == note.column
            self.frontiers[stream.name] = before.advance(
                seen,
                steady=self.plan.steady,
                looked=self.plan.looked,
                delay=stream.delay,
                idle=stream.idle,
                waiting=waiting,
                promised=note.promised if own else {},
                least=note.least,
            )
        return self.frontiers[stream.name]

    def _whole(self, stream: Stream, rows: int) -> bool:
        """Whether the epoch, which had these rows of it, took all that the stream's source had."""
        taken = replace(self.taken.get(stream.name, EpochTaken()), rows=rows)
        return stream.source is None or stream.source.took_all(taken)

    def _seen(self, stream: Stream) -> dict[str, int]:
        """The latest event time of each partition of a stream in the epoch."""
        found = self.intake.seen.get(stream.name, StreamSeen())
        if found.latest is None:
            return {}
        if stream.key is None:
            return {"": found.latest}
        rows = self.intake.arrivals[stream.name].where(f"{REJECT} IS NULL")
        parts = rows.groupBy(F.col(stream.key).cast("string").alias("part"))
        # There are few streams for many rows: one task per core, not the 200 of Spark's default.
        tasks = rows.sparkSession.sparkContext.defaultParallelism
        with settings(rows.sparkSession, {"spark.sql.shuffle.partitions": str(tasks)}):
            latest = parts.agg(F.max(TIME).alias("latest")).collect()
        return {row["part"] or "": row["latest"] for row in latest}

    def _deliver(self) -> int:
        """Give every outlet its files and return the number of results."""
        self.works.checkpoint.hold()
        results = 0
        widest = max((each.channels for each in self.plan.stages), default=1)
        for place, outlet in enumerate(self.works.graph.outlets):
            files = [each for way in outlet.exits for each in self.outputs.get(way, [])]
            with translated(Failing(self.epoch_id.epoch, f"output {outlet.delivery.sink!r}")):
                for each in outlet.written:
                    files += written(outlet, each, self.intake, widest)
                outputs = [output for _, output in files]
                if place in self.mergers.mergers:
                    self.mergers.mergers[place].end(files, windowed=self._windowed(outlet))
                outlet.delivery.deliver(self.epoch_id, outputs)
            self.delivered.append((outlet.delivery, outputs))
            results += sum(output.rows for output in outputs)
        return results

    def _windowed(self, outlet: QueryOutput) -> bool:
        """Whether all results of an output are of windows, whose time is that of a window."""
        origins = [stage for stage, _ in outlet.exits] + [each.feed.origin for each in outlet.written]
        stages = self.works.graph.stages
        return all(
            isinstance(each, int)
            and stages[each].kernel.ends(self._before(each).position, self.records[each].position) is not None
            for each in origins
        )

    def _set_aside(self) -> Counts:
        """Write late tuples and rejects to their own outputs and return the numbers written.

        Tuples that functions refused are delivered too, but they are not counted here: they may be results.
        """
        late = 0
        rejects: dict[str | int, list[Output]] = {}
        for name, frame in self.intake.arrivals.items():
            seen, bound = self.intake.seen.get(name, StreamSeen()), self.intake.bounds.get(name)
            if bound is not None and seen.earliest is not None and seen.earliest < bound:
                rows = frame.where(f"{REJECT} IS NULL AND {TIME} < {bound}L")
                self.aside[name] = self.works.late[name].write(self.epoch_id, rows)
                late += self.aside[name]
            if seen.rejects:
                rejects[name] = self._rejected(name, frame, seen)
                self.aside[name] = self.aside.get(name, 0) + sum(each.rows for each in rejects[name])
        missed = [(self.works.missed[stage], rows) for stage, rows in self.intake.missed]
        judged = [(self.works.judged[stage], rows) for stage, rows in self.intake.judged]
        for files, rows in [*missed, *judged]:
            columns = tuple(f"`{name}`" for name in rows.columns if name != TIME)
            late += SetAside(files, columns).write(self.epoch_id, rows)
        rejected = sum(each.rows for files in rejects.values() for each in files)
        if self.intake.refused is not None:
            self.warnings += self.intake.refused.warnings()
            for origin, refused in self.intake.refused.files.items():
                rejects.setdefault(origin, []).extend(refused)
        for origin, outputs in rejects.items():
            self.works.rejects[origin].files.deliver(self.epoch_id, outputs)
        return Counts(late=late, rejected=rejected)

    def _rejected(self, name: str, frame: DataFrame, seen: StreamSeen) -> list[Output]:
        """Write the tuples of a stream that do not fit, and warn of them."""
        aside = self.works.rejects[name]
        files = aside.written(frame.where(f"{REJECT} IS NOT NULL"))
        if files:
            many = f"{sum(each.rows for each in files):,} tuples of stream {name!r} were rejected"
            self.warnings.append(
                f"{'all ' if seen.latest is None else ''}{many}, such as: "
                f"{aside.reason(files[0])}; {aside.files.folder.uri} has them all"
            )
        return files


def _stages(runner: StageRunner, graph: Graph) -> str:
    """A stage and those in its channels, for people."""
    members = [runner, *hosted_by(graph.stages, runner.number)]
    return " and ".join(f"stage {each.number} ({each.stage.operator})" for each in members)


def _kept(runner: StageRunner, receipts: list[Receipt]) -> tuple[tuple[Segment, ...], ...]:
    """The segments of each channel; a stage without state has none, however many tasks ran."""
    return tuple(each.segments for each in receipts) if runner.kernel.tables else ()


def _copies(spread: Spread | None) -> dict[int, tuple[float, float]]:
    """How often a row of each key on a grid arrives: of the left side in a column, of the right in a row."""
    spread = spread or Spread()
    return {
        key: (size / across, float(across))
        for key, size, across in zip(spread.keys, spread.sizes, spread.columns, strict=True)
        if size > 1
    }


def _onward(before: tuple[int | None, ...], now: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Frontiers never go back."""
    if not before:
        return now
    return tuple(
        old if new is None or (old is not None and new < old) else new
        for old, new in zip(before, now, strict=True)
    )
