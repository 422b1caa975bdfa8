"""What is written down of an epoch: its plan beforehand, its manifest afterwards."""

from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.compile import Combining
from penstock.runtime.frontier import Frontier
from penstock.runtime.segments import Segment

__all__ = ["Counts", "EpochPlan", "Manifest", "Moment"]


@dataclass(frozen=True, order=True)
class Moment:
    """An epoch, or the draining after it when a bounded source has ended."""

    epoch: int
    drain: bool = False

    def __str__(self) -> str:
        # Names sort as moments do: a drain comes after the data of its epoch.
        return f"{self.epoch:012d}-{'drain' if self.drain else 'data'}"


@dataclass(frozen=True)
class EpochPlan:
    """What the next epoch does: how many channels, where partials are formed, what time it is."""

    channels: int
    combining: Combining
    now: int

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "EpochPlan":
        """The plan that plain values stand for."""
        return cls(**value)


@dataclass(frozen=True)
class Counts:
    """Tuples and results, of one epoch or since the beginning."""

    rows: int = 0
    late: int = 0
    rejected: int = 0
    results: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.rows + other.rows,
            self.late + other.late,
            self.rejected + other.rejected,
            self.results + other.results,
        )


@dataclass(frozen=True)
class Manifest:
    """What an epoch left behind: the frontier, the first open window, and every channel's segments.

    `shrinkage` is the measured ratio of rows to partials, by which the next plan chooses where
    partials are formed; `newest` is the last pane that holds a tuple.
    """

    moment: Moment
    plan: EpochPlan
    frontier: Frontier = field(default_factory=Frontier)
    first_open: int | None = None
    newest: int | None = None
    shrinkage: float | None = None
    channels: tuple[tuple[Segment, ...], ...] = ()
    counts: Counts = field(default_factory=Counts)
    total: Counts = field(default_factory=Counts)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Manifest":
        """The manifest that plain values stand for."""
        return cls(
            moment=Moment(**value["moment"]),
            plan=EpochPlan.from_json(value["plan"]),
            frontier=Frontier(**value["frontier"]),
            first_open=value["first_open"],
            newest=value["newest"],
            shrinkage=value["shrinkage"],
            channels=tuple(tuple(Segment(**each) for each in channel) for channel in value["channels"]),
            counts=Counts(**value["counts"]),
            total=Counts(**value["total"]),
        )
