"""Two streams of calls in which every pair within a minute is compared, and the number of those pairs.

The exchanges report each call at some time in the day after it, so that few of the pairs that meet in a
window overlap in time: 0.28 %. If all did, writing the results would be all that is measured.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock_lab.bench.data import write_files
from penstock_lab.workloads import CallRecords

__all__ = ["WITHIN_US", "CallPairs"]

WITHIN_US = 60_000_000
_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class CallPairs:
    """`calls` on each side over `seconds`."""

    calls: int
    seconds: int
    seed: int

    @cached_property
    def left(self) -> pa.Table:
        """The left calls in order of time."""
        return _reported_late(CallRecords(self.calls, self.seconds, cloned=0, seed=2 * self.seed))

    @cached_property
    def right(self) -> pa.Table:
        """The right calls in order of time."""
        return _reported_late(CallRecords(self.calls, self.seconds, cloned=0, seed=2 * self.seed + 1))

    @cached_property
    def comparisons(self) -> int:
        """Pairs at most a minute apart: those for which the condition has to be decided."""
        left, right = microseconds(self.left), microseconds(self.right)
        first = np.searchsorted(right, left - WITHIN_US)
        return int((np.searchsorted(right, left + WITHIN_US, side="right") - first).sum())

    def write(self, folder: Path, calls_per_file: int) -> tuple[Path, Path]:
        """The files of both sides."""
        return (
            write_files(folder / "left", lambda: self.left, calls_per_file),
            write_files(folder / "right", lambda: self.right, calls_per_file),
        )


def microseconds(table: pa.Table) -> NDArray[np.int64]:
    """The event times of a table."""
    times: NDArray[np.int64] = table["time"].cast(pa.int64()).to_numpy()
    return times


def _reported_late(records: CallRecords) -> pa.Table:
    table = records.table.sort_by("time")
    ago = np.random.default_rng([records.seed, 8]).integers(0, _DAY_US, table.num_rows)
    for name in ("start", "stop"):
        column = table[name]
        earlier = pa.array(column.cast(pa.int64()).to_numpy() - ago, column.type)
        table = table.set_column(table.column_names.index(name), name, earlier)
    return table
