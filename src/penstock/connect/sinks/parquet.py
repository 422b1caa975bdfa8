"""Parquet files, named by epoch and channel so that a replayed epoch replaces its own files."""

import os
from dataclasses import dataclass
from typing import ClassVar, Final

from penstock.connect.checks import one_of, path_text
from penstock.connect.results import EpochId, ResultFormat, Results
from penstock.connect.sink import Delivery, Sink, SinkContext
from penstock.durable import Step
from penstock.errors import BadSink
from penstock.state.storage import Location

__all__ = ["ParquetSink", "parquet"]

COMPRESSIONS: Final = ("snappy", "zstd", "gzip", "lz4", "brotli", "none")

_STAGING = "_staging"


@dataclass(frozen=True, repr=False)
class ParquetSink(Sink):
    """Parquet files under a path or URI. Workers write to a staging folder inside it."""

    path: str
    compression: str = "snappy"

    keeps_files: ClassVar[bool] = True

    def __post_init__(self) -> None:
        path_text(self.path, BadSink)
        one_of("compression", self.compression, COMPRESSIONS, BadSink)

    def writes(self, folder: Location) -> ResultFormat:
        """The staging folder, which readers of Parquet folders skip because of its underscore."""
        del folder
        return ResultFormat(self.folder / _STAGING, "parquet", self.compression)

    def open(self, context: SinkContext) -> Delivery:
        """Make the folders, and delete what failed attempts left in staging."""
        del context
        staging = self.folder / _STAGING
        staging.make()
        for name in staging.names():
            staging.delete(name, Step.DELIVERY)
        return _ParquetDelivery(self.folder)

    @property
    def folder(self) -> Location:
        """The folder of the files."""
        return Location.of(self.path)

    @property
    def exclusive(self) -> str:
        """The folder: file names depend only on epochs, so another output would replace these files."""
        return self.folder.uri

    def __repr__(self) -> str:
        return f"parquet({self.path!r}, compression={self.compression!r})"


@dataclass
class _ParquetDelivery(Delivery):
    """Delivers files by renaming them."""

    folder: Location
    first: bool = True

    def deliver(self, epoch: EpochId, results: Results) -> None:
        """Rename the files; the same epoch and place always give the same name."""
        names = [f"{epoch}.{place:05d}.parquet" for place in range(len(results.files))]
        if self.first:
            # Only this epoch can have an earlier attempt, perhaps with more files.
            for name in self.folder.names():
                if name.startswith(f"{epoch}.") and name not in names:
                    self.folder.delete(name, Step.DELIVERY)
            self.first = False
        for name, file in zip(names, results.files, strict=True):
            self.folder.move(f"{_STAGING}/{file.name}", name, Step.DELIVERY)
        self.folder.sync_names(Step.DELIVERY)


def parquet(path: str | os.PathLike[str], compression: str = "snappy") -> ParquetSink:
    """Write Parquet files under a path or any URI that pyarrow.fs understands.

    >>> parquet("out", compression="zstd")
    parquet('out', compression='zstd')
    """
    lowered = compression.lower() if isinstance(compression, str) else compression
    return ParquetSink(path_text(path, BadSink), lowered)
