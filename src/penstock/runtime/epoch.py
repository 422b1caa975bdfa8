"""One epoch: plan, map side, frontier, channels, delivery, manifest, in this order.

Everything an epoch does is decided by its plan, its tuples and the manifest before it, so a replay
does the same again; everything it leaves behind counts only once its manifest is written.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import ROWS, WindowPlan
from penstock.errors import DamagedCheckpoint
from penstock.query import Query
from penstock.runtime.aside import Aside
from penstock.runtime.channel import RECEIPT, ChannelTask, Receipt
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.failures import translated
from penstock.runtime.keyed import KEY
from penstock.runtime.prefix import REJECT
from penstock.runtime.progress import EpochProgress, instant
from penstock.runtime.records import Counts, EpochPlan, Manifest, Moment
from penstock.runtime.segments import PANE
from penstock.runtime.session import prepare
from penstock.runtime.sinks import Delivery
from penstock.runtime.stages import Shuffled, declare_grouped, run_map_side

__all__ = ["Epochs"]

_LATEST = "_ps_latest"
_METRICS = "penstock"
# A pane that no tuple has; the smallest bigint has no literal in SQL.
_REJECTED = -(2**63) + 1
# Shipping raw rows wins where the combine leaves more than two partials for three rows.
_HARDLY_SHRINKS = 1.5
# How often the other way is tried, so that the choice follows the data.
_TRIAL_EVERY = 64


@dataclass
class Epochs:
    """Runs epoch after epoch of one query; the manifest of the last one is all it remembers."""

    query: Query
    plan: WindowPlan
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

    def run(self, frame: DataFrame, epoch: int) -> None:
        """One micro-batch of Structured Streaming."""
        moment = Moment(epoch)
        last = self.last
        if self._first:
            self._check_continuity(moment)
            self._first = False
        if last is not None and last.moment >= moment:
            return
        prepare(frame.sparkSession)
        with translated():
            self._happen(moment, frame, drain=False)

    def drain(self, session: Any) -> None:
        """Close every window that is still open; what the end of a bounded source means."""
        last = self.last
        if last is None or last.moment.drain or last.newest is None:
            return
        prepare(session)
        with translated():
            self._happen(Moment(last.moment.epoch, drain=True), session.range(0).toDF("nothing"), drain=True)

    def _check_continuity(self, moment: Moment) -> None:
        """Spark's part of the checkpoint and ours must tell the same story."""
        known = -1 if self.last is None else self.last.moment.epoch
        if moment.epoch not in {known, known + 1}:
            raise DamagedCheckpoint(
                f"checkpoint {self.checkpoint.root.uri}: Spark continues at epoch {moment.epoch}, the last "
                f"manifest is of epoch {known}; restore the whole folder from one backup, or use a new checkpoint"
            )

    def _happen(self, moment: Moment, frame: DataFrame, *, drain: bool) -> None:
        phases = _Phases()
        plan = self._planned(moment)
        before = self.last or Manifest(moment, plan)
        phases.ends("plan")
        if drain:
            shuffled, counts, seen, partials = None, Counts(), {}, 0
        else:
            shuffled, counts, seen, partials = self._map_side(frame, plan, before)
        phases.ends("map")
        frontier = before.frontier.advance(
            seen, now=plan.now, delay=self.query.relation.stream.delay, idle=self.query.relation.stream.idle
        )
        opens = self._opens(before, frontier.value, drain=drain)
        receipts = self._channels(moment, plan, before, opens, shuffled, frame)
        phases.ends("channels")
        aside = self._set_aside(moment, frame, before, counts) if not drain else Counts()
        outputs = [(receipt.channel, output) for receipt in receipts for output in receipt.outputs]
        self.delivery.deliver(moment, outputs)
        phases.ends("deliver")
        counts = replace(
            counts,
            late=aside.late,
            rejected=aside.rejected,
            results=sum(output.rows for _, output in outputs),
        )
        manifest = self._manifest(before, moment, plan, receipts, counts)
        manifest = replace(manifest, frontier=frontier, first_open=opens)
        if partials and plan.combining == "map":
            manifest = replace(manifest, shrinkage=counts.rows / partials)
        self.checkpoint.commit(manifest)
        self.last = manifest
        phases.ends("commit")
        self.delivery.forget([output for _, output in outputs])
        self.checkpoint.collect(orphans=False)
        if shuffled is not None:
            shuffled.release()
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

    def _map_side(
        self, frame: DataFrame, plan: EpochPlan, before: Manifest
    ) -> tuple[Shuffled, Counts, dict[str, int], int]:
        """Form and route partials; what was seen on the way decides the frontier."""
        keys = [KEY.format(place) for place in range(len(self.plan.keys))]
        read = [f"`{name}`" for name in self.plan.reads]
        placed = self._placed(frame)
        if plan.combining == "map":
            rows = f"`{ROWS}`"
            combined = (
                declare_grouped(placed.select(*keys, PANE, *read), keys or [PANE])
                .groupBy(*keys, PANE)
                .agg(*self._aggregates(), F.expr(f"max({self.plan.time})").alias(_LATEST))
            )
            columns = [name for partial in self.plan.partials for name in partial.wire]
        else:
            rows = "1L"
            inputs = [f"{each.sql} AS `{each.name}`" for each in self.plan.inputs]
            latest = f"{self.plan.time} AS `{_LATEST}`"
            combined = placed.selectExpr(*(f"`{key}`" for key in keys), f"`{PANE}`", *inputs, latest)
            columns = [each.name for each in self.plan.inputs]
        closed = self._closed_below(before)
        observed = combined.observe(_METRICS, *(F.expr(each) for each in _metrics(rows, closed)))
        taking = observed.where(f"`{PANE}` >= {closed}L").select(*keys, PANE, *columns)
        shuffled = run_map_side(
            taking.repartitionById(plan.channels, F.expr(self._route(plan, keys))), _METRICS
        )
        taken, late, rejected, latest_time, partials = shuffled.observed
        counts = Counts(
            rows=(taken or 0) + (late or 0) + (rejected or 0), late=late or 0, rejected=rejected or 0
        )
        return shuffled, counts, self._seen(placed, latest_time), partials or 0

    def _aggregates(self) -> list[Any]:
        return [
            F.expr(sql).alias(name)
            for partial in self.plan.partials
            for name, sql in zip(partial.wire, partial.combine, strict=True)
        ]

    def _placed(self, frame: DataFrame) -> DataFrame:
        """Every tuple with its pane, rejected ones with a mark in its place.

        Nothing in here changes from epoch to epoch, so the JVM keeps the code that it compiled for
        the hot loop; what is late is judged after the combine.
        """
        pane = f"CASE WHEN {REJECT} IS NOT NULL THEN {_REJECTED}L ELSE {self.plan.pane} END"
        return frame.selectExpr("*", f"{pane} AS `{PANE}`")

    def _closed_below(self, before: Manifest) -> int:
        """The pane below which tuples are late."""
        return _REJECTED + 1 if before.first_open is None else self.plan.shape.closed_below(before.first_open)

    def _route(self, plan: EpochPlan, keys: list[str]) -> str:
        if not keys:
            return "0"
        return f"cast(pmod(xxhash64({', '.join(keys)}), {plan.channels}L) AS int)"

    def _seen(self, placed: DataFrame, latest: int | None) -> dict[str, int]:
        """The latest event time of each stream in the epoch."""
        key = self.query.relation.stream.key
        if latest is None:
            return {}
        if key is None:
            return {"": latest}
        streams = placed.where(f"{REJECT} IS NULL").groupBy(F.col(key).cast("string").alias("stream"))
        found = streams.agg(F.expr(f"max({self.plan.time})").alias("latest")).collect()
        return {row["stream"] or "": row["latest"] for row in found}

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

    def _channels(  # noqa: PLR0913, PLR0917 - what one epoch hands to its channels
        self,
        moment: Moment,
        plan: EpochPlan,
        before: Manifest,
        opens: int | None,
        shuffled: Shuffled | None,
        frame: DataFrame,
    ) -> list[Receipt]:
        """Run the kernel on every channel; nothing to do is done without a job."""
        state = before.channels or ((),) * plan.channels
        empty = shuffled is None or not shuffled.observed[-1]
        if empty and (opens == before.first_open or not any(state)):
            return [Receipt(channel, segments, (), 0, None) for channel, segments in enumerate(state)]
        task = ChannelTask(
            plan=self.plan,
            combining=plan.combining,
            folder=self.checkpoint.segments,
            label=str(moment),
            state=state,
            opened=before.first_open,
            opens=opens,
            target=self.delivery.target,
        )
        rows = shuffled.rows if shuffled else frame.repartitionById(plan.channels, F.lit(0))
        found = rows.mapInArrow(_Kernel(task), RECEIPT).collect()
        return sorted((Receipt.from_json(row["receipt"]) for row in found), key=lambda each: each.channel)

    def _set_aside(self, moment: Moment, frame: DataFrame, before: Manifest, seen: Counts) -> Counts:
        """Late tuples and rejects to their own outputs; the count is of what was written."""
        late = rejected = 0
        if seen.late:
            below = f"`{PANE}` > {_REJECTED}L AND `{PANE}` < {self._closed_below(before)}L"
            late = self.late.write(moment, self._placed(frame).where(below))
        if seen.rejected:
            rejected = self.rejects.write(moment, frame.where(f"{REJECT} IS NOT NULL"))
        return Counts(late=late, rejected=rejected)

    def _manifest(
        self, before: Manifest, moment: Moment, plan: EpochPlan, receipts: list[Receipt], counts: Counts
    ) -> Manifest:
        newest = [each.newest for each in receipts if each.newest is not None]
        newest += [before.newest] if before.newest is not None else []
        return Manifest(
            moment=moment,
            plan=plan,
            newest=max(newest) if newest else None,
            shrinkage=before.shrinkage,
            channels=tuple(receipt.segments for receipt in receipts),
            counts=counts,
            total=before.total + counts,
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


def _metrics(rows: str, closed: int) -> list[str]:
    """Tuples taken, late and rejected, the latest event time, and the rows that go to channels."""
    rejected, late = f"`{PANE}` = {_REJECTED}L", f"`{PANE}` < {closed}L"
    return [
        f"sum(CASE WHEN NOT {late} THEN {rows} END) AS taken",
        f"sum(CASE WHEN {late} AND NOT {rejected} THEN {rows} END) AS late",
        f"sum(CASE WHEN {rejected} THEN {rows} END) AS rejected",
        f"max(CASE WHEN NOT {rejected} THEN `{_LATEST}` END) AS latest",
        f"count(CASE WHEN NOT {late} THEN 1 END) AS partials",
    ]
