"""Which windows share a channel in the next epoch, where rows go to the channels of their windows."""

from collections.abc import Mapping

import numpy as np

from penstock.control.rescale import Rebatch
from penstock.operators.kernel import Kernel
from penstock.routing import Batches
from penstock.routing.window_ids import window_range
from penstock.runtime.observation import Decision
from penstock.runtime.records import Manifest, StageRecord

__all__ = ["batches_decided", "planned_batches"]


def batches_decided(manifest: Manifest, before: Manifest, asked: Mapping[int, Rebatch]) -> list[Decision]:
    """The stages whose windows are shared out in batches of another size, with the reasons of who asked."""
    found = []
    for stage, (plan, then) in enumerate(zip(manifest.plan.stages, before.plan.stages, strict=True)):
        if plan.batches is None or then.batches is None or plan.batches.size == then.batches.size:
            continue
        reason = asked[stage].reason if stage in asked else "the plan of an earlier try"
        found.append(
            Decision(
                stage,
                then.channels,
                plan.channels,
                epoch=manifest.epoch_id.epoch,
                partitioning=f"batches of {plan.batches.size} from window {plan.batches.start:,} on",
                reason=reason,
            )
        )
    return found


def planned_batches(
    kernel: Kernel, before: Batches | None, record: StageRecord | None, wish: int | None = None
) -> Batches | None:
    """The batches as before, or of the size that is wished for from the next boundary on.

    The boundary lies after all windows of rows that are kept, so that none of them has to move. The earlier
    size is forgotten when no row that is kept has a window before the boundary.
    """
    windows = kernel.exchanges[0].windows
    if windows is None:
        return None
    batches = before or Batches(windows.batch)
    if windows.fixed:
        return batches
    kept = [each for channel in (record.channels if record else ()) for each in channel]
    if not kept:
        return Batches(wish or batches.size)
    ends = np.array([min(each.first for each in kept), max(each.end for each in kept) - 1])
    first, last = window_range(windows.shape, ends)
    batches = batches.settled(int(first[0]))
    if wish is None or wish == batches.size or batches.earlier is not None:
        return batches
    return batches.changed(wish, beyond=int(last[1]))
