"""The queries of `penstock bench skew`, over rows with a key and a value."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock as ps

__all__ = ["SIDES", "Digests", "Rows", "Sums", "Waits", "left_outer_join", "tumbling_windows"]

Rows = Callable[[str], ps.Stream]
"""The stream of a name, with the columns time, key and value."""

SIDES = ("left", "right")
"""The names of a join's two streams; all others read "rows"."""

_STATE = "n bigint, total bigint"


@dataclass(frozen=True)
class Sums(ps.Processor):
    """For each key the number of its rows and the sum of their values: as cheap as user code gets."""

    def step(self, block: ps.Block) -> ps.Outcome:
        """Rows and sums so far."""
        values = self.worth(block.rows["value"].to_numpy())
        n = np.diff(np.append(block.first, len(values))) + block.state["n"].fill_null(0).to_numpy()
        total = np.add.reduceat(values, block.first) + block.state["total"].fill_null(0).to_numpy()
        after = pa.table({"n": n, "total": total})
        return ps.Outcome(after, block.last, after)

    def worth(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """What is summed up of each row."""
        return values

    def __call__(self, rows: Rows) -> ps.Relation:
        """The function over rows."""
        return rows("rows").group_by("key").process(self, state=_STATE, result=_STATE, order="arrival")


@dataclass(frozen=True)
class Digests(Sums):
    """The same with user code that computes: about a microsecond a row for each round of a digest."""

    rounds: int = 16

    def worth(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """A digest of each value."""
        return np.fromiter(map(self._digest, values.tolist()), np.int64, len(values))

    def _digest(self, value: int) -> int:
        text = value.to_bytes(8)
        for _ in range(self.rounds):
            text = hashlib.blake2b(text, digest_size=8).digest()
        return int.from_bytes(text) >> 33


@dataclass(frozen=True)
class Waits(Sums):
    """The same with user code that waits for something else, so many seconds a row.

    Channels that wait run at the same time, however few cores there are.
    """

    row_s: float = 100e-6

    def worth(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The values, after the time that they take."""
        time.sleep(self.row_s * len(values))
        return values


def tumbling_windows(rows: Rows) -> ps.Relation:
    """Three aggregates of each key every two seconds."""
    grouped = rows("rows").group_by("key").window("2 seconds")
    return grouped.agg(rows=ps.count(), total=ps.sum("value"), top=ps.max("value"))


def left_outer_join(rows: Rows) -> ps.Relation:
    """Rows of two streams within three seconds whose values are about the same."""
    left, right = map(rows, SIDES)
    return left.join(
        right,
        "key",
        within="3 seconds",
        how="left",
        condition="abs(l.value - r.value) < 2",
        suffixes=("", "_right"),
    )
