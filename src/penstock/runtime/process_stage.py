"""A stage of a keyed stateful function: rows of a key meet in the channel where its state is."""

from dataclasses import dataclass

from penstock.compile import HASH, TIME, Combining, ProcessPlan, Stage
from penstock.runtime.exits import Exit
from penstock.runtime.intake import Intake
from penstock.runtime.map_side import EMPTY, MapSide
from penstock.runtime.placing import Homes, KeyPlacing
from penstock.runtime.process_task import ProcessTask
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.segments import Segment
from penstock.runtime.spark.plans import run_map_side
from penstock.runtime.stage import Entrance, Turn
from penstock.runtime.storage import Location

__all__ = ["ProcessStage"]


@dataclass(frozen=True)
class ProcessStage:
    """Routes rows by the hash of their keys, which goes along: it is what channels group and look up by."""

    stage: Stage
    plan: ProcessPlan
    entrances: tuple[Entrance, ...]
    exits: tuple[Exit, ...]

    @property
    def combinings(self) -> tuple[Combining, ...]:
        """Rows go to the channel as they are."""
        return ("channel",)

    def bound(self, record: StageRecord, port: int) -> int | None:
        """The frontier, since rows and timers before it have been processed."""
        return record.frontiers[port] if record.frontiers else None

    def map_side(self, intake: Intake, plan: StagePlan, record: StageRecord) -> MapSide:
        """Run everything up to the exchange."""
        del record
        rows = self.entrances[0].rows(intake, plan.channels)
        if rows is None:
            return EMPTY
        sent = intake.session.sql(self._sent(rows))
        exchanged = sent.repartitionById(plan.channels, intake.route(plan.router, HASH))
        shuffled = run_map_side(exchanged, intake.watched(), combining=False)
        intake.settle(shuffled.observed if shuffled else {})
        return EMPTY if shuffled is None else MapSide(shuffled, taken=True)

    def turn(
        self, record: StageRecord, frontiers: tuple[int | None, ...], side: MapSide, drained: int | None
    ) -> Turn:
        """How far the function comes: results of rows and timers that are still to come are not before."""
        nothing = not side.taken and not any(record.channels)
        if drained is not None:
            return Turn((drained,), drained, idle=nothing, ended=True)
        unchanged = not side.taken and frontiers == record.frontiers
        return Turn(frontiers, frontiers[0], idle=nothing or unchanged)

    def task(
        self, record: StageRecord, turn: Turn, plan: StagePlan, folder: Location, label: str
    ) -> ProcessTask:
        """The work of its channels."""
        return ProcessTask(
            plan=self.plan,
            folder=folder,
            label=label,
            state=record.channels or ((),) * plan.channels,
            before=record.frontiers[0] if record.frontiers else None,
            after=turn.frontiers[0],
            ended=turn.ended,
            exits=self.exits,
        )

    def placing(self, before: Homes, after: Homes) -> KeyPlacing:
        """Every version of a key's state and the rows that wait go with the key."""
        del before
        assert after.router is not None
        return KeyPlacing(tuple(key.name for key in self.plan.keys), after.router.arrays)

    def joined(self, own: tuple[Segment, ...], came: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """All of them; a key comes whole, and its versions in the order in which they were written."""
        return (*own, *came)

    def _sent(self, rows: str) -> str:
        keyed = [f"{each.sql} AS `{each.name}`" for each in self.plan.keys]
        values = [each.sql for each in self.plan.columns]
        keys = ", ".join(each.name for each in self.plan.keys)
        outer = ", ".join([keys, f"xxhash64({keys}) AS {HASH}", TIME, *values])
        return f"SELECT {outer} FROM (SELECT {', '.join([*keyed, TIME, *values])} FROM {rows})"
