"""A stage that joins two ports: equal keys meet in a channel, a Cartesian product on a grid of channels."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import Combining, JoinPlan, Stage
from penstock.joins import END, Frontiers
from penstock.routing import join_grid
from penstock.runtime.exits import Exit
from penstock.runtime.intake import Intake
from penstock.runtime.join_route import CHANNEL, HASH, find_hot_keys, hash_route, routed
from penstock.runtime.join_task import SIDE, SLOT, JoinTask
from penstock.runtime.map_side import EMPTY, MapSide
from penstock.runtime.placing import GridPlacing, Homes, Placing, SpreadPlacing
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.segments import Segment
from penstock.runtime.spark.plans import run_map_side
from penstock.runtime.spread import Spread
from penstock.runtime.stage import Entrance, Turn
from penstock.runtime.storage import Location

__all__ = ["JoinStage"]


@dataclass(frozen=True)
class JoinStage:
    """Routes both sides in one exchange.

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
        sides = [self._sent(intake, plan, side) for side in (0, 1)]
        if sides == [None, None]:
            return EMPTY
        spread = record.spread
        if spread is None and not self.shared:
            frames = [None if rows is None else intake.session.sql(rows) for rows in sides]
            spread = find_hot_keys(self.plan, frames, plan.channels)
        exchanged = self._routed(intake, sides, plan, spread)
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

    def _sent(self, intake: Intake, plan: StagePlan, side: int) -> str | None:
        """A SELECT of the columns that a side sends, None if it has no rows."""
        rows = self.entrances[side].rows(intake, plan.channels)
        sent = ", ".join(f"{column.sql} AS `{column.name}`" for column in self.plan.sides[side])
        return None if rows is None else f"SELECT {sent} FROM {rows}"

    def _routed(
        self, intake: Intake, sides: list[str | None], plan: StagePlan, spread: Spread | None
    ) -> DataFrame:
        """The rows of both sides in one exchange.

        Hashed keys make one statement: a text is one call to the JVM, where columns are one for every part.
        """
        if self.plan.join.left.keys and (spread is None or not spread.keys):
            texts = [
                f"SELECT {sent}, {hashed.column} AS {HASH} FROM ({rows}){hashed.where}"
                for side, rows in enumerate(sides)
                if rows is not None
                for sent, hashed in [(", ".join(self._columns(side)), hash_route(self.plan, side))]
            ]
            together = intake.session.sql(" UNION ALL ".join(texts))
            return together.repartitionById(plan.channels, intake.route(plan.router, HASH))
        grids = (
            spread.router(intake.routers.find(plan.router)) if spread is not None and plan.router else None
        )
        frames = [
            routed(intake.session.sql(rows), self.plan, side, plan.channels, grids).selectExpr(
                *self._columns(side), CHANNEL
            )
            for side, rows in enumerate(sides)
            if rows is not None
        ]
        together = frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])
        return together.repartitionById(plan.channels, F.col(CHANNEL))

    def _columns(self, side: int) -> list[str]:
        """The side, and its columns in their slots; what only the other side has is empty."""
        slots = self.plan.slots
        names = {
            slot: f"`{each.name}`" for slot, each in zip(slots[side], self.plan.sides[side], strict=True)
        }
        sent = [
            f"{names.get(slot, 'NULL')} AS {SLOT.format(slot)}" for slot in sorted({*slots[0], *slots[1]})
        ]
        return [f"{side} AS {SIDE}", *sent]
