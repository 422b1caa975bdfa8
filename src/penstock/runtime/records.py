"""What is written down of an epoch: its plan beforehand, its manifest afterwards."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.compile import Combining
from penstock.runtime.frontier import Frontier
from penstock.runtime.key_counts import KeyCounts
from penstock.runtime.segments import Segment
from penstock.runtime.spread import Spread
from penstock.runtime.sub_key_plan import SubKeyPlan

__all__ = ["Counts", "EpochPlan", "Manifest", "Moment", "Moved", "StagePlan", "StageRecord"]


@dataclass(frozen=True, order=True)
class Moment:
    """An epoch, or the draining after it when a bounded source has ended."""

    epoch: int
    drain: bool = False

    def __str__(self) -> str:
        # Names sort as moments do: a drain comes after the data of its epoch.
        return f"{self.epoch:012d}-{'drain' if self.drain else 'data'}"


@dataclass(frozen=True)
class StagePlan:
    """How a stage runs in an epoch: how many channels, and for windows where partials are formed.

    `router` names the router that says where every key is, empty where there are no keys; `target` the one
    that it is a step to, and `partitioning` how that was made. Where the router changes, `spread` are the hot
    keys of a join from then on. With `sub_keys` the channels form partials of rows that are dealt out by
    sub-keys, and each partial then goes to the channel that keeps its key.
    """

    channels: int
    combining: Combining = "channel"
    router: str = ""
    target: str = ""
    partitioning: str = "balanced"
    spread: Spread | None = None
    sub_keys: SubKeyPlan | None = None

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "StagePlan":
        """The plan that plain values stand for."""
        spread, split = value.pop("spread", None), value.pop("sub_keys", None)
        return cls(
            **value,
            spread=None if spread is None else Spread.from_json(spread),
            sub_keys=None if split is None else SubKeyPlan.from_json(split),
        )


@dataclass(frozen=True)
class EpochPlan:
    """What the next epoch does: how each stage runs, and what time it is."""

    stages: tuple[StagePlan, ...]
    now: int

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "EpochPlan":
        """The plan that plain values stand for."""
        return cls(tuple(StagePlan.from_json(each) for each in value["stages"]), value["now"])

    def routers(self) -> set[str]:
        """Every router that it names."""
        return {name for stage in self.stages for name in (stage.router, stage.target) if name}


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
class StageRecord:
    """What a stage left behind: every channel's segments, and how far it has come.

    `frontiers` are those of its ports, and `promise` is the event time below which it gives no more
    results. Of windows, `first_open` is the first window that is not closed, `newest` the last pane that
    holds a tuple, and `shrinkage` the measured ratio of rows to partials, by which the next plan chooses
    where partials are formed. `tuples` and `seconds` add up what its channels took and how long they were
    busy with it. Of a join, `spread` are its hot keys, once they are known. `keys` are the frequent keys, by
    which routers are made.
    """

    channels: tuple[tuple[Segment, ...], ...] = ()
    frontiers: tuple[int | None, ...] = ()
    promise: int | None = None
    first_open: int | None = None
    newest: int | None = None
    shrinkage: float | None = None
    tuples: int = 0
    seconds: float = 0.0
    spread: Spread | None = None
    keys: KeyCounts = field(default_factory=KeyCounts)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "StageRecord":
        """The record that plain values stand for."""
        channels = tuple(tuple(Segment(**each) for each in channel) for channel in value.pop("channels"))
        spread = value.pop("spread")
        return cls(
            channels=channels,
            frontiers=tuple(value.pop("frontiers")),
            spread=None if spread is None else Spread.from_json(spread),
            keys=KeyCounts.from_json(value.pop("keys")),
            **value,
        )


@dataclass(frozen=True)
class Moved:
    """State that went to other channels at the beginning of an epoch, of a stage and those beside it.

    `before` and `after` are numbers of channels, `left` is what has to follow in later epochs: the share of
    cells and table keys that are not yet where the target has them.
    """

    stage: int
    before: int
    after: int
    rows: int = 0
    keys: int = 0
    bytes: int = 0
    seconds: float = 0.0
    left: float = 0.0


@dataclass(frozen=True)
class Manifest:
    """What an epoch left behind: the frontier of every stream, and the record of every stage."""

    moment: Moment
    plan: EpochPlan
    frontiers: Mapping[str, Frontier] = field(default_factory=dict)
    stages: tuple[StageRecord, ...] = ()
    counts: Counts = field(default_factory=Counts)
    total: Counts = field(default_factory=Counts)
    moved: tuple[Moved, ...] = ()

    def segments(self) -> Iterator[Segment]:
        """Every segment that it names."""
        for stage in self.stages:
            for channel in stage.channels:
                yield from channel

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Manifest":
        """The manifest that plain values stand for."""
        return cls(
            moment=Moment(**value["moment"]),
            plan=EpochPlan.from_json(value["plan"]),
            frontiers={name: Frontier(**each) for name, each in value["frontiers"].items()},
            stages=tuple(StageRecord.from_json(each) for each in value["stages"]),
            counts=Counts(**value["counts"]),
            total=Counts(**value["total"]),
            moved=tuple(Moved(**each) for each in value["moved"]),
        )
