"""Rows that functions of the user cannot take: each task writes its own to a file, up to a limit.

They take the road of all rejects: a file in the staging folder under a name of its own, a receipt with the
results of the same attempt, and a rename when the epoch is delivered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.connect.results import Output, ResultFile, ResultFormat
from penstock.connect.sinks.parquet import ParquetFiles
from penstock.errors import TooManyErrors
from penstock.runtime.set_aside import first_reason

__all__ = ["EpochRefusals", "RefusalFile", "RefusalSetup", "Refusals"]

_SCHEMA = pa.schema([("reason", pa.string()), ("record", pa.string()), ("file", pa.string())])


@dataclass(frozen=True)
class Refusals:
    """Where tasks write the rows that functions refuse, and how many of them an epoch may have."""

    target: ResultFormat
    most: int

    def open(self) -> "RefusalFile":
        """The refused rows of one attempt of a task."""
        return RefusalFile(self)


class RefusalFile:
    """The rows that the functions of one attempt refused; held in memory, since the limit bounds them."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self._rows: list[tuple[str, str]] = []

    def add(self, reason: str, record: str) -> None:
        """One more row, unless there are too many."""
        self._rows.append((reason, record))
        if len(self._rows) > self._refusals.most:
            raise _too_many(len(self._rows), self._refusals.most, reason)

    def close(self) -> tuple[Output, ...]:
        """Write them, make the file durable and return its receipt; nothing if no row was refused."""
        file = ResultFile(self._refusals.target, _SCHEMA)
        reasons, records = [reason for reason, _ in self._rows], [record for _, record in self._rows]
        file.write(pa.table([reasons, records, pa.nulls(len(reasons), pa.string())], schema=_SCHEMA))
        file.close()
        receipt = file.receipt()
        return () if receipt is None else (receipt,)


def _too_many(found: int, most: int, reason: str) -> TooManyErrors:
    """The error for an epoch in which functions refuse more rows than they may."""
    return TooManyErrors(
        f"functions refused {found:,} rows of one epoch or more, and most_errors={most:,} may be set aside, "
        f"such as: {reason}; correct the function, or start again with a larger most_errors"
    )


@dataclass(frozen=True)
class RefusalSetup:
    """Where a run keeps refused rows: the rejects of each stream and of each stage, by name and by number.

    `most` is the limit of an epoch.
    """

    rejects: Mapping[str | int, ParquetFiles]
    most: int

    def refusals(self) -> dict[str | int, Refusals]:
        """Where the tasks of each stream and stage write."""
        return {origin: Refusals(files.format(), self.most) for origin, files in self.rejects.items()}


@dataclass
class EpochRefusals:
    """The rows that functions have refused in an epoch so far, by the stream or stage they came from."""

    setup: RefusalSetup
    files: dict[str | int, list[Output]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of refused rows."""
        return sum(each.rows for files in self.files.values() for each in files)

    def take(self, origin: str | int, files: Sequence[Output]) -> None:
        """Take in what a job reported; the limit holds for all jobs of the epoch together."""
        if not files:
            return
        self.files.setdefault(origin, []).extend(files)
        if self.rows > self.setup.most:
            raise _too_many(self.rows, self.setup.most, first_reason(self.setup.rejects[origin], files[-1]))

    def warnings(self) -> list[str]:
        """What to say of each stream and stage, before the files are delivered."""
        found = []
        for origin, files in self.files.items():
            rejects = self.setup.rejects[origin]
            whose = f"stream {origin!r}" if isinstance(origin, str) else f"stage {origin}"
            found.append(
                f"{sum(each.rows for each in files):,} rows of {whose} were set aside, since "
                f"{first_reason(rejects, files[0])}; {rejects.folder.uri} has them all"
            )
        return found
