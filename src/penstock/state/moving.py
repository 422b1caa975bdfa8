"""Moves state to the channels that a new router gives it; state that stays is not touched.

One task per channel that loses keys reads its segments, writes the leaving rows as new segments for their
channels, and adds a mask to each segment that has lost rows. All names are unique to the attempt, and nothing
counts before the manifest of the epoch is written, so a replay moves the same state again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import DamagedCheckpoint
from penstock.state.placing import Placing, StateLayout
from penstock.state.segments import Segment
from penstock.state.storage import Location
from penstock.state.table import Departure, Table

__all__ = ["Channels", "MoveTask", "MovingStage", "gathered"]

Channels = tuple[tuple[Segment, ...], ...]
"""The segments of a stage, by channel."""


@dataclass(frozen=True)
class MovingStage:
    """The state of a stage before a move: its tables, their segments, and where their rows belong."""

    tables: tuple[Table, ...]
    channels: Channels
    placing: Placing

    def move(self, folder: Location, label: str, channel: int) -> Departure:
        """Move the rows that leave one channel, table by table."""
        segments = self.channels[channel]
        _all_known(self.tables, segments)
        parts = [table.move(folder, label, segments, self.placing, channel) for table in self.tables]
        return Departure(
            tuple(segment for each in parts for segment in each.kept),
            tuple(pair for each in parts for pair in each.gone),
            sum(each.rows for each in parts),
            # The tables of a stage hold the same keys.
            max((each.keys for each in parts), default=0),
        )

    def arrived(self, own: Sequence[Segment], came: Sequence[Segment]) -> tuple[Segment, ...]:
        """The segments of a channel after segments from other channels arrived."""
        return tuple(
            segment for table in self.tables for segment in table.arrive(table.own(own), table.own(came))
        )


@dataclass(frozen=True)
class MoveTask:
    """The moves of a group of stages that share channels; plain data, so it can run on any worker."""

    folder: Location
    label: str
    stages: tuple[MovingStage, ...]

    def work(self, channel: int) -> tuple[Departure, ...]:
        """Move the rows that leave one channel, for each stage."""
        return tuple(
            stage.move(self.folder, f"{self.label}-{place}-{channel}", channel)
            for place, stage in enumerate(self.stages)
        )

    def sources(self, before: StateLayout, after: StateLayout) -> list[int]:
        """The channels that have state and may lose some of it."""
        filled = {
            channel for stage in self.stages for channel, segments in enumerate(stage.channels) if segments
        }
        lost = before.losing(after)
        return sorted(filled if lost is None else filled & lost)


def gathered(
    task: MoveTask, departures: Mapping[int, tuple[Departure, ...]], channels: int
) -> list[Channels]:
    """The segments of every stage and channel after all moves, for the new number of channels."""
    found = []
    for place, stage in enumerate(task.stages):
        came: dict[int, list[Segment]] = {}
        for source in sorted(departures):
            for target, segment in departures[source][place].gone:
                came.setdefault(target, []).append(segment)
        after = []
        for channel in range(channels):
            own = stage.channels[channel] if channel < len(stage.channels) else ()
            if channel in departures:
                own = departures[channel][place].kept
            after.append(stage.arrived(own, came.get(channel, ())))
        found.append(tuple(after))
    return found


def _all_known(tables: Sequence[Table], segments: Sequence[Segment]) -> None:
    names = {table.name for table in tables}
    for each in segments:
        if each.table not in names:
            raise DamagedCheckpoint(
                f"segment {each.name} belongs to table {each.table!r}, but the stage has the tables "
                f"{', '.join(map(repr, sorted(names))) or 'none'}, so its rows cannot be moved; run the "
                "version that wrote the checkpoint, or start with a new one"
            )
