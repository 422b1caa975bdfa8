"""Parquet files in a folder, and how far its epochs are whole.

    000000000012-data.00000.<id>.3.parquet    epoch, number, the output it belongs to, the owner that wrote it
    _staging/                                 what workers have written and nobody has delivered yet
    _penstock/<id>.json                       whose results are here, and the last epoch that is whole
    _penstock/<id>.parquet                    no rows, with the columns of the results

An epoch is delivered by renaming its files, then the record moves on to it. Readers of Parquet folders skip
names with an underscore and see files as they come; `delivered` lists the files of whole epochs only.

A run that begins wipes its files in staging, then drops what is here of epochs that were never committed. A
driver that another one has replaced therefore finds nothing to rename, and names that hold the number of the
owner keep it from touching the files of the other. Before it deletes what it has listed and before it
renames what it has written, it checks that it was not replaced.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Final
from uuid import uuid4

import pyarrow as pa

from penstock.checks import flag, one_of, path_text
from penstock.connect.results import EpochId, Output, ResultFormat, Results
from penstock.connect.sink import Begins, Delivery, Sink, SinkContext
from penstock.durable import Purpose
from penstock.errors import BadPath, BadSink, DamagedCheckpoint, SinkError
from penstock.state.sealed import load, seal
from penstock.state.storage import Location

__all__ = ["ParquetFiles", "ParquetSink", "delivered", "parquet"]

COMPRESSION: Final = "snappy"
COMPRESSIONS: Final = ("snappy", "zstd", "gzip", "lz4", "brotli", "none")

_STAGING = "_staging"
_RECORDS = "_penstock"
_NAME = re.compile(r"(?P<epoch>\d{12}-(?:data|drain))\.\d{5}\.(?P<id>[\w-]+)\.(?P<owner>\d+)\.parquet")
# Files of failed attempts are looked for in staging once in so many epochs.
_SWEEP_EVERY = 64


@dataclass(frozen=True)
class _Record:
    """Whose results a folder has; `through` is the last epoch that is whole, empty if there is none."""

    id: str
    output: str
    shared: bool
    through: str = ""


@dataclass
class ParquetFiles:
    """The files of one output in a folder."""

    folder: Location
    id: str
    output: str
    begins: Begins
    shared: bool = False
    step: Purpose = Purpose.DELIVERY
    compression: str = COMPRESSION
    _delivered: int = 0

    def __post_init__(self) -> None:
        """Take the folder, and drop what was delivered but never committed."""
        for part in (self.folder, self.folder / _STAGING, self.folder / _RECORDS):
            part.make(self.step)
        self._refuse_others()
        self._sweep()
        last = "" if self.begins.last is None else str(self.begins.last)
        found = [_NAME.fullmatch(name) for name in self.folder.names()]
        self.begins.hold()
        for known in found:
            if known and known["id"] == self.id and known["epoch"] > last:
                self.folder.delete(known.string, self.step)
        self.folder.sync_names(self.step)
        # What the last manifest says was delivered, so this is right even if the record was lost.
        self._record(last)
        (self.folder / _RECORDS).sync_names(self.step)

    def describe(self, schema: pa.Schema) -> None:
        """Keep the columns of the results, for readers that come before the first one."""
        import pyarrow.parquet as pq  # noqa: PLC0415 -- 20 ms that other sinks do not need

        buffer = pa.BufferOutputStream()
        pq.write_table(schema.empty_table(), buffer)
        self._place(f"{self.id}.parquet", buffer.getvalue().to_pybytes())

    def format(self) -> ResultFormat:
        """Where workers write."""
        return ResultFormat(self.folder / _STAGING, "parquet", self.compression, f"{self.id}.")

    def deliver(self, epoch: EpochId, files: Sequence[Output]) -> None:
        """Rename the files of an epoch; when their names are on disk, the record says that it is whole."""
        # The next owner has wiped what was here before it came; what was written since must not be renamed.
        self.begins.hold()
        for place, file in enumerate(files):
            name = f"{epoch}.{place:05d}.{self.id}.{self.begins.owner}.parquet"
            self.folder.move(f"{_STAGING}/{file.name}", name, self.step)
        self.folder.sync_names(self.step)
        self._record(str(epoch))

    def committed(self) -> None:
        """The epoch is committed: no attempt of it is under way any more."""
        self._delivered += 1
        if self._delivered % _SWEEP_EVERY == 0:
            self._sweep()

    def _sweep(self) -> None:
        """Delete what failed attempts left in staging; in a shared folder others have theirs there."""
        staging = self.folder / _STAGING
        mine = [name for name in staging.names() if name.startswith(f"{self.id}.")]
        self.begins.hold()
        for name in mine:
            staging.delete(name, self.step)

    def _record(self, through: str) -> None:
        record = _Record(self.id, self.output, self.shared, through)
        self._place(f"{self.id}.json", seal(asdict(record)))

    def _place(self, name: str, data: bytes) -> None:
        """Write a file beside the record.

        By way of staging, where the next owner wipes it: a replaced driver cannot move it. What it writes
        there afterwards, it does not move.
        """
        hidden = f"{_STAGING}/{self.id}.{uuid4().hex}"
        with self.folder.output(hidden, self.step) as stream:
            stream.write(data)
        self.folder.sync(hidden, self.step)
        self.begins.hold()
        self.folder.move(hidden, f"{_RECORDS}/{name}", self.step)

    def _refuse_others(self) -> None:
        """Refuse a folder in which others have files, unless all of them agreed to share it."""
        others = [each for name, each in _records(self.folder).items() if name != f"{self.id}.json"]
        for other in others:
            if other is None or not (self.shared and other.shared):
                whose = "that cannot be read" if other is None else f"of {other.output!r} (id {other.id})"
                raise SinkError(
                    f"{self.folder.uri} holds results {whose}, and this is another checkpoint or output (id "
                    f"{self.id}); use another folder, go on with the checkpoint that it belongs to, delete "
                    "the folder to begin anew, or give parquet(path, shared=True) to both"
                )
        known = {self.id, *(each.id for each in others if each is not None)}
        for name in self.folder.names():
            found = _NAME.fullmatch(name)
            if not self.shared and name.endswith(".parquet") and not (found and found["id"] in known):
                raise SinkError(
                    f"{self.folder.uri} holds Parquet files that this checkpoint did not write, such as "
                    f"{name}; use a new or empty folder, or parquet(path, shared=True) to write beside them"
                )


@dataclass(frozen=True, repr=False)
class ParquetSink(Sink):
    """Parquet files under a path or URI; a `shared` folder may hold the files of others as well."""

    path: str
    compression: str = COMPRESSION
    shared: bool = False

    keeps_files: ClassVar[bool] = True
    takes_back: ClassVar[bool] = True

    def __post_init__(self) -> None:
        path_text(self.path, BadSink)
        one_of("compression", self.compression, COMPRESSIONS, BadSink)
        flag("shared", self.shared, BadSink)

    def writes(self, folder: Location) -> ResultFormat:
        """The staging folder, which readers of Parquet folders skip because of its underscore."""
        del folder
        return ResultFormat(self.folder / _STAGING, "parquet", self.compression)

    def open(self, context: SinkContext) -> Delivery:
        """Take the folder, unless it has the results of another checkpoint."""
        files = ParquetFiles(self.folder, context.id, context.name, context.begins, shared=self.shared)
        files.describe(context.schema)
        return _ParquetDelivery(files)

    @property
    def folder(self) -> Location:
        """The folder of the files."""
        return Location.of(self.path)

    @property
    def exclusive(self) -> str | None:
        """The folder, unless it is shared."""
        return None if self.shared else self.folder.uri

    def __repr__(self) -> str:
        shared = ", shared=True" if self.shared else ""
        return f"parquet({self.path!r}, compression={self.compression!r}{shared})"


@dataclass(frozen=True)
class _ParquetDelivery(Delivery):
    """Delivers files by renaming them."""

    files: ParquetFiles

    def deliver(self, epoch: EpochId, results: Results) -> None:
        """Rename the files."""
        self.files.deliver(epoch, results.files)

    def committed(self, epoch: EpochId) -> None:
        """Now and then, delete what failed attempts left."""
        del epoch
        self.files.committed()


def parquet(
    path: str | os.PathLike[str], compression: str = COMPRESSION, *, shared: bool = False
) -> ParquetSink:
    """Write Parquet files under a path or any URI that pyarrow.fs understands.

    A folder belongs to one output of one checkpoint, and others are refused. With `shared` several write side
    by side, each under its own names.

    >>> parquet("out", compression="zstd")
    parquet('out', compression='zstd')
    """
    lowered = compression.lower() if isinstance(compression, str) else compression
    return ParquetSink(path_text(path, BadSink), lowered, shared)


def delivered(path: str | os.PathLike[str]) -> list[str]:
    """The files of all whole epochs in a folder of `parquet`, in the order of epochs.

    While a run delivers an epoch, and after a kill until the next start, the folder itself may hold a part of
    that epoch. Give the list to any reader: `duckdb.read_parquet(ps.delivered("out"))`,
    `pyarrow.dataset.dataset(ps.delivered("out"))`, `spark.read.parquet(*ps.delivered("out"))`. Before the
    first result the list has a file without rows, which has the columns.
    """
    folder = Location.of(path_text(path, BadPath))
    # The records first: what they call whole has its names by then.
    through = {}
    for name, record in _records(folder).items():
        if record is None:
            raise DamagedCheckpoint(
                f"{folder.uri}/{_RECORDS}/{name} is truncated or altered; the next start of its run mends it"
            )
        through[record.id] = record.through
    if not through:
        raise BadPath(f"{folder.uri} is not a folder of ps.parquet(): it has no {_RECORDS}; give one that is")
    found = [(name, _NAME.fullmatch(name)) for name in folder.names()]
    whole = [name for name, known in found if known and known["epoch"] <= through.get(known["id"], "")]
    if not whole:
        described = set((folder / _RECORDS).names())
        whole = [f"{_RECORDS}/{id_}.parquet" for id_ in through if f"{id_}.parquet" in described]
    return [f"{folder.uri}/{name}" for name in whole]


def _records(folder: Location) -> Mapping[str, _Record | None]:
    """Who has results in a folder; None for a record that cannot be read."""
    found: dict[str, _Record | None] = {}
    for name in (folder / _RECORDS).names():
        if not name.endswith(".json"):
            continue
        try:
            found[name] = _Record(**load(folder / _RECORDS, name))
        except DamagedCheckpoint:
            found[name] = None
    return found
