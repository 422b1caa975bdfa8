"""One epoch, in order: its tasks level by level, delivery, and the records it leaves.

The plan, the tuples and the manifest before it decide everything that an epoch does, so a replay does the
same again. Nothing that it leaves behind counts before its manifest is written. The driver stands between
levels: it reads what the map side told, advances every stage once, and then lets the channels run.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.connect import EpochId, Reader, SourceNote
from penstock.connect.results import Output
from penstock.connect.sinks.parquet import ParquetFiles
from penstock.control.observation import Moved
from penstock.durable import Purpose
from penstock.operators.kernel import Advance, Ends, Seen, WindowEnds
from penstock.query import Stream
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.dataflow.channels import ChannelTask, Formed, Receipt, folded
from penstock.runtime.dataflow.receipts import SentSeen, StreamSeen, TaskFile, TaskReceipt, summed
from penstock.runtime.dataflow.tasks import EpochWork
from penstock.runtime.dataflow.ways import ToFile
from penstock.runtime.delivering import QueryOutput
from penstock.runtime.frontier import Frontier, Merging, merged
from penstock.runtime.graph import Graph
from penstock.runtime.levels import level_of_stages, levels_of
from penstock.runtime.merger import EpochMergers
from penstock.runtime.moving import Moving
from penstock.runtime.progress import Phases
from penstock.runtime.records import Counts, EpochPlan, Manifest, StageRecord
from penstock.runtime.refusals import EpochRefusals, RefusalSetup
from penstock.runtime.requests import Requests
from penstock.runtime.set_aside import first_reason
from penstock.runtime.spark.entries import Channels, Entries, Judging, Reads
from penstock.runtime.spark.failures import Failing, translated
from penstock.runtime.spark.jobs import Exchanged, SparkJobs
from penstock.runtime.stage import StageRunner, members_of
from penstock.state.segments import Segment

__all__ = ["Differs", "Epoch", "RunSetup"]


class Differs(Exception):  # noqa: N818 -- the epoch is run again
    """Channels took rows from another attempt of a task than the one that the epoch went by."""


@dataclass(frozen=True)
class RunSetup:
    """What all epochs of a query share.

    Rejects are kept by the name of their stream; those of functions after a stage by the stage's number.
    """

    streams: tuple[Stream, ...]
    readers: Mapping[str, Reader]
    graph: Graph
    checkpoint: Checkpoint
    requests: Requests
    late: Mapping[str, ParquetFiles]
    rejects: Mapping[str | int, ParquetFiles]
    missed: Mapping[int, ParquetFiles]
    judged: Mapping[int, ParquetFiles]
    merging: Merging
    jobs: SparkJobs
    refusals: RefusalSetup | None = None


@dataclass
class Epoch:
    """An epoch in progress: what its stages have done so far.

    Tuples of a stream below its entry in `bounds` are late; a port takes nothing from another stage below its
    entry in `floors`, which only best effort has. `receipts` are those of channels; those of `tasks` differ
    where rows stay where they are. `walls` is how long each stage took.
    """

    works: RunSetup
    epoch_id: EpochId
    plan: EpochPlan
    before: Manifest
    reads: Reads
    bounds: Mapping[str, int | None]
    floors: Mapping[tuple[int, int], int]
    notes: Mapping[str, SourceNote]
    phases: Phases
    mergers: EpochMergers = field(default_factory=EpochMergers)
    seen: dict[str, StreamSeen] = field(default_factory=dict)
    sent: dict[int, SentSeen] = field(default_factory=dict)
    frontiers: dict[str, Frontier] = field(default_factory=dict)
    moved: dict[int, StageRecord] = field(default_factory=dict)
    drained: dict[int, int] = field(default_factory=dict)
    advances: dict[int, Advance] = field(default_factory=dict)
    records: dict[int, StageRecord] = field(default_factory=dict)
    moves: list[Moved] = field(default_factory=list)
    outputs: dict[tuple[int, int], list[tuple[int, Output]]] = field(default_factory=dict)
    delivered: list[tuple[Any, list[Output]]] = field(default_factory=list)
    receipts: dict[int, list[Receipt]] = field(default_factory=dict)
    tasks: dict[int, list[Receipt]] = field(default_factory=dict)
    walls: dict[int, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    _told: dict[tuple[int, int], TaskReceipt] = field(default_factory=dict)
    _exchanges: list[Exchanged] = field(default_factory=list)
    _files: list[TaskFile] = field(default_factory=list)
    _formed: dict[int, list[Formed]] = field(default_factory=dict)
    _work: EpochWork | None = None
    _waiting: bool = False

    def run(self) -> Manifest:
        """Run every level, deliver, and return what is left behind."""
        graph = self.works.graph
        for runner in graph.stages:
            if not runner.hosted:
                with translated(Failing(self.epoch_id.epoch, _words(graph, [runner.number]))):
                    self._move(members_of(graph.stages, runner.number))
        self._run_levels()
        results = self._deliver()
        with translated(Failing(self.epoch_id.epoch, "late tuples and rejects")):
            counts = replace(self._set_aside(), results=results)
        self.phases.ends("deliver")
        self._learn()
        return Manifest(
            epoch_id=self.epoch_id,
            plan=self.plan,
            frontiers={
                each.name: replace(self._frontier(each), whole=self._whole(each.name))
                for each in self.works.streams
            },
            stages=tuple(self.records[place] for place in range(len(graph.stages))),
            counts=counts,
            total=self.before.total + counts,
            moved=tuple(self.moves),
        )

    def _learn(self) -> None:
        """Let every steering learn from what channels told; an epoch that is run again tells it once."""
        for number, steering in self.works.requests.steering.items():
            if number in self.tasks:
                steering.learn(self.plan.stages[number].layout, self.tasks[number])
            self.records[number] = replace(self.records[number], keys=steering.remembered())

    def told(self) -> list[TaskReceipt]:
        """What every task told of its last attempt."""
        return list(self._told.values())

    def clean_up(self) -> None:
        """After the commit: delete what only this epoch needed."""
        for delivery, outputs in self.delivered:
            delivery.forget(outputs)
        between = self.works.checkpoint.between
        for name in self._between():
            between.delete(name, Purpose.COLLECT)
        for files in (*self.works.late.values(), *self.works.rejects.values()):
            files.committed()
        for files in (*self.works.missed.values(), *self.works.judged.values()):
            files.committed()
        self.release()

    def release(self) -> None:
        """Delete the files of the exchanges."""
        for each in self._exchanges:
            each.release()
        self._exchanges.clear()

    def _between(self) -> list[str]:
        files = [each.output.name for each in self._files if each.kind in {"spark", "judge"}]
        kinds = {
            (stage, number): getattr(way.end, "kind", "")
            for stage, ways in self.works.graph.compiled.ways.items()
            for number, way in enumerate(ways)
        }
        passed = [
            output.name
            for way, outputs in self.outputs.items()
            if kinds.get(way) in {"spark", "judge"}
            for _, output in outputs
        ]
        return files + passed

    # Levels.

    def _run_levels(self) -> None:
        graph, jobs = self.works.graph, self.works.jobs
        staying = {
            runner.number: self._task(runner, Advance(self._before(runner.number).position))
            for runner in graph.stages
            if self.plan.stages[runner.number].stays
        }
        work = self._work = EpochWork(
            now=self.plan.now,
            bounds=self.bounds,
            plans=self.plan.stages,
            levels=levels_of(graph, self.plan, staying),
            floors=self.floors,
            staying=staying,
            refusals={} if self.works.refusals is None else self.works.refusals.refusals(),
        )
        entries = Entries(graph, work, self.reads, jobs.session)
        at = level_of_stages(graph, self.plan, staying)
        began = time.perf_counter()
        job = jobs.job(work, 0)
        with translated(Failing(self.epoch_id.epoch, self._reading())):
            entries.enter(job, 0, {})
            receipts, exchanged = job.run()
        self._settle(receipts, exchanged)
        self.phases.ends("map")
        self._stayed(staying, at, -1, began)
        for level, parts in enumerate(work.levels):
            stages = [part.stage for part in parts if part.hop]
            exchanged = self._run_level(work, entries, level, stages, exchanged)
            for number in stages:
                for member in members_of(graph.stages, number):
                    self._record(member, time.perf_counter() - began)
            self._stayed(staying, at, level, began)
            began = time.perf_counter()
            self.phases.ends("channels")

    def _stayed(
        self, staying: Mapping[int, ChannelTask], at: Mapping[int, int], level: int, began: float
    ) -> None:
        """Record the stages that ran in the tasks of a level."""
        for number in (each for each in staying if at[each] == level):
            self._advance(self.works.graph.stages[number])
            self._record(self.works.graph.stages[number], time.perf_counter() - began)

    def _run_level(
        self,
        work: EpochWork,
        entries: Entries,
        level: int,
        stages: Sequence[int],
        exchanged: Exchanged | None,
    ) -> Exchanged | None:
        """Run the channels of a level on what has been exchanged; what they exchange for the next one."""
        graph = self.works.graph
        failing = Failing(self.epoch_id.epoch, _words(graph, stages))
        members = [each for number in stages for each in members_of(graph.stages, number)]
        for each in members:
            self._advance(each)
        active = {
            number
            for number in stages
            if not all(self.advances[each.number].idle for each in members_of(graph.stages, number))
        }
        tasks = {
            each.number: self._task(each, self.advances[each.number])
            for number in active
            for each in members_of(graph.stages, number)
        }
        job = self.works.jobs.job(work, level + 1)
        with translated(failing):
            if self._waiting or tasks:
                given = exchanged if self._waiting else None
                job.channels(given, Channels(work, tasks, level), work.partitions(level))
            entries.enter(job, level + 1, self._spark_files())
            with self._merging(tasks) as hear:
                receipts, following = job.run(hear)
        # That attempts differ is no failure: the epoch is run again.
        self._settle(receipts, following)
        with translated(failing):
            for number in active:
                self._judge(graph.stages[number])
        return following

    def _settle(self, receipts: Sequence[TaskReceipt], exchanged: Exchanged | None) -> None:
        """Take in what the tasks of a job told; of several attempts of a task the last one counts."""
        if exchanged is not None:
            self._exchanges.append(exchanged)
        last = _last_attempts(receipts)
        self._check_attempts(last)
        # A task of an earlier job that ran again, and whose rows nobody took, has told everything already.
        told = {each.task.place: each for each in last if each.task.place not in self._told}
        self._told.update(told)
        for name, seen in summed(each.streams for each in told.values()).items():
            self.seen[name] = self.seen.get(name, StreamSeen()) + seen
        for stage, sent in summed(each.sent for each in told.values()).items():
            self.sent[stage] = self.sent.get(stage, SentSeen()) + sent
        self._files += [file for place in sorted(told) for file in told[place].files]
        for place in sorted(told):
            for stage, done in told[place].channels.items():
                self.tasks.setdefault(stage, []).extend(done)
        for each in told.values():
            for stage, formed in each.formed.items():
                self._formed.setdefault(stage, []).append(formed)
        self._waiting = any(sent.rows for each in told.values() for sent in each.sent.values()) or any(
            each.relayed for each in told.values()
        )

    def _check_attempts(self, receipts: Iterable[TaskReceipt]) -> None:
        """Raise if tasks took rows from other attempts than those by whose receipts the stages advanced."""
        for place, attempt in (pair for each in receipts for pair in each.consumed.items()):
            known = self._told.get(place)
            if known is None or known.task.attempt != attempt:
                raise Differs(f"task {place} of epoch {self.epoch_id.epoch}")

    def _merging(self, tasks: Mapping[int, ChannelTask]) -> Any:
        """While channels run, their results leave as they finish, where somebody takes them."""
        ends = {
            stage: self._ends(task)
            for stage, task in tasks.items()
            if any(each == stage for each, _ in self.mergers.ways)
        }
        return self.mergers.running(ends, {stage: len(tasks[stage].state) for stage in ends})

    def _ends(self, task: ChannelTask) -> Ends:
        """The windows that a stage closes, without those that must be empty: before its very first tuple."""
        runner = self.works.graph.stages[task.stage]
        ends = runner.kernel.ends(task.before, task.after)
        if ends is None or any(task.state):
            return ends
        earliest = []
        for port in runner.ports:
            for feed in port:
                if not isinstance(feed.origin, Stream):
                    return ends
                earliest.append(self.seen.get(feed.origin.name, StreamSeen()).earliest)
        first = min((each for each in earliest if each is not None), default=None)
        if first is None:
            return ends
        times = np.asarray(ends.times, np.int64)
        size = np.broadcast_to(np.asarray(ends.size, np.int64), len(times))
        return WindowEnds(times[times > first].tolist(), size[times > first].tolist())

    def _spark_files(self) -> dict[int, list[str]]:
        """What stages have written for steps of Spark, by the number of the way."""
        found: dict[int, list[str]] = {}
        for stage, ways in self.works.graph.compiled.ways.items():
            for number, way in enumerate(ways):
                if isinstance(stage, int) and isinstance(way.end, ToFile) and way.end.kind == "spark":
                    outputs = self._written(stage).get(number, [])
                    found[way.end.origin] = [each.name for _, each in outputs]
        return found

    def _written(self, stage: int) -> dict[int, list[tuple[int, Output]]]:
        """The files of a stage so far, by way."""
        found: dict[int, list[tuple[int, Output]]] = {}
        for receipt in self.tasks.get(stage, []):
            for output in receipt.outputs:
                found.setdefault(output.exit, []).append((receipt.channel, output))
        return found

    # Stages.

    def _advance(self, member: StageRunner) -> None:
        number = member.number
        before = self._before(number).position
        frontiers = tuple(
            merged([self._promised(feed.origin) for feed in port], self.works.merging)
            for port in member.ports
        )
        sent = self.sent.get(number, SentSeen())
        seen = Seen() if member.hosted else Seen(rows=bool(sent.rows), bucket=sent.last)
        seen = replace(seen, state=any(self._before(number).channels))
        if self.epoch_id.drain:
            self.drained[number] = self._drained(member, sent.latest)
        self.advances[number] = member.kernel.advance(
            before, _onward(before.frontiers, frontiers), seen, self.drained.get(number)
        )

    def _task(self, runner: StageRunner, advance: Advance) -> ChannelTask:
        number = runner.number
        record, plan = self._before(number), self.plan.stages[number]
        steering = self.works.requests.steering.get(number)
        return ChannelTask(
            stage=number,
            folder=self.works.checkpoint.segments,
            label=f"{self.epoch_id}-{number}",
            state=record.channels or ((),) * plan.channels,
            before=record.position,
            after=advance.position,
            ended=advance.ended,
            hosted=runner.hosted,
            counted=steering is not None and steering.counts(),
            thorough=steering is not None and steering.thorough(),
            measured=steering is not None and steering.measures(self.epoch_id.epoch),
            view=None if plan.layout is None else runner.kernel.distribution.view(plan.layout),
        )

    def _record(self, runner: StageRunner, wall: float) -> None:
        number = runner.number
        if number in self.records:
            return
        before, plan = self._before(number), self.plan.stages[number]
        receipts = sorted(self.tasks.get(number, []), key=lambda each: each.channel)
        formed = self._formed.get(number, ())
        if receipts and formed:
            receipts[0] = replace(receipts[0], formed=tuple(formed))
        if receipts:
            self.tasks[number] = receipts
            self.walls[number] = wall
            self.receipts[number] = folded(receipts, plan.channels) if plan.stays else receipts
        tuples, busy = sum(each.tuples for each in receipts), sum(each.busy for each in receipts)
        received = sum(receipt.received for receipt in receipts)
        combined = received and any(each.combined for each in receipts)
        sent = self.sent.get(number, SentSeen())
        buckets = 0 if sent.first is None or sent.last is None else sent.last - sent.first + 1
        self.records[number] = StageRecord(
            channels=_kept(runner, receipts) or before.channels or ((),) * plan.channels,
            position=self.advances[number].position,
            shrinkage=tuples / received if combined else None if received else before.shrinkage,
            tuples=before.tuples + tuples,
            seconds=before.seconds + busy,
            recent=before.recent.after(tuples, busy),
            keys=before.keys,
            in_bucket=tuples / buckets if buckets else before.in_bucket,
        )
        for receipt in receipts:
            for output in receipt.outputs:
                self.outputs.setdefault((number, output.exit), []).append((receipt.channel, output))

    def _move(self, members: list[StageRunner]) -> None:
        """Move the state of a stage and those in its channels to where the plan has it."""
        number = members[0].number
        before, after = self.before.plan.stages[number].own, self.plan.stages[number].own
        if not self.before.stages or not members[0].kernel.distribution.moves(before, after):
            return
        if before.channels == after.channels and not self._before(number).tuples:
            return
        if not any(each.kernel.tables for each in members):
            self.moved[number] = replace(self._before(number), channels=((),) * after.channels)
            self.moves.append(Moved(number, before.channels, after.channels))
            return
        steering, segments = self.works.requests.steering[number], self.works.checkpoint.segments
        moving = Moving(steering.files, segments, f"{self.epoch_id}-moved")
        records, moved = moving.run(members, [self._before(each.number) for each in members], before, after)
        self.moved.update({each.number: record for each, record in zip(members, records, strict=True)})
        self.moves.append(replace(moved, left=steering.left(after)))
        self.phases.ends("move")

    def _before(self, number: int) -> StageRecord:
        """What a stage had when the epoch began, once its state is where the plan places it."""
        if number in self.moved:
            return self.moved[number]
        return self.before.stages[number] if self.before.stages else StageRecord()

    def _drained(self, member: StageRunner, latest: int | None) -> int:
        """The frontier of a stage when all streams have ended: just after the latest tuple that it gets.

        Results may be later than the tuples of all streams, such as the end of a session. Those that come
        from a stage in the same channels are not known here, but how far ahead they may be is.
        """
        if member.hosted:
            return max(
                self.drained[each.number] + (each.stage.operator.ahead() or 0)
                for each in self.works.graph.stages
                if any(each.number == feed.origin for (feed,) in member.ports)
            )
        newest = [each.newest for each in self.before.frontiers.values() if each.newest is not None]
        return 1 + max(newest if latest is None else [*newest, latest])

    # Streams.

    def _promised(self, origin: Stream | int) -> int | None:
        if isinstance(origin, Stream):
            return self._frontier(origin).value
        return self.advances[origin].position.promise

    def _frontier(self, stream: Stream) -> Frontier:
        """The frontier of a stream after this epoch; known once its tuples have been read."""
        if stream.name not in self.frontiers:
            before = self.before.frontiers.get(stream.name, Frontier())
            # Without a key, all tuples of the source are one stream.
            note = self.notes.get(stream.name, SourceNote())
            waiting = note.waiting if stream.key is not None else ()
            own = stream.key is not None and stream.key == note.column
            self.frontiers[stream.name] = before.advance(
                self._latest(stream),
                steady=self.plan.steady,
                looked=self.plan.looked,
                delay=stream.delay,
                idle=stream.idle,
                waiting=waiting,
                promised=note.promised if own else {},
                least=note.least,
            )
        return self.frontiers[stream.name]

    def _latest(self, stream: Stream) -> Mapping[str, int]:
        """The latest event time of each partition of a stream in the epoch."""
        found = self.seen.get(stream.name, StreamSeen())
        if found.latest is None:
            return {}
        return {"": found.latest} if stream.key is None else found.parts

    def _whole(self, name: str) -> bool:
        """Whether the epoch took all that the stream's source had."""
        return self.plan.reads[name].whole if name in self.plan.reads else True

    def _reading(self) -> str:
        return f"stream {', '.join(each.name for each in self.works.streams)}"

    # What leaves.

    def _deliver(self) -> int:
        """Give every outlet its files and return the number of results."""
        self.works.checkpoint.hold()
        results = 0
        for place, outlet in enumerate(self.works.graph.outlets):
            files = [each for way in outlet.exits for each in self.outputs.get(way, [])]
            files += [
                (0, each.output) for each in self._files if each.kind == "outlet" and each.origin == place
            ]
            with translated(Failing(self.epoch_id.epoch, f"output {outlet.delivery.sink!r}")):
                outputs = [output for _, output in files]
                if place in self.mergers.mergers:
                    self.mergers.mergers[place].end(files, windowed=self._windowed(outlet))
                outlet.delivery.deliver(self.epoch_id, outputs)
            self.delivered.append((outlet.delivery, outputs))
            results += sum(output.rows for output in outputs)
        return results

    def _windowed(self, outlet: QueryOutput) -> bool:
        """Whether all results of an output are of windows, whose time is that of a window."""
        stages = self.works.graph.stages
        return all(
            isinstance(each, int)
            and stages[each].kernel.ends(self._before(each).position, self.records[each].position) is not None
            for each in outlet.origins
        )

    def _set_aside(self) -> Counts:
        """Deliver late tuples and rejects to their own outputs and return all counts."""
        late = {
            (kind, origin): outputs
            for kind in ("late", "missed", "judged")
            for origin, outputs in self._aside(kind).items()
        }
        rejects = self._aside("rejects")
        for name, outputs in rejects.items():
            self._warn(name, outputs)
        rejected = sum(each.rows for files in rejects.values() for each in files)
        refused = self._refused()
        if refused is not None:
            self.warnings += refused.warnings()
            for origin, found in refused.files.items():
                rejects.setdefault(origin, []).extend(found)
        homes = {"late": self.works.late, "missed": self.works.missed, "judged": self.works.judged}
        for (kind, origin), outputs in late.items():
            homes[kind][origin].deliver(self.epoch_id, outputs)  # type: ignore[index]
        for origin, outputs in rejects.items():
            self.works.rejects[origin].deliver(self.epoch_id, outputs)
        return Counts(
            rows=sum(each.rows for each in self.seen.values()),
            late=sum(each.rows for outputs in late.values() for each in outputs),
            rejected=rejected + (0 if refused is None else refused.rows),
            partly_late=sum(each.partly_late for every in self.tasks.values() for each in every),
        )

    def _aside(self, kind: str) -> dict[Any, list[Output]]:
        """The files of a kind that tasks wrote, by the stream or stage that they are of."""
        found: dict[Any, list[Output]] = {}
        for each in self._files:
            if each.kind == kind:
                found.setdefault(each.origin, []).append(each.output)
        return found

    def _refused(self) -> EpochRefusals | None:
        """The rows that functions refused; None if they fail instead."""
        if self.works.refusals is None:
            return None
        refused = EpochRefusals(self.works.refusals)
        for origin, outputs in self._aside("refused").items():
            refused.take(origin, outputs)
        for stage, receipts in self.tasks.items():
            refused.take(stage, [file for each in receipts for file in each.refused])
        return refused

    def _warn(self, name: str | int, outputs: Sequence[Output]) -> None:
        files = self.works.rejects[name]
        many = f"{sum(each.rows for each in outputs):,} tuples of stream {name!r} were rejected"
        every = "all " if self.seen.get(str(name), StreamSeen()).latest is None else ""
        self.warnings.append(
            f"{every}{many}, such as: {first_reason(files, outputs[0])}; {files.folder.uri} has them all"
        )

    def _judge(self, runner: StageRunner) -> None:
        """Set the tuples aside that channels found to be too late; few epochs have any."""
        number = runner.number
        late = sorted({pair for each in self.tasks.get(number, []) for pair in each.late})
        if not late:
            return
        assert self._work is not None
        held = [(each.origin, each.output.name) for each in self._files if each.kind == "judge"]
        for stage in (each for each in self.works.graph.compiled.ways if isinstance(each, int)):
            ways = self.works.graph.compiled.ways[stage]
            for way, outputs in self._written(stage).items():
                if isinstance(end := ways[way].end, ToFile) and end.kind == "judge":
                    held += [(end.origin, output.name) for _, output in outputs]
        job = self.works.jobs.job(self._work, len(self._work.levels))
        target = self.works.judged[number].format()
        Judging(self._work, number, tuple(late), target, self.works.checkpoint.between).enter(
            job, self.reads, held
        )
        receipts, _ = job.run()
        self._files += [file for each in _last_attempts(receipts) for file in each.files]


def _last_attempts(receipts: Iterable[TaskReceipt]) -> list[TaskReceipt]:
    """What each task told last; one that ran again has told before."""
    return list({each.task.place: each for each in receipts}.values())


def _words(graph: Graph, numbers: Sequence[int]) -> str:
    """Some stages and those in their channels, for people."""
    every = [each for number in numbers for each in members_of(graph.stages, number)]
    return " and ".join(f"stage {each.number} ({each.stage.operator})" for each in every)


def _kept(runner: StageRunner, receipts: list[Receipt]) -> tuple[tuple[Segment, ...], ...]:
    """The segments of each channel; a stage without state has none, however many tasks ran."""
    return tuple(each.segments for each in receipts) if runner.kernel.tables else ()


def _onward(before: tuple[int | None, ...], now: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Frontiers never go back."""
    if not before:
        return now
    return tuple(
        old if new is None or (old is not None and new < old) else new
        for old, new in zip(before, now, strict=True)
    )
