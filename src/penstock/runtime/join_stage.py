"""A stage that joins two ports: equal keys meet in a channel, a Cartesian product on a grid of channels."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import Combining, JoinPlan, Stage
from penstock.joins import END, Frontiers
from penstock.runtime.exits import Exit
from penstock.runtime.frames import sql_over
from penstock.runtime.intake import Intake, united
from penstock.runtime.join_route import CHANNEL, find_hot_keys, routed
from penstock.runtime.join_task import LEFT, RIGHT, SIDE, JoinTask
from penstock.runtime.map_side import EMPTY, MapSide
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.spark_plans import run_map_side
from penstock.runtime.stage import Entrance, Turn
from penstock.runtime.storage import Location

__all__ = ["JoinStage"]


@dataclass(frozen=True)
class JoinStage:
    """Routes both sides in one exchange, each row as a struct of its side.

    `structs` are Spark's types of what the left and the right side send. `shared` says that another stage
    runs in its channels and relies on every key being whole in one of them.
    """

    stage: Stage
    plan: JoinPlan
    entrances: tuple[Entrance, ...]
    exits: tuple[Exit, ...]
    structs: tuple[str, str]
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
        spread = record.spread
        if spread is None and not self.shared and any(frame is not None for frame in sides):
            spread = find_hot_keys(self.plan, sides, plan.channels)
        frames = [
            self._packed(routed(frame, self.plan, side, plan.channels, spread), side)
            for side, frame in enumerate(sides)
            if frame is not None
        ]
        if not frames:
            return EMPTY
        exchanged = united(frames).repartitionById(plan.channels, F.col(CHANNEL))
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

    def _promise(self, record: StageRecord, frontiers: tuple[int | None, ...]) -> int | None:
        left, right = frontiers
        if left is None or right is None:
            return record.promise
        back = self.stage.operator.within or 0  # type: ignore[union-attr]
        promise = min(left, right) - back
        return promise if record.promise is None else max(promise, record.promise)

    def _sent(self, intake: Intake, plan: StagePlan, side: int) -> DataFrame | None:
        """The columns that a side sends."""
        frames = self.entrances[side].frames(intake, plan.channels)
        if not frames:
            return None
        sent = ", ".join(f"{column.sql} AS `{column.name}`" for column in self.plan.sides[side])
        return sql_over(united(frames), f"SELECT {sent} FROM _ps_rows")

    def _packed(self, frame: DataFrame, side: int) -> DataFrame:
        """Rows of a side as they share an exchange with those of the other."""
        own, other = (LEFT, RIGHT) if side == 0 else (RIGHT, LEFT)
        names = ", ".join(f"`{column.name}`" for column in self.plan.sides[side])
        return frame.selectExpr(
            f"{side} AS {SIDE}",
            f"cast(struct({names}) AS {self.structs[side]}) AS {own}",
            f"cast(NULL AS {self.structs[1 - side]}) AS {other}",
            CHANNEL,
        )
