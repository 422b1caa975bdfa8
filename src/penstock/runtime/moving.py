"""The moves of an epoch: the driver gives every channel references to what it has from now on."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.control.observation import Moved
from penstock.distribution.distribution import Files, Layout
from penstock.runtime.records import StageRecord
from penstock.runtime.stage import StageRunner
from penstock.state.moving import MovingStage
from penstock.state.storage import Location

__all__ = ["Moving"]


@dataclass(frozen=True)
class Moving:
    """Moves the state of a stage and of those in its channels, all by the layout of the first."""

    files: Files
    folder: Location
    label: str

    def run(
        self, members: Sequence[StageRunner], records: Sequence[StageRecord], before: Layout, after: Layout
    ) -> tuple[list[StageRecord], Moved]:
        """The records with all segments where the plan has them, and what was moved for that."""
        began = time.perf_counter()
        found = [
            MovingStage(
                member.kernel.tables,
                record.channels or ((),) * before.channels,
                member.kernel.distribution.move(before, after, self.files),
            ).move(self.folder, f"{self.label}-{member.number}", after.channels)
            for member, record in zip(members, records, strict=True)
        ]
        moved = [replace(record, channels=each.channels) for record, each in zip(records, found, strict=True)]
        return moved, Moved(
            stage=members[0].number,
            before=before.channels,
            after=after.channels,
            rows=sum(each.rows for each in found),
            bytes=sum(each.bytes for each in found),
            seconds=time.perf_counter() - began,
        )
