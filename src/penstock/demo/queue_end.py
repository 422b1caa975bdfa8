"""A user-defined aggregate that sees the end of a traffic queue: free flow gives way to standing cars."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps

__all__ = ["FREE", "MINIMUM", "STANDING", "QueueEnd"]

FREE = 50.0
STANDING = 15.0
MINIMUM = 5


class QueueEnd(ps.ArrowAggregate):
    """Whether an area holds the end of a queue when the window ends.

    It does when traffic once flowed freely (50 km/h or more) and, of the reports since the last such one,
    at least five and at least half come from standing cars (15 km/h or less). Rows without a speed are
    left out. The state is what follows the last free-flowing report, so that an earlier state matters
    only until the later one has seen free flow: this makes the merge associative.
    """

    state: ClassVar[Mapping[str, str]] = {"freed": "boolean", "reports": "bigint", "standing": "bigint"}
    result: ClassVar[str] = "boolean"

    def accumulate(self, groups: npt.NDArray[np.integer], n: int, *columns: pa.Array) -> pa.RecordBatch:
        """One state per group; linear in the rows."""
        speed = pc.cast(columns[0], pa.float64()).to_numpy(zero_copy_only=False)
        free = speed >= FREE
        row = np.arange(len(speed))
        last_free = np.full(n, -1)
        np.maximum.at(last_free, groups[free], row[free])
        since = (row > last_free[groups]) & ~np.isnan(speed)
        return _states(
            last_free >= 0,
            np.bincount(groups[since], minlength=n),
            np.bincount(groups[since & (speed <= STANDING)], minlength=n),
        )

    def merge(self, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        """Right alone where it has seen free flow, else left and right added up."""
        freed = right["freed"].to_numpy(zero_copy_only=False)
        earlier = ~freed
        return _states(
            freed | left["freed"].to_numpy(zero_copy_only=False),
            right["reports"].to_numpy() + earlier * left["reports"].to_numpy(),
            right["standing"].to_numpy() + earlier * left["standing"].to_numpy(),
        )

    def finish(self, state: pa.RecordBatch) -> pa.Array:
        """True where a queue of enough standing cars followed free flow."""
        standing = state["standing"].to_numpy()
        queue = (standing >= MINIMUM) & (2 * standing >= state["reports"].to_numpy())
        return pa.array(queue & state["freed"].to_numpy(zero_copy_only=False))


def _states(
    freed: npt.NDArray[np.bool_], reports: npt.NDArray[np.int64], standing: npt.NDArray[np.int64]
) -> pa.RecordBatch:
    columns = [pa.array(freed), pa.array(reports, pa.int64()), pa.array(standing, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=["freed", "reports", "standing"])
