"""One epoch: its stages one after another, delivery, and what it leaves behind, in this order.

Everything an epoch does is decided by its plan, its tuples and the manifest before it, so a replay
does the same again; everything it leaves behind counts only once its manifest is written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import TIME
from penstock.query import Stream
from penstock.runtime.aside import Aside
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.frontier import Frontier
from penstock.runtime.graph import Graph
from penstock.runtime.input_merger import Merging, merged
from penstock.runtime.intake import Handed, Intake, Seen
from penstock.runtime.map_side import EMPTY, MapSide
from penstock.runtime.moving import Moving, relocated
from penstock.runtime.outlets import written
from penstock.runtime.progress import Phases
from penstock.runtime.receipts import Receipt
from penstock.runtime.records import Counts, EpochPlan, Manifest, Moment, Moved, StageRecord
from penstock.runtime.rescaling import Rescaling
from penstock.runtime.results import Output
from penstock.runtime.spark.arrivals import Arrivals
from penstock.runtime.spark.frames import REJECT
from penstock.runtime.spark.session import settings
from penstock.runtime.stage import StageRunner, StageTask, Turn, beside, run_channels

__all__ = ["Epoch", "Works"]


@dataclass(frozen=True)
class Works:
    """What a query has for all its epochs."""

    arrivals: Arrivals
    graph: Graph
    checkpoint: Checkpoint
    rescaling: Rescaling
    late: Mapping[str, Aside]
    rejects: Mapping[str, Aside]
    missed: Callable[[int, tuple[str, ...]], Aside]
    merging: Merging


@dataclass
class Epoch:
    """One epoch under way: what its stages have done so far."""

    works: Works
    moment: Moment
    plan: EpochPlan
    before: Manifest
    intake: Intake
    phases: Phases
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
        for runner in self.works.graph.stages:
            if runner.stage.beside is None:
                self._run_group(runner)
        results = self._deliver()
        aside = self._set_aside()
        self.phases.ends("deliver")
        counts = replace(aside, rows=self._rows(aside), results=results)
        return Manifest(
            moment=self.moment,
            plan=self.plan,
            frontiers={each.name: self._frontier(each) for each in self.works.arrivals.streams},
            stages=tuple(self.records[place] for place in range(len(self.works.graph.stages))),
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
        members = [runner, *beside(self.works.graph.stages, number)]
        self._move(members)
        side = runner.map_side(self.intake, self.plan.stages[number], self._before(number))
        self.sides.append(side)
        self.phases.ends("map")
        turns: dict[int, Turn] = {}
        for member in members:
            own = member.stage.number
            came = side if own == number else EMPTY
            frontiers = tuple(
                merged([self._promised(feed.origin, turns) for feed in each.port], self.works.merging)
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
            self.works.rescaling.routers,
            self.works.checkpoint.segments,
            f"{self.moment}-{number}-moved",
        )
        records, moved = moving.run(
            members, [self._before(each.stage.number) for each in members], before, after
        )
        self.moved.update({each.stage.number: record for each, record in zip(members, records, strict=True)})
        self.moves.append(replace(moved, left=self.works.rescaling.left(after)))
        self.phases.ends("move")

    def _task(self, runner: StageRunner, turn: Turn) -> StageTask:
        number = runner.stage.number
        task = runner.task(
            self._before(number),
            turn,
            self.plan.stages[number],
            self.works.checkpoint.segments,
            f"{self.moment}-{number}",
        )
        host = runner.stage.beside
        return StageTask(number, task, host, None if host is None else runner.entrances[0].exits[0])

    def _record(self, runner: StageRunner, turn: Turn, receipts: list[Receipt], side: MapSide) -> None:
        number = runner.stage.number
        before = self._before(number)
        plan = self.plan.stages[number]
        frequent = self.works.rescaling.frequent[number]
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
            schema = self.works.graph.handed.get((number, place))
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
        # Streams are few beside their rows: a task for each core, not the 200 of Spark's default.
        tasks = rows.sparkSession.sparkContext.defaultParallelism
        with settings(rows.sparkSession, {"spark.sql.shuffle.partitions": str(tasks)}):
            latest = parts.agg(F.max(TIME).alias("latest")).collect()
        return {row["part"] or "": row["latest"] for row in latest}

    def _deliver(self) -> int:
        """Give every outlet its files; how many results there are."""
        results = 0
        widest = max((each.channels for each in self.plan.stages), default=1)
        for outlet in self.works.graph.outlets:
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
                late += self.works.late[name].write(self.moment, rows)
            if seen.rejects:
                rejected += self.works.rejects[name].write(self.moment, frame.where(f"{REJECT} IS NOT NULL"))
        for stage, rows in self.intake.missed:
            aside = self.works.missed(stage, tuple(f"`{name}`" for name in rows.columns if name != TIME))
            late += aside.write(self.moment, rows)
        return Counts(late=late, rejected=rejected)


def _onward(before: tuple[int | None, ...], now: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Frontiers never go back."""
    if not before:
        return now
    return tuple(
        old if new is None or (old is not None and new < old) else new
        for old, new in zip(before, now, strict=True)
    )
