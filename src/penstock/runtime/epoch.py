"""One epoch: its plan, its stages one after another, delivery, manifest, in this order.

Everything an epoch does is decided by its plan, its tuples and the manifest before it, so a replay
does the same again; everything it leaves behind counts only once its manifest is written.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.streaming.query import StreamingQuery

from penstock.compile import TIME
from penstock.errors import DamagedCheckpoint
from penstock.query import Stream
from penstock.runtime.arrivals import Arrivals
from penstock.runtime.aside import Aside
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.failures import translated
from penstock.runtime.frames import REJECT
from penstock.runtime.frontier import Frontier
from penstock.runtime.graph import Graph
from penstock.runtime.input_merger import Merging, merged
from penstock.runtime.intake import Handed, Intake, Seen
from penstock.runtime.map_side import EMPTY, MapSide
from penstock.runtime.moving import Moving, relocated
from penstock.runtime.observation import Decision, Observation, Policy, StageChannels, decided
from penstock.runtime.observing import stage_channels
from penstock.runtime.outlets import written
from penstock.runtime.planning import Planner
from penstock.runtime.progress import EpochProgress, StageProgress, instant
from penstock.runtime.receipts import Receipt, channel_work
from penstock.runtime.records import Counts, EpochPlan, Manifest, Moment, Moved, StageRecord
from penstock.runtime.rescaling import Rescaling
from penstock.runtime.results import Output
from penstock.runtime.session import prepare
from penstock.runtime.splits import splits_decided
from penstock.runtime.stage import StageRunner, StageTask, Turn, beside, run_channels

__all__ = ["MOST_DECISIONS", "Epochs"]

MOST_DECISIONS = 1000
"""How many decisions a run remembers."""


@dataclass
class Epochs:
    """Runs epoch after epoch of one query; the manifest of the last one is all it remembers."""

    session: SparkSession
    arrivals: Arrivals
    graph: Graph
    checkpoint: Checkpoint
    late: Mapping[str, Aside]
    rejects: Mapping[str, Aside]
    missed: Callable[[int, tuple[str, ...]], Aside]
    planner: Planner
    merging: Merging
    report: Callable[[EpochProgress], None]
    clock: Callable[[], float] = time.time
    last: Manifest | None = field(init=False)
    policy: Policy | None = None
    receipts: dict[int, list[Receipt]] = field(init=False, default_factory=dict)
    decisions: deque[Decision] = field(init=False, default_factory=lambda: deque(maxlen=MOST_DECISIONS))

    @property
    def rescaling(self) -> Rescaling:
        """What is asked for of its stages."""
        return self.planner.rescaling

    def __post_init__(self) -> None:
        self.last = self.checkpoint.latest()
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
            self._happen(moment, frame.sparkSession, self.arrivals.apart(frame, query))

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
                f"checkpoint {self.checkpoint.root.uri}: Spark continues at epoch {moment.epoch}, the last "
                f"manifest is of epoch {known}; restore the whole folder from one backup, or use a new one"
            )

    def _happen(self, moment: Moment, session: SparkSession, arrivals: Mapping[str, DataFrame]) -> None:
        phases = _Phases()
        plan = self.planner.plan(moment, self.last)
        before = self.last or Manifest(moment, plan)
        phases.ends("plan")
        routers = self.rescaling.routers
        intake = Intake(session, arrivals, self._bounds(before), routers, self._floors(before))
        epoch = _Epoch(self, moment, plan, before, intake, phases)
        manifest = epoch.run()
        self.checkpoint.commit(manifest)
        self.last = manifest
        self.planner.splits.observe(epoch.receipts)
        self.receipts |= epoch.receipts
        self.rescaling.settle(plan.stages)
        phases.ends("commit")
        epoch.clean_up()
        self.checkpoint.collect(orphans=False)
        phases.ends("collect")
        self.decisions += decided(manifest, before, self.planner.followed)
        self.decisions += splits_decided(manifest, before)
        self.report(self._progress(manifest, before, phases, epoch.receipts))
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
                self.graph.stages, self.last.plan.stages, self.last.stages, strict=True
            )
            if runner.stage.beside is None
        )

    def _bounds(self, before: Manifest) -> dict[str, int | None]:
        """The times below which tuples of a stream are late: an operator that they feed has passed them."""
        bounds: dict[str, int | None] = {}
        for place, record in enumerate(before.stages):
            runner = self.graph.stages[place]
            for port, entrance in enumerate(runner.entrances):
                bound = runner.bound(record, port)
                for feed in entrance.port:
                    if isinstance(feed.origin, Stream) and bound is not None:
                        known = bounds.get(feed.origin.name)
                        bounds[feed.origin.name] = bound if known is None else max(known, bound)
        return bounds

    def _floors(self, before: Manifest) -> dict[tuple[int, int], int]:
        """By best effort a port may have passed what a slower stage still gives; how far each has come."""
        if self.merging == "transparent":
            return {}
        found = {
            entrance.number: self.graph.stages[place].bound(record, port)
            for place, record in enumerate(before.stages)
            for port, entrance in enumerate(self.graph.stages[place].entrances)
        }
        return {number: bound for number, bound in found.items() if bound is not None}

    def _progress(
        self,
        manifest: Manifest,
        before: Manifest,
        phases: "_Phases",
        receipts: Mapping[int, list[Receipt]],
    ) -> EpochProgress:
        segments = list(manifest.segments())
        known = [each.value for each in manifest.frontiers.values()]
        frontier = min((each for each in known if each is not None), default=None)
        earlier = before.stages or (StageRecord(),) * len(manifest.stages)
        combinings = [each.combining for each in manifest.plan.stages]
        return EpochProgress(
            epoch=manifest.moment.epoch,
            rows=manifest.counts.rows,
            late=manifest.counts.late,
            rejected=manifest.counts.rejected,
            results=manifest.counts.results,
            seconds=sum(phases.times.values()),
            phases=phases.times,
            frontier=instant(frontier),
            lag_seconds=None if frontier is None else self.clock() - frontier / 1e6,
            state_rows=sum(each.rows for each in segments),
            state_bytes=sum(each.bytes for each in segments),
            combining=combinings[0] if combinings else "channel",
            stages=tuple(
                StageProgress(
                    name=str(runner.stage.operator),
                    tuples=now.tuples - then.tuples,
                    busy_seconds=now.seconds - then.seconds,
                    state_rows=sum(each.rows for channel in now.channels for each in channel),
                    frontier=instant(now.promise),
                    channels=channel_work(receipts.get(runner.stage.number, [])),
                    split="" if plan.sub_keys is None else plan.sub_keys.words(plan.channels),
                )
                for runner, now, then, plan in zip(
                    self.graph.stages, manifest.stages, earlier, manifest.plan.stages, strict=True
                )
            ),
        )


@dataclass
class _Epoch:
    """One epoch under way: what its stages have done so far."""

    epochs: Epochs
    moment: Moment
    plan: EpochPlan
    before: Manifest
    intake: Intake
    phases: "_Phases"
    frontiers: dict[str, Frontier] = field(default_factory=dict)
    moved: dict[int, StageRecord] = field(default_factory=dict)
    records: dict[int, StageRecord] = field(default_factory=dict)
    moves: list[Moved] = field(default_factory=list)
    outputs: dict[tuple[int, int], list[tuple[int, Output]]] = field(default_factory=dict)
    sides: list[MapSide] = field(default_factory=list)
    delivered: list[tuple[Any, list[Output]]] = field(default_factory=list)
    receipts: dict[int, list[Receipt]] = field(default_factory=dict)

    def run(self) -> Manifest:
        """Run every stage, deliver, and say what is left behind."""
        for runner in self.epochs.graph.stages:
            if runner.stage.beside is None:
                self._run_group(runner)
        results = self._deliver()
        aside = self._set_aside()
        self.phases.ends("deliver")
        counts = replace(aside, rows=self._rows(aside), results=results)
        return Manifest(
            moment=self.moment,
            plan=self.plan,
            frontiers={each.name: self._frontier(each) for each in self.epochs.arrivals.streams},
            stages=tuple(self.records[place] for place in range(len(self.epochs.graph.stages))),
            counts=counts,
            total=self.before.total + counts,
            moved=tuple(self.moves),
        )

    def _rows(self, aside: Counts) -> int:
        """How many tuples came in."""
        counted = [seen.rows for seen in self.intake.seen.values()]
        if None not in counted:
            return sum(rows for rows in counted if rows is not None)
        # One stream, one stage: what its channels took, and what was set aside.
        return self.records[0].tuples - self._before(0).tuples + aside.late + aside.rejected

    def clean_up(self) -> None:
        """After the commit: what only this epoch needed goes."""
        for delivery, outputs in self.delivered:
            delivery.forget(outputs)
        for handed in self.intake.handed.values():
            for output in handed.outputs:
                handed.folder.delete(output.name)
        for side in self.sides:
            side.release()

    def _run_group(self, runner: StageRunner) -> None:
        """A stage, and those that run in its channels."""
        number = runner.stage.number
        members = [runner, *beside(self.epochs.graph.stages, number)]
        self._move(members)
        side = runner.map_side(self.intake, self.plan.stages[number], self._before(number))
        self.sides.append(side)
        self.phases.ends("map")
        turns: dict[int, Turn] = {}
        for member in members:
            own = member.stage.number
            came = side if own == number else EMPTY
            frontiers = tuple(
                merged([self._promised(feed.origin, turns) for feed in each.port], self.epochs.merging)
                for each in member.entrances
            )
            frontiers = _onward(self._before(own).frontiers, frontiers)
            turns[own] = member.turn(self._before(own), frontiers, came, self._drained)
        receipts: dict[int, list[Receipt]] = {}
        if not all(turn.idle for turn in turns.values()):
            channels = self.plan.stages[number].channels
            tasks = tuple(self._task(member, turns[member.stage.number]) for member in members)
            receipts = run_channels(self.intake.session, side, channels, tasks)
        for member in members:
            own = member.stage.number
            self._record(member, turns[own], receipts.get(own, []), side if own == number else EMPTY)
        self.phases.ends("channels")

    def _move(self, members: list[StageRunner]) -> None:
        """Bring the state of a stage and those beside it to where the plan's router has it."""
        number = members[0].stage.number
        before, after = self.before.plan.stages[number], self.plan.stages[number]
        if not self.before.stages or not relocated(before, after):
            return
        moving = Moving(
            self.intake.session,
            self.epochs.rescaling.routers,
            self.epochs.checkpoint.segments,
            f"{self.moment}-{number}-moved",
        )
        records, moved = moving.run(
            members, [self._before(each.stage.number) for each in members], before, after
        )
        self.moved.update({each.stage.number: record for each, record in zip(members, records, strict=True)})
        self.moves.append(replace(moved, left=self.epochs.rescaling.left(after)))
        self.phases.ends("move")

    def _task(self, runner: StageRunner, turn: Turn) -> StageTask:
        number = runner.stage.number
        task = runner.task(
            self._before(number),
            turn,
            self.plan.stages[number],
            self.epochs.checkpoint.segments,
            f"{self.moment}-{number}",
        )
        host = runner.stage.beside
        return StageTask(number, task, host, None if host is None else runner.entrances[0].exits[0])

    def _record(self, runner: StageRunner, turn: Turn, receipts: list[Receipt], side: MapSide) -> None:
        number = runner.stage.number
        before = self._before(number)
        plan = self.plan.stages[number]
        frequent = self.epochs.rescaling.frequent[number]
        if receipts:
            self.receipts[number] = receipts
            frequent.update([each.keys for each in receipts])
        newest = [each.newest for each in receipts if each.newest is not None]
        newest += [before.newest] if before.newest is not None else []
        tuples = sum(receipt.tuples for receipt in receipts)
        received = sum(receipt.received for receipt in receipts)
        combined = received and plan.combining == "map"
        self.records[number] = StageRecord(
            channels=tuple(each.segments for each in receipts) or before.channels or ((),) * plan.channels,
            frontiers=turn.frontiers,
            promise=turn.promise,
            first_open=turn.first_open,
            newest=max(newest) if newest else None,
            shrinkage=tuples / received if combined else before.shrinkage,
            tuples=before.tuples + tuples,
            seconds=before.seconds + sum(receipt.busy for receipt in receipts),
            spread=before.spread if side.spread is None else side.spread,
            keys=frequent.counts(),
        )
        for receipt in receipts:
            for output in receipt.outputs:
                self.outputs.setdefault((number, output.exit), []).append((receipt.channel, output))
        for place, exit_ in enumerate(runner.exits):
            schema = self.epochs.graph.handed.get((number, place))
            if schema is not None and exit_.target is not None:
                files = tuple(output for _, output in self.outputs.get((number, place), []))
                self.intake.handed[number, place] = Handed(exit_.target.folder, schema, files)

    def _before(self, number: int) -> StageRecord:
        """What a stage had when the epoch began, once its state is where the plan has it."""
        if number in self.moved:
            return self.moved[number]
        return self.before.stages[number] if self.before.stages else StageRecord()

    @property
    def _drained(self) -> int | None:
        """Where all streams have ended: just after the latest tuple."""
        if not self.moment.drain:
            return None
        return 1 + max(each.newest for each in self.before.frontiers.values() if each.newest is not None)

    def _promised(self, origin: Stream | int, turns: Mapping[int, Turn]) -> int | None:
        if isinstance(origin, Stream):
            return self._frontier(origin).value
        return turns[origin].promise if origin in turns else self.records[origin].promise

    def _frontier(self, stream: Stream) -> Frontier:
        """The frontier of a stream after this epoch; known once a stage that it feeds has been mapped."""
        if stream.name not in self.frontiers:
            before = self.before.frontiers.get(stream.name, Frontier())
            seen = self._seen(stream)
            self.frontiers[stream.name] = before.advance(
                seen, now=self.plan.now, delay=stream.delay, idle=stream.idle
            )
        return self.frontiers[stream.name]

    def _seen(self, stream: Stream) -> dict[str, int]:
        """The latest event time of each part of a stream in the epoch."""
        found = self.intake.seen.get(stream.name, Seen())
        if found.latest is None:
            return {}
        if stream.key is None:
            return {"": found.latest}
        rows = self.intake.arrivals[stream.name].where(f"{REJECT} IS NULL")
        parts = rows.groupBy(F.col(stream.key).cast("string").alias("part"))
        latest = parts.agg(F.max(TIME).alias("latest")).collect()
        return {row["part"] or "": row["latest"] for row in latest}

    def _deliver(self) -> int:
        """Give every outlet its files; how many results there are."""
        results = 0
        widest = max((each.channels for each in self.plan.stages), default=1)
        for outlet in self.epochs.graph.outlets:
            files = [each for way in outlet.exits for each in self.outputs.get(way, [])]
            for each in outlet.written:
                files += written(outlet, each, self.intake, widest)
            numbered = [(place, output) for place, (_, output) in enumerate(files)]
            outlet.delivery.deliver(self.moment, numbered)
            outputs = [output for _, output in numbered]
            self.delivered.append((outlet.delivery, outputs))
            results += sum(output.rows for output in outputs)
        return results

    def _set_aside(self) -> Counts:
        """Late tuples and rejects to their own outputs; the count is of what was written."""
        late = rejected = 0
        for name, frame in self.intake.arrivals.items():
            seen, bound = self.intake.seen.get(name, Seen()), self.intake.bounds.get(name)
            if bound is not None and seen.earliest is not None and seen.earliest < bound:
                rows = frame.where(f"{REJECT} IS NULL AND {TIME} < {bound}L")
                late += self.epochs.late[name].write(self.moment, rows)
            if seen.rejects:
                rejected += self.epochs.rejects[name].write(self.moment, frame.where(f"{REJECT} IS NOT NULL"))
        for stage, rows in self.intake.missed:
            aside = self.epochs.missed(stage, tuple(f"`{name}`" for name in rows.columns if name != TIME))
            late += aside.write(self.moment, rows)
        return Counts(late=late, rejected=rejected)


class _Phases:
    """Wall time of the parts of an epoch."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._since = time.perf_counter()

    def ends(self, name: str) -> None:
        """A phase, or a part of one, ends here and the next begins."""
        now = time.perf_counter()
        self.times[name] = self.times.get(name, 0.0) + now - self._since
        self._since = now


def _onward(before: tuple[int | None, ...], now: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Frontiers never go back."""
    if not before:
        return now
    return tuple(
        old if new is None or (old is not None and new < old) else new
        for old, new in zip(before, now, strict=True)
    )
