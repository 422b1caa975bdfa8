"""Moves state to the channels that a new router gives it, by reference: no row is read or written.

Segments are immutable, so a channel can have rows of a file that another one wrote. Every channel that may
get rows of a segment gets a reference to it with a view (see `views`); channels that change nothing keep what
they have. The driver decides this alone, in a time that does not depend on the size of the state. Nothing
counts before the manifest of the epoch is written, so a replay moves the same state again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.errors import DamagedCheckpoint
from penstock.state.placing import Placing
from penstock.state.segments import Segment
from penstock.state.storage import Location
from penstock.state.table import Table
from penstock.state.views import Rule, View

__all__ = ["Channels", "MovingStage", "Relocated"]

Channels = tuple[tuple[Segment, ...], ...]
"""The segments of a stage, by channel."""


@dataclass(frozen=True)
class Relocated:
    """The state of a stage after a move, and how many base rows went to other channels.

    `rows` counts a row once for every copy, and `bytes` is their size. Nobody has read them, so both are
    estimates, in proportion to what the router moved.
    """

    channels: Channels
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class MovingStage:
    """The state of a stage before a move: its tables, their segments, and where their rows belong."""

    tables: tuple[Table, ...]
    channels: Channels
    placing: Placing

    def move(self, folder: Location, label: str, channels: int) -> Relocated:
        """Give every segment to the channels that have rows of it from now on; there are so many of them."""
        for segments in self.channels:
            _all_known(self.tables, segments)
        parts = [_Move(self, table, folder, f"{label}-{table.name}").run(channels) for table in self.tables]
        return Relocated(
            tuple(
                tuple(segment for each in parts for segment in each.channels[channel])
                for channel in range(channels)
            ),
            sum(each.rows for each in parts),
            sum(each.bytes for each in parts),
        )


@dataclass(frozen=True)
class _Move:
    """The move of one table; its rule is written when the first segment needs it."""

    stage: MovingStage
    table: Table
    folder: Location
    label: str

    def run(self, channels: int) -> Relocated:
        groups: list[dict[int, list[Segment]]] = [{} for _ in range(channels)]
        rows, size = 0, 0.0
        for source, segments in enumerate(self.stage.channels):
            own = self.table.own(segments)
            for target, segment in self._dealt(own, source):
                groups[target].setdefault(source, []).append(segment)
                if target != source and segment.level == 0:
                    rows += segment.rows
                    size += segment.living_bytes
        after = []
        for channel, found in enumerate(groups):
            others = sorted(found.keys() - {channel})
            sources = [channel, *others] if channel in found else others
            after.append(self.table.arrive([found[source] for source in sources]))
        return Relocated(tuple(after), rows, round(size))

    def _dealt(self, segments: Sequence[Segment], source: int) -> list[tuple[int, Segment]]:
        """References to the segments of a channel, in their order, each with the channel that it is for.

        Rows that describe others go with them, whole.
        """
        placing, port = self.stage.placing, self.table.port
        flows = [
            {} if each.level < 0 else placing.flow(source, port, (each.first, each.end)) for each in segments
        ]
        reached = dict.fromkeys((target for flow in flows for target in flow), 0.0)
        described = any(each.level < 0 for each in segments)
        found: list[tuple[int, Segment]] = []
        for each, flow in zip(segments, flows, strict=True):
            if each.level < 0:
                found += [(target, each) for target in reached]
            elif each.level == 0 or placing.coarse or flow == {source: None}:
                # What describes the rows of several segments has to find all of them.
                wanted = {**reached, **flow} if described else flow
                found += [
                    (target, self._seen_by(each, source, target, share)) for target, share in wanted.items()
                ]
        return found

    def _seen_by(self, segment: Segment, source: int, target: int, share: float | None) -> Segment:
        if share is None:
            return segment
        view = View(self._rule, source, target)
        return replace(segment, rows=max(1, round(segment.rows * share)), views=(*segment.views, view))

    @cached_property
    def _rule(self) -> str:
        return Rule(self.stage.placing, self.table.keys, self.table.port).write(self.folder, self.label)


def _all_known(tables: Sequence[Table], segments: Sequence[Segment]) -> None:
    names = {table.name for table in tables}
    for each in segments:
        if each.table not in names:
            raise DamagedCheckpoint(
                f"segment {each.name} belongs to table {each.table!r}, but the stage has the tables "
                f"{', '.join(map(repr, sorted(names))) or 'none'}, so its rows cannot be moved; run the "
                "version that wrote the checkpoint, or start with a new one"
            )
