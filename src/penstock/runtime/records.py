"""The records of an epoch: its plan, written before it runs, and its manifest, written after."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.connect import EpochId
from penstock.control.observation import Moved
from penstock.distribution.distribution import Form, KeyCounts, Layout
from penstock.operators.kernel import Kernel, StagePosition
from penstock.runtime.frontier import Frontier
from penstock.state.segments import Segment

__all__ = ["Counts", "EpochPlan", "Manifest", "RecentCost", "StagePlan", "StageRecord", "StreamRead"]


@dataclass(frozen=True)
class StagePlan:
    """How a stage runs in an epoch: on how many channels, and how rows find them.

    A stage in the channels of another one has no layout of its own.
    """

    channels: int
    layout: Layout | None = None

    @classmethod
    def of(cls, layout: Layout) -> "StagePlan":
        """The plan of a stage with channels of its own."""
        return cls(layout.channels, layout)

    @property
    def own(self) -> Layout:
        """The layout of a stage with channels of its own."""
        assert self.layout is not None
        return self.layout

    @property
    def hops(self) -> int:
        """Over how many exchanges rows come to the channel that keeps them; none in channels of others."""
        return 0 if self.layout is None else self.layout.hops

    @property
    def stays(self) -> bool:
        """Whether rows stay in the tasks that have them."""
        return self.layout is not None and self.layout.stays

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"channels": self.channels, "layout": None if self.layout is None else self.layout.to_json()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "StagePlan":
        """The plan from its plain values."""
        layout = value["layout"]
        return cls(value["channels"], None if layout is None else Layout.from_json(layout))


@dataclass(frozen=True)
class StreamRead:
    """How far an epoch reads a stream, whether that is all there was, and how many tuples it leaves."""

    upto: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = True
    left: int = 0


@dataclass(frozen=True)
class EpochPlan:
    """What the next epoch does: how each stage runs, the time of the epoch, and what it reads.

    `now` is wall time, `steady` the steady time and `looked` that of the end of the epoch before; all are in
    microseconds. `reads` says how far each stream is read, by so many `tasks` if each has `grain` bytes; a
    drain reads nothing more.
    """

    stages: tuple[StagePlan, ...]
    now: int
    steady: int = 0
    looked: int = 0
    reads: Mapping[str, StreamRead] = field(default_factory=dict)
    tasks: int = 1
    grain: int = 1 << 20

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(replace(self, stages=())), "stages": [each.to_json() for each in self.stages]}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "EpochPlan":
        """The plan from its plain values."""
        stages = tuple(StagePlan.from_json(each) for each in value["stages"])
        reads = {name: StreamRead(**each) for name, each in value["reads"].items()}
        grain = value.get("grain", cls.grain)
        return cls(stages, value["now"], value["steady"], value["looked"], reads, value["tasks"], grain)

    def files(self) -> set[str]:
        """Every file that a layout names."""
        return {name for stage in self.stages if stage.layout is not None for name in stage.layout.files}


@dataclass(frozen=True)
class Counts:
    """Counts of tuples and results, of one epoch or since the start.

    `late` tuples were set aside. `partly_late` ones count in some of their windows, and came too late for
    others; each stage counts them.
    """

    rows: int = 0
    late: int = 0
    rejected: int = 0
    results: int = 0
    partly_late: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.rows + other.rows,
            self.late + other.late,
            self.rejected + other.rejected,
            self.results + other.results,
            self.partly_late + other.partly_late,
        )


# Of what was measured before an epoch with tuples so much still counts: half of it is of the last seven.
_KEPT = 0.9


@dataclass(frozen=True)
class RecentCost:
    """Tuples that a stage took and seconds that its channels were busy; older epochs count less and less.

    >>> RecentCost().after(100, 2.0).after(100, 1.0)
    RecentCost(tuples=190.0, seconds=2.8)
    """

    tuples: float = 0.0
    seconds: float = 0.0

    def after(self, tuples: int, seconds: float) -> "RecentCost":
        """With one more epoch; one without tuples, which only closes windows, ages nothing."""
        kept = _KEPT if tuples else 1.0
        return RecentCost(self.tuples * kept + tuples, self.seconds * kept + seconds)

    @property
    def each(self) -> float | None:
        """Seconds of a channel for each tuple, None before the first."""
        return self.seconds / self.tuples if self.tuples else None


@dataclass(frozen=True)
class StageRecord:
    """What a stage left behind: the segments of every channel, and its progress.

    `shrinkage` is the measured ratio of tuples to the rows that they were combined into, None where they were
    not. `tuples` and `seconds` sum what its channels took and how long they were busy; `recent` has both of
    the last epochs. `keys` are the frequent keys from which layouts are made. `in_bucket` is how many tuples
    the last epoch had in a bucket, None if it had none.
    """

    channels: tuple[tuple[Segment, ...], ...] = ()
    position: StagePosition = field(default_factory=StagePosition)
    shrinkage: float | None = None
    tuples: int = 0
    seconds: float = 0.0
    recent: RecentCost = field(default_factory=RecentCost)
    keys: KeyCounts = field(default_factory=KeyCounts)
    in_bucket: float | None = None

    def form(self, kernel: Kernel) -> Form:
        """The form in which rows will reach the channels: what it was, or what the kernel can take."""
        if kernel.exchanges[0].combine is None:
            return "rows"
        return "rows" if self.tuples and self.shrinkage is None else "combined"

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "StageRecord":
        """The record from its plain values."""
        position = value.pop("position")
        return cls(
            channels=tuple(tuple(map(Segment.from_json, channel)) for channel in value.pop("channels")),
            position=StagePosition(tuple(position["frontiers"]), position["promise"], position["progress"]),
            keys=KeyCounts.from_json(value.pop("keys")),
            recent=RecentCost(**value.pop("recent", {})),
            **value,
        )


@dataclass(frozen=True)
class Manifest:
    """What an epoch left behind: the frontier of every stream, and the record of every stage.

    `control` is what the run's controller remembered when the epoch was planned.
    """

    epoch_id: EpochId
    plan: EpochPlan
    frontiers: Mapping[str, Frontier] = field(default_factory=dict)
    stages: tuple[StageRecord, ...] = ()
    counts: Counts = field(default_factory=Counts)
    total: Counts = field(default_factory=Counts)
    moved: tuple[Moved, ...] = ()
    control: Mapping[str, Any] = field(default_factory=dict)

    def segments(self) -> Iterator[Segment]:
        """Every segment that the manifest names."""
        for stage in self.stages:
            for channel in stage.channels:
                yield from channel

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        # Keys and what control remembers are plain already; a deep copy of them would cost most of all.
        bare = replace(self, plan=replace(self.plan, stages=()), stages=(), control={})
        return {
            **asdict(bare),
            "plan": self.plan.to_json(),
            "stages": [
                {**asdict(replace(each, keys=KeyCounts())), "keys": vars(each.keys)} for each in self.stages
            ],
            "control": self.control,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Manifest":
        """The manifest from its plain values."""
        return cls(
            epoch_id=EpochId(**value["epoch_id"]),
            plan=EpochPlan.from_json(value["plan"]),
            frontiers={name: Frontier(**each) for name, each in value["frontiers"].items()},
            stages=tuple(StageRecord.from_json(each) for each in value["stages"]),
            counts=Counts(**value["counts"]),
            total=Counts(**value["total"]),
            moved=tuple(Moved(**each) for each in value["moved"]),
            control=value.get("control", {}),
        )
