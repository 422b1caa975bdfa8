"""One epoch: plan, map side, frontier, channels, delivery, manifest, in this order.

Everything an epoch does is decided by its plan, its tuples and the manifest before it, so a replay
does the same again; everything it leaves behind counts only once its manifest is written.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from penstock.compile import WindowPlan
from penstock.errors import DamagedCheckpoint
from penstock.query import Query
from penstock.runtime.aside import Aside
from penstock.runtime.channel import ChannelTask, Receipt
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.failures import translated
from penstock.runtime.pane_query import EMPTY, MapSide, PaneQuery
from penstock.runtime.progress import EpochProgress, instant
from penstock.runtime.records import Counts, EpochPlan, Manifest, Moment
from penstock.runtime.segments import Segment
from penstock.runtime.session import prepare
from penstock.runtime.sinks import Delivery
from penstock.runtime.stages import planned_rows

__all__ = ["Epochs"]

_RECEIPT = StructType([StructField("channel", IntegerType()), StructField("receipt", StringType())])
# Shipping raw rows wins where the combine leaves more than two partials for three rows.
_HARDLY_SHRINKS = 1.5
# How often the other way is tried, so that the choice follows the data.
_TRIAL_EVERY = 64


@dataclass
class Epochs:
    """Runs epoch after epoch of one query; the manifest of the last one is all it remembers."""

    session: SparkSession
    query: Query
    plan: WindowPlan
    panes: PaneQuery
    checkpoint: Checkpoint
    delivery: Delivery
    late: Aside
    rejects: Aside
    channels: int
    report: Callable[[EpochProgress], None]
    clock: Callable[[], float] = time.time
    last: Manifest | None = field(init=False)

    def __post_init__(self) -> None:
        self.last = self.checkpoint.latest()
        self._first = True

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
            self._happen(moment, planned_rows(frame, query), drain=False)

    def drain(self) -> None:
        """Close every window that is still open; what the end of a bounded source means."""
        last = self.last
        if last is None or last.moment.drain or last.newest is None:
            return
        # A session of its own: the settings of epochs are not for the user's.
        session = self.session.newSession()
        prepare(session)
        with translated():
            self._happen(Moment(last.moment.epoch, drain=True), session.range(0), drain=True)

    def _check_continuity(self, moment: Moment) -> None:
        """Spark's part of the checkpoint and ours must tell the same story."""
        known = -1 if self.last is None else self.last.moment.epoch
        if moment.epoch not in {known, known + 1}:
            raise DamagedCheckpoint(
                f"checkpoint {self.checkpoint.root.uri}: Spark continues at epoch {moment.epoch}, the last "
                f"manifest is of epoch {known}; restore the whole folder from one backup, or use a new one"
            )

    def _happen(self, moment: Moment, frame: DataFrame, *, drain: bool) -> None:
        phases = _Phases()
        plan = self._planned(moment)
        before = self.last or Manifest(moment, plan)
        phases.ends("plan")
        side = EMPTY if drain else self.panes.run(frame, plan, before.first_open)
        phases.ends("map")
        stream = self.query.relation.stream
        frontier = before.frontier.advance(side.seen, now=plan.now, delay=stream.delay, idle=stream.idle)
        opens = self._opens(before, frontier.value, drain=drain)
        rows = side.shuffled.rows if side.shuffled else _no_rows(frame.sparkSession, plan.channels)
        idle = not side.taken and opens == before.first_open
        receipts = _unchanged(before, plan) if idle else self._channels(moment, plan, before, opens, rows)
        phases.ends("channels")
        aside = self._set_aside(moment, frame, before, side)
        outputs = [(receipt.channel, output) for receipt in receipts for output in receipt.outputs]
        self.delivery.deliver(moment, outputs)
        phases.ends("deliver")
        manifest = replace(
            self._manifest(before, moment, plan, receipts, aside), frontier=frontier, first_open=opens
        )
        self.checkpoint.commit(manifest)
        self.last = manifest
        phases.ends("commit")
        self.delivery.forget([output for _, output in outputs])
        self.checkpoint.collect(orphans=False)
        if side.shuffled is not None:
            side.shuffled.release()
        phases.ends("collect")
        self.report(self._progress(manifest, phases))

    def _planned(self, moment: Moment) -> EpochPlan:
        """The plan that an earlier try left, or a new one, durable before the epoch runs."""
        known = self.checkpoint.plan(moment)
        if known is not None:
            return known
        channels = len(self.last.channels) if self.last and self.last.channels else self.channels
        plan = EpochPlan(channels, self._combining(moment), int(self.clock() * 1e6))
        self.checkpoint.write_plan(moment, plan)
        return plan

    def _combining(self, moment: Moment) -> Any:
        """Where partials are formed, from how much the last combine shrank the rows."""
        best, *others = self.plan.combinings
        shrinkage = self.last.shrinkage if self.last else None
        if not others or shrinkage is None or shrinkage >= _HARDLY_SHRINKS:
            return best
        return best if moment.epoch % _TRIAL_EVERY == 0 else others[0]

    def _opens(self, before: Manifest, frontier: int | None, *, drain: bool) -> int | None:
        """The first window that stays open; it never goes back."""
        if drain:
            assert before.newest is not None
            opens = self.plan.shape.last_window_with(before.newest) + 1
        elif frontier is None:
            return before.first_open
        else:
            opens = self.plan.shape.first_open(frontier)
        return opens if before.first_open is None else max(opens, before.first_open)

    def _channels(
        self, moment: Moment, plan: EpochPlan, before: Manifest, opens: int | None, rows: DataFrame
    ) -> list[Receipt]:
        """Run the kernel on every channel; one without new rows still has windows to close."""
        task = ChannelTask(
            plan=self.plan,
            combining=plan.combining,
            folder=self.checkpoint.segments,
            label=str(moment),
            state=_state(before, plan),
            opened=before.first_open,
            opens=opens,
            target=self.delivery.target,
        )
        found = rows.mapInArrow(_Kernel(task), _RECEIPT).collect()
        return sorted((Receipt.from_json(row["receipt"]) for row in found), key=lambda each: each.channel)

    def _set_aside(self, moment: Moment, frame: DataFrame, before: Manifest, side: MapSide) -> Counts:
        """Late tuples and rejects to their own outputs; the count is of what was written."""
        late = rejected = 0
        if side.may_be_late:
            late = self.late.write(moment, self.panes.late(frame, before.first_open))
        if side.rejected:
            rejected = self.rejects.write(moment, self.panes.rejected(frame))
        return Counts(late=late, rejected=rejected)

    def _manifest(
        self, before: Manifest, moment: Moment, plan: EpochPlan, receipts: list[Receipt], aside: Counts
    ) -> Manifest:
        newest = [each.newest for each in receipts if each.newest is not None]
        newest += [before.newest] if before.newest is not None else []
        tuples = sum(receipt.tuples for receipt in receipts)
        received = sum(receipt.received for receipt in receipts)
        results = sum(output.rows for receipt in receipts for output in receipt.outputs)
        counts = replace(aside, rows=tuples + aside.late + aside.rejected, results=results)
        return Manifest(
            moment=moment,
            plan=plan,
            newest=max(newest) if newest else None,
            channels=tuple(receipt.segments for receipt in receipts),
            counts=counts,
            total=before.total + counts,
            shrinkage=tuples / received if received and plan.combining == "map" else before.shrinkage,
        )

    def _progress(self, manifest: Manifest, phases: "_Phases") -> EpochProgress:
        segments = [each for channel in manifest.channels for each in channel]
        frontier = manifest.frontier.value
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
            combining=manifest.plan.combining,
        )


@dataclass(frozen=True)
class _Kernel:
    """What Spark ships to the workers: the task, told its channel by the partition it runs on."""

    task: ChannelTask

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        return self.task.run(context.partitionId(), batches)


class _Phases:
    """Wall time of the parts of an epoch."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._since = time.perf_counter()

    def ends(self, name: str) -> None:
        """A phase ends here and the next begins."""
        now = time.perf_counter()
        self.times[name] = now - self._since
        self._since = now


def _state(before: Manifest, plan: EpochPlan) -> tuple[tuple[Segment, ...], ...]:
    return before.channels or ((),) * plan.channels


def _no_rows(session: SparkSession, channels: int) -> DataFrame:
    """What the channels of an epoch without tuples start from."""
    return session.range(0, numPartitions=1).repartitionById(channels, F.lit(0))


def _unchanged(before: Manifest, plan: EpochPlan) -> list[Receipt]:
    """What channels that have nothing to do would hand back."""
    return [
        Receipt(channel, segments, (), 0, 0, None) for channel, segments in enumerate(_state(before, plan))
    ]
