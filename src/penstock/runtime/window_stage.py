"""A stage of windowed aggregation."""

from dataclasses import dataclass
from functools import cached_property

from penstock.compile import Combining, Stage, WindowPlan
from penstock.query import Select, Stream
from penstock.runtime.beside import RawRows
from penstock.runtime.exits import Exit
from penstock.runtime.intake import Intake
from penstock.runtime.map_side import EMPTY, MapSide
from penstock.runtime.pane_query import PaneQuery
from penstock.runtime.placing import Homes, KeyPlacing
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.segments import Segment
from penstock.runtime.stage import Entrance, Turn
from penstock.runtime.storage import Location
from penstock.runtime.window_task import WindowTask

__all__ = ["WindowStage"]


@dataclass(frozen=True)
class WindowStage:
    """Panes on the map side, windows in the channels.

    `alone` says that its only feed is a stream that feeds nothing else. `parted` are the columns of its
    state that the router of its channels hashes. `raw` forms its rows where it runs in the channels of
    another stage.
    """

    stage: Stage
    plan: WindowPlan
    entrances: tuple[Entrance, ...]
    exits: tuple[Exit, ...]
    alone: bool
    parted: tuple[str, ...]
    raw: RawRows | None = None

    @property
    def combinings(self) -> tuple[Combining, ...]:
        """Where partials may be formed, the better guess first."""
        return ("channel",) if self.raw else self.plan.combinings

    @property
    def splits(self) -> bool:
        """Whether hot keys may be split: partials are formed by user code that allows it."""
        return bool(self.raw is None and self.plan.keys and self.plan.splits)

    def bound(self, record: StageRecord, port: int) -> int | None:
        """Where the last closed window ends."""
        del port
        closed = self._closed(record)
        return None if closed is None else self.plan.shape.pane_start(closed)

    def map_side(self, intake: Intake, plan: StagePlan, record: StageRecord) -> MapSide:
        """Run everything up to the exchange."""
        if self._unwatched:
            (feed,) = self.entrances[0].port
            return self._panes.run_alone(intake, feed, plan, self._closed(record))
        rows = self.entrances[0].rows(intake, plan.channels)
        return EMPTY if rows is None else self._panes.run(intake, rows, plan)

    def turn(
        self, record: StageRecord, frontiers: tuple[int | None, ...], side: MapSide, drained: int | None
    ) -> Turn:
        """Which window stays open; it never goes back."""
        first_open = self._opens(record, frontiers[0], side, drained)
        idle = not side.taken and first_open == record.first_open
        promise = None if first_open is None else self.plan.shape.start_of(first_open)
        if drained is not None:
            promise = drained if promise is None else max(drained, promise)
        return Turn(frontiers, promise, first_open, idle)

    def task(
        self, record: StageRecord, turn: Turn, plan: StagePlan, folder: Location, label: str
    ) -> WindowTask:
        """The work of its channels."""
        return WindowTask(
            plan=self.plan,
            combining=plan.combining,
            folder=folder,
            label=label,
            state=record.channels or _nothing(plan.channels),
            opened=record.first_open,
            opens=turn.first_open,
            exits=self.exits,
            raw=self.raw,
            formed=plan.sub_keys is not None,
        )

    def placing(self, before: Homes, after: Homes) -> KeyPlacing:
        """Partials go with their keys."""
        del before
        assert after.router is not None
        return KeyPlacing(self.parted, after.router.arrays)

    def joined(self, own: tuple[Segment, ...], came: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """All panes; nodes only where no key has come, since theirs may not cover the same panes."""
        return (*(each for each in own if each.length <= 1), *came) if came else own

    @cached_property
    def _panes(self) -> PaneQuery:
        return PaneQuery(self.plan)

    @cached_property
    def _unwatched(self) -> bool:
        feeds = self.entrances[0].port
        return (
            self.alone
            and len(feeds) == 1
            and isinstance(feeds[0].origin, Stream)
            and not feeds[0].exchanged
            and all(isinstance(step, Select) for step in feeds[0].outside)
        )

    def _closed(self, record: StageRecord) -> int | None:
        """The pane below which tuples are late."""
        return None if record.first_open is None else self.plan.shape.closed_below(record.first_open)

    def _opens(
        self, record: StageRecord, frontier: int | None, side: MapSide, drained: int | None
    ) -> int | None:
        if drained is not None:
            if self.raw is not None:
                # What comes from the stage beside it is not known here; nothing is later than this.
                opens = self.plan.shape.last_window_with(self.plan.shape.pane_of(drained)) + 1
            else:
                newest = [each for each in (record.newest, side.newest) if each is not None]
                if not newest:
                    return record.first_open
                opens = self.plan.shape.last_window_with(max(newest)) + 1
        elif frontier is None:
            return record.first_open
        else:
            opens = self.plan.shape.first_open(frontier)
        return opens if record.first_open is None else max(opens, record.first_open)


def _nothing(channels: int) -> tuple[tuple[Segment, ...], ...]:
    return ((),) * channels
