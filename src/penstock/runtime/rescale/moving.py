"""The moves of an epoch: the driver gives every channel references to what it has from now on."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.control.observation import Moved
from penstock.operators.kernel import Kernel
from penstock.routing import shaped_grid
from penstock.runtime.dataflow.channels import window_channels
from penstock.runtime.records import StagePlan, StageRecord
from penstock.runtime.routers import Routers
from penstock.runtime.stage import StageRunner
from penstock.state.moving import MovingStage
from penstock.state.placing import (
    EverywherePlacing,
    GridPlacing,
    KeyPlacing,
    Placing,
    SpreadPlacing,
    StateLayout,
    WindowPlacing,
)
from penstock.state.storage import Location

__all__ = ["Moving", "placing", "relocated"]


def relocated(before: StagePlan, after: StagePlan) -> bool:
    """Whether a plan has state elsewhere than the one before it."""
    return (before.router, before.channels) != (after.router, after.channels) or after.spread is not None


def placing(kernel: Kernel, before: StateLayout, after: StateLayout) -> Placing:
    """Where the rows of a stage's state go: with their keys, or to the new grid where they have copies."""
    exchange = kernel.exchanges[0]
    if exchange.windows is not None:
        old, new = (window_channels(kernel, each.batches, each.channels) for each in (before, after))
        assert old is not None
        assert new is not None
        bucket = exchange.bucket
        return (
            WindowPlacing(old, new)
            if bucket is None
            else WindowPlacing(old, new, bucket.name, bucket.width, bucket.offset)
        )
    if exchange.everywhere:
        return EverywherePlacing(before.channels, after.channels)
    if not exchange.keys:
        grids = (shaped_grid(exchange.copied, each.channels) for each in (before, after))
        return GridPlacing(*grids)
    if exchange.nulls == "equal":
        assert before.router is not None
        assert after.router is not None
        return KeyPlacing(before.router.arrays, after.router.arrays)
    return SpreadPlacing(before.join_router(), after.join_router())


@dataclass(frozen=True)
class Moving:
    """Moves the state of a stage and of those in its channels, all by the router of the first."""

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
        old = self._layout(before, records[0])
        new = self._layout(
            after, records[0] if after.spread is None else replace(records[0], spread=after.spread)
        )
        found = [
            MovingStage(
                member.kernel.tables,
                record.channels or ((),) * before.channels,
                placing(member.kernel, old, new),
            ).move(self.folder, f"{self.label}-{member.number}", after.channels)
            for member, record in zip(members, records, strict=True)
        ]
        moved = [replace(record, channels=each.channels) for record, each in zip(records, found, strict=True)]
        moved[0] = replace(moved[0], spread=new.spread)
        return moved, Moved(
            stage=members[0].number,
            before=before.channels,
            after=after.channels,
            rows=sum(each.rows for each in found),
            bytes=sum(each.bytes for each in found),
            seconds=time.perf_counter() - began,
        )

    def _layout(self, plan: StagePlan, record: StageRecord) -> StateLayout:
        router = self.routers.find(plan.router) if plan.router else None
        return StateLayout(router, plan.channels, record.spread, plan.batches)
