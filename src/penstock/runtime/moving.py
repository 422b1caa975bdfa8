"""The moves of an epoch, seen from the driver: which channels lose state, and what all have afterwards."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from penstock.runtime.moves import Departure, MoveTask, StageState, move_state
from penstock.runtime.placing import Homes, losing
from penstock.runtime.records import Moved, StagePlan, StageRecord
from penstock.runtime.routers import Routers
from penstock.runtime.segments import Segment
from penstock.runtime.stage import StageRunner
from penstock.runtime.storage import Location

__all__ = ["Moving", "gathered", "relocated"]


def relocated(before: StagePlan, after: StagePlan) -> bool:
    """Whether a plan has state elsewhere than the one before it."""
    return (before.router, before.channels) != (after.router, after.channels) or after.spread is not None


@dataclass(frozen=True)
class Moving:
    """Moves the state of a stage and of those beside it, all by the router of the first."""

    session: SparkSession
    routers: Routers
    folder: Location
    label: str

    def run(
        self,
        members: Sequence[StageRunner],
        records: Sequence[StageRecord],
        before: StagePlan,
        after: StagePlan,
    ) -> tuple[list[StageRecord], Moved]:
        """The records with all segments where the plan has them, and what was moved for that."""
        began = time.perf_counter()
        old = self._homes(before, records[0])
        new = self._homes(
            after, records[0] if after.spread is None else replace(records[0], spread=after.spread)
        )
        states = tuple(
            StageState(record.channels or ((),) * before.channels, member.placing(old, new))
            for member, record in zip(members, records, strict=True)
        )
        sources = self._sources(states, old, new)
        task = MoveTask(self.folder, self.label, states)
        departures = move_state(self.session, task, sources) if sources else {}
        moved = [
            replace(record, channels=gathered(member, state, departures, place, after.channels))
            for place, (member, record, state) in enumerate(zip(members, records, states, strict=True))
        ]
        moved[0] = replace(moved[0], spread=new.spread)
        every = [each for departure in departures.values() for each in departure]
        return moved, Moved(
            stage=members[0].stage.number,
            before=before.channels,
            after=after.channels,
            rows=sum(each.rows for each in every),
            # Stages beside each other have the same keys.
            keys=max(
                (sum(each[place].keys for each in departures.values()) for place in range(len(states))),
                default=0,
            ),
            bytes=sum(segment.bytes for each in every for _, segment in each.gone),
            seconds=time.perf_counter() - began,
        )

    def _homes(self, plan: StagePlan, record: StageRecord) -> Homes:
        router = self.routers.find(plan.router) if plan.router else None
        return Homes(router, plan.channels, record.spread)

    def _sources(self, states: Sequence[StageState], old: Homes, new: Homes) -> list[int]:
        """The channels that have state and lose some of it."""
        filled = {channel for state in states for channel, segments in enumerate(state.channels) if segments}
        spread = old.spread is not new.spread or (old.spread is not None and old.spread.keys)
        if old.router is None or new.router is None or spread:
            return sorted(filled)
        lost = losing(old.router, new.router) | set(range(new.channels, old.channels))
        return sorted(filled & lost)


def gathered(
    member: StageRunner,
    state: StageState,
    departures: dict[int, tuple[Departure, ...]],
    place: int,
    channels: int,
) -> tuple[tuple[Segment, ...], ...]:
    """The segments of every channel of a stage after all moves."""
    came: dict[int, list[Segment]] = {}
    for source in sorted(departures):
        for target, segment in departures[source][place].gone:
            came.setdefault(target, []).append(segment)
    found = []
    for channel in range(channels):
        own = state.channels[channel] if channel < len(state.channels) else ()
        if channel in departures:
            own = departures[channel][place].kept
        found.append(member.joined(own, tuple(came.get(channel, ()))))
    return tuple(found)
