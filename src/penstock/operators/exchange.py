"""What a port of a stage sends to its channels: a value that any executor can run.

The map side runs an exchange on Arrow as a projection, an optional combine and a placement; where a stage
runs in the channels of another one, rows stay where they are. What DuckDB cannot evaluate as Spark does,
Spark SQL evaluates. Where rows go is the `Distribution` that all ports of a stage share.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.columns import HASH, KEY, TIME
from penstock.distribution import Distribution
from penstock.distribution.distribution import Form
from penstock.expressions.scalar import SqlColumn

__all__ = [
    "HASH",
    "KEY",
    "TIME",
    "Bucket",
    "Combine",
    "Digest",
    "Exchange",
    "Form",
    "Nulls",
    "SqlColumn",
]

Nulls = Literal["sent", "never"]
"""Rows with a null in their key: they are sent like others, or not at all."""


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
class Exchange:
    """What one port sends to the channels of its stage.

    `columns` and `digests` are sent as rows; with a `combine`, partials may be sent instead. `distribution`
    says where they go.
    """

    columns: tuple[SqlColumn, ...]
    distribution: Distribution
    port: int = 0
    bucket: Bucket | None = None
    combine: Combine | None = None
    nulls: Nulls = "sent"
    digests: tuple[Digest, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell keys apart, in the order in which they are hashed."""
        return self.distribution.keys(self.port)

    @property
    def schema(self) -> Any:
        """The Arrow schema of the rows."""
        columns = [(each.name, each.type) for each in self.columns]
        return pa.schema([*columns, *((each.name, pa.int64()) for each in self.digests)])
