"""Parquet files named for epoch and channel, so that a replayed epoch replaces its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.runtime.records import Moment
from penstock.runtime.results import Output, ResultFormat
from penstock.runtime.storage import Location

__all__ = ["ParquetDelivery"]

_STAGING = "_staging"


@dataclass
class ParquetDelivery:
    """Channels write to a staging folder inside the sink; delivering is renaming."""

    folder: Location
    compression: str
    _first: bool = True

    @property
    def target(self) -> ResultFormat:
        """The staging folder, which readers of Parquet folders skip for its underscore."""
        return ResultFormat(self.folder / _STAGING, "parquet", self.compression)

    def prepare(self, schema: object) -> None:
        """Make the folders; what failed tries left in staging goes."""
        del schema
        staging = self.folder / _STAGING
        staging.make()
        for name in staging.names():
            staging.delete(name)

    def deliver(self, moment: Moment, outputs: Sequence[tuple[int, Output]]) -> None:
        """Rename; the same epoch and channel always give the same name.

        Only the first epoch of a run can have been tried before, perhaps with other files.
        """
        if self._first:
            names = {f"{moment}.{channel:05d}.parquet" for channel, _ in outputs}
            for name in self.folder.names():
                if name.startswith(f"{moment}.") and name not in names:
                    self.folder.delete(name)
            self._first = False
        for channel, output in outputs:
            self.folder.move(f"{_STAGING}/{output.name}", f"{moment}.{channel:05d}.parquet")

    def forget(self, outputs: Sequence[Output]) -> None:
        """Nothing is left behind."""
