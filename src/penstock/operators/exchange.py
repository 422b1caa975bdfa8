"""What a port of a stage sends to its channels, and where: a value that any executor can run.

The map side runs an exchange on Arrow as a projection, an optional combine and a placement; where a stage
runs in the channels of another one, rows stay where they are. What DuckDB cannot evaluate as Spark does,
Spark SQL evaluates. A row goes to the channel of its key. Where an operator keeps nothing and has no key, any
channel will do, and the plan of an epoch says how rows find theirs. Two exceptions keep one key from filling
one channel:

- *Pairs.* An operator that looks at pairs of rows may have copies of a row in several channels, as long as
  each pair meets in exactly one of them: a grid of channels, for all rows where there is no key, for the
  rows of a hot key where there is one ([002] §III.D).
- *Parts.* An operator whose rows are combined into mergeable partials may have the rows of a hot key dealt
  out over channels by sub-keys. Each forms partials of its part, and a second hop brings them to the one
  channel that keeps the key ([000] §4.1).

Where whole windows are computed and no key tells channels apart, the time of a row does: it goes to every
channel that computes one of its windows ([004] §2.2, §2.3).
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.columns import HASH, KEY, TIME
from penstock.expressions.scalar import SqlColumn
from penstock.routing import Grouping, WindowShape

__all__ = [
    "HASH",
    "KEY",
    "TIME",
    "Bucket",
    "ByWindow",
    "Combine",
    "Copied",
    "Digest",
    "Exchange",
    "Form",
    "Nulls",
    "SqlColumn",
]

Form = Literal["rows", "combined"]
"""How new rows reach a channel: as they are, or combined into partials on the way."""

Nulls = Literal["equal", "never", "anywhere"]
"""Rows with a null in their key: null is a key like any other, they are not sent, they may go anywhere."""

Copied = Literal["both", "left", "right", "neither"]
"""Which ports of a pairing operator may have copies of a row in several channels."""


@dataclass(frozen=True)
class Bucket:
    """A column that numbers slices of event time: floor((time - offset) / width).

    All rows of a bucket are late or none is.
    """

    name: str
    offset: int
    width: int

    @property
    def sql(self) -> str:
        """The number of a row's bucket, in exact integer arithmetic also before 1970."""
        moved = f"(`{TIME}` - {self.offset}L)"
        return f"({moved} - pmod({moved}, {self.width}L)) div {self.width}L"

    def start(self, number: int) -> int:
        """The first event time of a bucket."""
        return number * self.width + self.offset


@dataclass(frozen=True)
class Combine:
    """Rows may be sent as partials, one for each key and bucket of what a task combines.

    `weight` names the partial that says how many tuples a row stands for. The kernel forms partials, unless
    only Spark can: then `sql` has names and Spark SQL aggregates. With `rowwise` every row stays apart, and
    Spark only forms the partial of each.
    """

    weight: str
    sql: tuple[tuple[str, str], ...] = ()
    rowwise: bool = False


@dataclass(frozen=True)
class Digest:
    """A hash of other columns that are sent, computed from their values.

    As a `tie` it orders rows of equal time: those "before" are negative, those "after" are not.
    """

    name: str
    of: tuple[str, ...]
    tie: Literal["", "before", "after"] = ""

    def value(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The values of the column."""
        if not self.tie:
            return hashes.view(np.int64)
        half = (hashes >> np.uint64(1)).view(np.int64)
        return -1 - half if self.tie == "before" else half


@dataclass(frozen=True)
class ByWindow:
    """Rows go to the channels that compute their windows, `batch` neighbours on one channel at first.

    Where the number is `fixed`, no plan changes it.
    """

    shape: WindowShape
    batch: int = 1
    fixed: bool = False


@dataclass(frozen=True)
class Exchange:
    """What one port sends to the channels of its stage.

    `columns` and `digests` are sent as rows; with a `combine`, partials may be sent instead. `keys` name the
    columns that the router hashes, in its order. `copied` says which ports of an operator over pairs may have
    copies of a row; `parts` that rows of a hot key may be formed in several channels; `everywhere` that every
    channel gets every row, and divides the work by itself. `groupings` are the ways in which rows may find a
    channel where any will do, that of the first epoch first; `value` names the column that holds the hash of
    what the cost of a row depends on. With `windows` a row goes to every channel that computes one of its
    windows; the plan says which channel that is.
    """

    columns: tuple[SqlColumn, ...]
    keys: tuple[str, ...] = ()
    bucket: Bucket | None = None
    combine: Combine | None = None
    nulls: Nulls = "equal"
    digests: tuple[Digest, ...] = ()
    copied: Copied = "neither"
    parts: bool = False
    everywhere: bool = False
    groupings: tuple[Grouping, ...] = ()
    value: str = ""
    windows: ByWindow | None = None

    def times(self, rows: Any) -> Any:
        """For each row a time that lies in the same windows as it does."""
        if self.bucket is None:
            return rows[TIME].to_numpy()
        return rows[self.bucket.name].to_numpy() * self.bucket.width + self.bucket.offset

    @property
    def schema(self) -> Any:
        """The Arrow schema of the rows."""
        columns = [(each.name, each.type) for each in self.columns]
        return pa.schema([*columns, *((each.name, pa.int64()) for each in self.digests)])
