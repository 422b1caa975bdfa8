"""Every channel gets every row, and divides the work by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.distribution.distribution import Distribution, Files, Layout, Placed, Sample, Settings, Steering
from penstock.state.placing import Flow, Mask, Placing, Read

__all__ = ["Broadcast", "Everywhere", "EverywherePlacing"]


@dataclass(frozen=True, kw_only=True)
class Everywhere(Layout):
    """The number of channels is all there is to say."""

    kind: ClassVar[str] = "everywhere"


@dataclass(frozen=True)
class Broadcast(Distribution):
    """Every channel gets every row."""

    copies: ClassVar[bool] = True

    def home(self, layout: Everywhere, files: Files, port: int, task: int) -> "EverywherePlacer":
        """Everywhere."""
        del files, port, task
        return EverywherePlacer(layout.channels)

    def move(self, before: Everywhere, after: Everywhere, files: Files) -> "EverywherePlacing":
        """New channels get all of it."""
        del files
        return EverywherePlacing(before.channels, after.channels)

    def steering(self, settings: Settings, files: Files) -> "BroadcastSteering":
        """As asked for."""
        return BroadcastSteering(self, settings, files)


@dataclass
class BroadcastSteering(Steering):
    """Follows the number of channels."""

    def first(self, channels: int, sample: Sample) -> Everywhere:
        """So many channels."""
        del sample
        return Everywhere(channels=channels)


@dataclass(frozen=True)
class EverywherePlacer:
    """Every channel gets every row."""

    channels: int

    def place(self, rows: Any) -> Placed:
        """A copy for each channel."""
        every = np.arange(rows.num_rows)
        return np.repeat(every, self.channels), np.tile(np.arange(self.channels, dtype=np.int32), len(every))


@dataclass(frozen=True)
class EverywherePlacing(Placing):
    """State that every channel has whole: new channels get it from the first, and others lose it."""

    before: int
    after: int

    kind: ClassVar[str] = "everywhere"
    coarse: ClassVar[bool] = True

    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """All rows, so nobody has to choose among them."""
        del port, bounds
        new = range(self.before, self.after) if source == 0 else ()
        return dict.fromkeys([*([source] if source < self.after else []), *new])

    def takes(self, read: Read, source: int, target: int) -> Mask:
        """All rows."""
        del source, target
        return np.ones(len(read.numbers), np.bool_)

    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Both numbers of channels."""
        return {"before": self.before, "after": self.after}, []

    @classmethod
    def unpacked(cls, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> "EverywherePlacing":
        """The same placing."""
        del arrays
        return cls(values["before"], values["after"])
