"""A stage that joins two ports: equal keys meet in a channel, a Cartesian product on a grid of channels."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import TIME, Combining, JoinPlan, Stage
from penstock.joins import END, Frontiers
from penstock.query import Stream
from penstock.routing import join_grid
from penstock.runtime.exits import Exit
from penstock.runtime.frames import REJECT, steps_sql
from penstock.runtime.intake import Intake, metric
from penstock.runtime.join_route import find_hot_keys, hash_route, routed
from penstock.runtime.join_task import JoinTask
from penstock.runtime.map_side import EMPTY, MapSide
from penstock.runtime.packing import CHANNEL, NEVER, PACKED, SEEN, Packing
from penstock.runtime.placing import GridPlacing, Homes, Placing, SpreadPlacing
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.segments import Segment
from penstock.runtime.spark_plans import run_map_side
from penstock.runtime.spread import Spread
from penstock.runtime.stage import Entrance, Turn
from penstock.runtime.storage import Location

__all__ = ["JoinStage"]


@dataclass(frozen=True)
class JoinStage:
    """Routes both sides in one exchange, as messages of Arrow rows.

    `shared` says that another stage runs in its channels and relies on every key being whole in one of them.
    """

    stage: Stage
    plan: JoinPlan
    entrances: tuple[Entrance, ...]
    exits: tuple[Exit, ...]
    shared: bool

    @property
    def combinings(self) -> tuple[Combining, ...]:
        """Pairs are formed in the channel."""
        return ("channel",)

    def bound(self, record: StageRecord, port: int) -> int | None:
        """The frontier of the port, since rows of the other side have left with it."""
        return record.frontiers[port] if record.frontiers else None

    def map_side(self, intake: Intake, plan: StagePlan, record: StageRecord) -> MapSide:
        """Run everything up to the exchange."""
        sent = [self._sent(intake, plan, side) for side in (0, 1)]
        if sent == [None, None]:
            return EMPTY
        spread = record.spread
        if spread is None and not self.shared:
            frames = [None if each is None else intake.session.sql(each.rows) for each in sent]
            spread = find_hot_keys(self.plan, frames, plan.channels)
        packed = [
            self._packed(intake, each, side, plan, spread)
            for side, each in enumerate(sent)
            if each is not None
        ]
        together = packed[0] if len(packed) == 1 else packed[0].unionAll(packed[1])
        exchanged = together.repartitionById(plan.channels, F.col(CHANNEL))
        shuffled = run_map_side(exchanged, intake.watched(), combining=False)
        intake.settle(shuffled.observed if shuffled else {})
        if shuffled is None:
            return MapSide(spread=spread)
        return MapSide(shuffled, taken=True, spread=spread)

    def turn(
        self, record: StageRecord, frontiers: tuple[int | None, ...], side: MapSide, drained: int | None
    ) -> Turn:
        """How far the join comes; a pair that is still to come has its earlier row so far back at most."""
        if drained is not None:
            idle = not side.taken and not any(record.channels)
            return Turn((drained, drained), drained, idle=idle, ended=True)
        unchanged = frontiers == record.frontiers or not any(record.channels)
        return Turn(frontiers, self._promise(record, frontiers), idle=not side.taken and unchanged)

    def task(
        self, record: StageRecord, turn: Turn, plan: StagePlan, folder: Location, label: str
    ) -> JoinTask:
        """The work of its channels."""
        before = Frontiers(*(record.frontiers or (None, None)))
        after = Frontiers(END, END) if turn.ended else Frontiers(*turn.frontiers)
        return JoinTask(
            plan=self.plan,
            folder=folder,
            label=label,
            state=record.channels or ((),) * plan.channels,
            before=before,
            after=after,
            exits=self.exits,
        )

    def placing(self, before: Homes, after: Homes) -> Placing:
        """Rows go with their keys, those of hot keys and of products to the new grid."""
        if not self.plan.join.left.keys:
            grids = [
                join_grid(self.plan.join.how, self.plan.join.bound, each.channels) for each in (before, after)
            ]
            return GridPlacing(grids[0], grids[1])
        return SpreadPlacing(self.plan.join.left.keys, before.spread_router(), after.spread_router())

    def joined(self, own: tuple[Segment, ...], came: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """All of them; the marks of rows stand in the order of the rows."""
        return (*own, *came)

    def _promise(self, record: StageRecord, frontiers: tuple[int | None, ...]) -> int | None:
        left, right = frontiers
        if left is None or right is None:
            return record.promise
        back = self.stage.operator.within or 0  # type: ignore[union-attr]
        promise = min(left, right) - back
        return promise if record.promise is None else max(promise, record.promise)

    def _sent(self, intake: Intake, plan: StagePlan, side: int) -> "_Sent | None":
        """The rows that a side sends, None if it has none."""
        entrance = self.entrances[side]
        columns = ", ".join(f"{column.sql} AS `{column.name}`" for column in self.plan.sides[side])
        if len(entrance.port) == 1:
            (feed,) = entrance.port
            rows = intake.unwatched(feed)
            if rows is not None:
                assert isinstance(feed.origin, Stream)
                # Where a tuple does not fit, its time says so.
                time = f"CASE WHEN {REJECT} IS NULL THEN {TIME} ELSE {NEVER}L END AS {TIME}"
                fit = f"(SELECT * EXCEPT ({TIME}), {time} FROM {rows})"
                return _Sent(f"SELECT {columns} FROM {steps_sql(feed.outside, fit, TIME)}", feed.origin.name)
        found = entrance.rows(intake, plan.channels)
        return None if found is None else _Sent(f"SELECT {columns} FROM {found}")

    def _packed(
        self, intake: Intake, sent: "_Sent", side: int, plan: StagePlan, spread: Spread | None
    ) -> DataFrame:
        """The rows of a side as messages to the channels."""
        rows = intake.session.sql(sent.rows)
        if self.plan.join.left.keys and (spread is None or not spread.keys):
            hashed = hash_route(self.plan, side)
            channel = F.when(F.expr(hashed.matters), intake.route(plan.router, hashed.hash)).otherwise(-1)
            rows = rows.select(channel.alias(CHANNEL), "*")
        else:
            pair = intake.routers.find(plan.router) if spread is not None and plan.router else None
            grids = spread.router(pair) if spread is not None and pair is not None else None
            rows = routed(rows, self.plan, side, plan.channels, grids)
        bound = intake.bounds.get(sent.watched) if sent.watched else None
        packed = rows.mapInArrow(Packing(side, plan.channels, sent.watched is not None, bound), PACKED)
        if sent.watched is None:
            return packed
        return packed.observe(metric(sent.watched), F.expr(SEEN).alias("seen"))


@dataclass(frozen=True)
class _Sent:
    """A SELECT of the rows of a side; `watched` is the stream that is looked at while they are packed."""

    rows: str
    watched: str | None = None
