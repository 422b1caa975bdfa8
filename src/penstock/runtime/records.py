"""The records of an epoch: its plan, written before it runs, and its manifest, written after."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.connect import EpochId
from penstock.control.observation import Moved
from penstock.control.sub_keys import SubKeyPlan
from penstock.operators.exchange import Form
from penstock.operators.kernel import StagePosition
from penstock.routing import Batches, Grouping, Spread
from penstock.runtime.frontier import Frontier
from penstock.runtime.rescale.frequent_keys import KeyCounts
from penstock.state.segments import Segment

__all__ = ["Counts", "EpochPlan", "Manifest", "RecentCost", "StagePlan", "StageRecord", "StreamRead"]


@dataclass(frozen=True)
class StagePlan:
    """How a stage runs in an epoch: the number of its channels, and the form in which rows should reach them.

    `router` names the router that places every key; it is empty if there are no keys. `target` names the
    router that it is a step to, and `partitioning` says how the target was made. If the router changes,
    `spread` are the hot keys on grids from then on. With `sub_keys`, rows are partitioned by sub-keys, the
    channels form partials of them, and each partial then goes to the channel that keeps its key.

    Where any channel will do, `grouping` says how rows find theirs, and `costs` names the sketch of what they
    cost by their value; it is empty while nothing is known. Where rows go to the channels of their windows,
    `batches` says which windows are computed together. With a `run`, rows without a key become partials in
    other channels: they are dealt out so many at a time, or with 0 by whole panes in turn.
    """

    channels: int
    form: Form = "rows"
    router: str = ""
    target: str = ""
    partitioning: str = "balanced"
    spread: Spread | None = None
    sub_keys: SubKeyPlan | None = None
    grouping: Grouping | None = None
    costs: str = ""
    batches: Batches | None = None
    run: int | None = None

    @property
    def two_hops(self) -> bool:
        """Whether other channels form partials than those that keep them."""
        return self.sub_keys is not None or self.run is not None

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "StagePlan":
        """The plan from its plain values."""
        spread, split = value.pop("spread", None), value.pop("sub_keys", None)
        batches = value.pop("batches", None)
        return cls(
            **value,
            spread=None if spread is None else Spread.from_json(spread),
            sub_keys=None if split is None else SubKeyPlan.from_json(split),
            batches=None if batches is None else Batches.from_json(batches),
        )


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
    microseconds. `reads` says how far each stream is read, by so many `tasks`; a drain reads nothing more.
    """

    stages: tuple[StagePlan, ...]
    now: int
    steady: int = 0
    looked: int = 0
    reads: Mapping[str, StreamRead] = field(default_factory=dict)
    tasks: int = 1

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "EpochPlan":
        """The plan from its plain values."""
        stages = tuple(StagePlan.from_json(each) for each in value["stages"])
        reads = {name: StreamRead(**each) for name, each in value["reads"].items()}
        return cls(stages, value["now"], value["steady"], value["looked"], reads, value["tasks"])

    def routers(self) -> set[str]:
        """Every router and every sketch of costs that the plan names."""
        named = [(stage.router, stage.target, stage.costs) for stage in self.stages]
        return {name for each in named for name in each if name}


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
    the last epochs. `spread` are its hot keys on grids, None while they are not known: the search in the
    first epoch with rows had too few of them, and no plan has chosen any since. `keys` are the frequent keys
    from which routers are made. `in_bucket` is how many tuples the last epoch had in a bucket, None if it had
    none.
    """

    channels: tuple[tuple[Segment, ...], ...] = ()
    position: StagePosition = field(default_factory=StagePosition)
    shrinkage: float | None = None
    tuples: int = 0
    seconds: float = 0.0
    recent: RecentCost = field(default_factory=RecentCost)
    spread: Spread | None = None
    keys: KeyCounts = field(default_factory=KeyCounts)
    in_bucket: float | None = None

    @property
    def grids(self) -> Spread | None:
        """The hot keys on grids by which rows are routed; None while an epoch may still look for them."""
        return self.spread if self.spread is not None or not self.tuples else Spread()

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "StageRecord":
        """The record from its plain values."""
        position, spread = value.pop("position"), value.pop("spread")
        return cls(
            channels=tuple(tuple(map(Segment.from_json, channel)) for channel in value.pop("channels")),
            position=StagePosition(tuple(position["frontiers"]), position["promise"], position["progress"]),
            spread=None if spread is None else Spread.from_json(spread),
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
        return asdict(self)

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
