"""What a run tells its policies after an epoch: instants, and rows, cost, state and keys of every channel.

All of it is plain data of this epoch and of no other. A recorded observation reads back as the one that the
run acted on, so a replay decides what the run decided.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from penstock.control.objective import Objective
from penstock.distribution.anywhere import Grouped
from penstock.distribution.by_window import Batched
from penstock.distribution.frequent_keys import KnownKeys
from penstock.distribution.key_steering import TrackedKey
from penstock.distribution.on_grid import FirstGrids
from penstock.distribution.sub_keys import SubKeyPlan
from penstock.routing import Copied, Growth, Resources, Spread
from penstock.shown import shown_bytes, shown_seconds

__all__ = [
    "Batched",
    "ChannelLoad",
    "FirstGrids",
    "Grouped",
    "KnownKeys",
    "Moved",
    "Nodes",
    "Observation",
    "OperatorWork",
    "StageChannels",
    "TrackedKey",
    "UnitWork",
    "most_over_least",
]


@dataclass(frozen=True)
class Moved:
    """State of a stage and those in its channels that moved to other channels at the start of an epoch.

    `before` and `after` are numbers of channels. State moves by reference, so nobody reads it on the way:
    `rows` and `bytes` are estimates, in proportion to what the router moved. `left` is what later epochs have
    to move: the share of cells and table keys that are not yet where the target router has them.
    """

    stage: int
    before: int
    after: int
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    left: float = 0.0


@dataclass(frozen=True, repr=False)
class ChannelLoad:
    """One channel in an epoch: its tuples, busy seconds and keys, and the state it keeps.

    `rows` are what came over the exchange, and represent `tuples`. If hot keys are split into sub-keys,
    tuples and seconds are those that the channel formed itself, whichever channel keeps the keys. `node` is
    the executor that ran it, where there are several. Without a count there are no `keys`.
    """

    channel: int
    tuples: int
    seconds: float
    keys: int
    state_rows: int
    state_bytes: int
    rows: int = 0
    cpu_seconds: float = 0.0
    node: str = ""

    def __repr__(self) -> str:
        # Numbers have a fixed usual width, so that the channels of a stage read as a table.
        keys = f"{self.keys:>7,} keys, " if self.keys else ""
        return (
            f"channel {self.channel:>3}: {self.tuples:>9,} tuples, {shown_seconds(self.seconds):>8}, "
            f"{keys}state {self.state_rows:>9,} rows, {shown_bytes(self.state_bytes):>8}"
        )


@dataclass(frozen=True, repr=False)
class StageChannels:
    """The channels of a stage, and most over least load of state, computation and communication.

    `imbalance` is r_k of [003] and `tolerated` the alpha_k that the partitioning aims at. `moving` says that
    a rescale is in progress, and `target` is the number of channels that it leads to. A stage without a key
    to partition its state by is not `rescalable`.

    For policies that plan: the name of the `router` in force and the form in which rows reach the channels;
    the `resources` of its operator in that form and `sigma`; the keys that are `known` and an estimate of how
    many there are (`domain`); the hot keys that lie on grids (`spread`) or are split (`sub_keys`), and what
    the operator allows: rows of a hot key formed in several channels (`splits`), rows copied over a grid
    (`copied`). `counts` says whether keys are counted in each epoch, None if no policy has a say in that.
    `first_grids` are those that the epoch began with. `tracked` is for people and empty for
    policies. `moved` is what this epoch moved. `grouped` is there for a stage where any channel will do, if
    it had rows, and `batched` for one whose windows are shared out in batches that a policy may change.
    """

    stage: int
    name: str
    partitioning: str
    target: int
    channels: tuple[ChannelLoad, ...]
    imbalance: tuple[float, float, float]
    tolerated: tuple[float, float, float]
    tracked: tuple[TrackedKey, ...] = ()
    moving: bool = False
    rescalable: bool = True
    router: str = ""
    form: str = "rows"
    resources: Resources | None = None
    sigma: float = 0.1
    known: KnownKeys = field(default_factory=KnownKeys)
    domain: int = 1
    spread: Spread | None = None
    sub_keys: SubKeyPlan | None = None
    splits: bool = False
    counts: bool | None = None
    copied: Copied = "neither"
    first_grids: FirstGrids | None = None
    moved: Moved | None = None
    grouped: Grouped | None = None
    batched: Batched | None = None

    def __repr__(self) -> str:
        uneven = ", ".join(
            f"{what} {ratio:.2f}"
            for what, ratio in zip(("state", "time", "tuples"), self.imbalance, strict=True)
        )
        going = f", moving to {self.target}" if self.moving else ""
        head = (
            f"stage {self.stage}, {self.name}: {len(self.channels)} channels, {self.partitioning}{going}; "
            f"most over least: {uneven}"
        )
        return "\n  ".join([head, *map(repr, self.channels)])

    def to_json(self) -> dict[str, Any]:
        """Plain values without what only people see; an infinite imbalance becomes null.

        A stage has a thousand keys and many channels, so no value is copied that need not be.
        """
        plain = dict(vars(self))
        del plain["tracked"]
        small = {
            name: asdict(plain[name])
            for name in ("resources", "spread", "sub_keys", "first_grids", "moved", "grouped", "batched")
            if plain[name] is not None
        }
        return {
            **plain,
            **small,
            "channels": [vars(each) for each in self.channels],
            "imbalance": [_finite(ratio) for ratio in self.imbalance],
            "known": self.known.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "StageChannels":
        """The channels of a stage from their plain values."""
        given = dict(value)
        resources, spread, split, moved = (
            given.pop(each) for each in ("resources", "spread", "sub_keys", "moved")
        )
        grouped, batched = given.pop("grouped", None), given.pop("batched", None)
        first = given.pop("first_grids", None)
        state, time, tuples = given.pop("imbalance")
        tolerated = given.pop("tolerated")
        return cls(
            **given
            | {"known": KnownKeys.from_json(given["known"])}
            | {"channels": tuple(ChannelLoad(**each) for each in given["channels"])},
            imbalance=(_number(state), _number(time), _number(tuples)),
            tolerated=(tolerated[0], tolerated[1], tolerated[2]),
            resources=None if resources is None else _resources(resources),
            spread=None if spread is None else Spread.from_json(spread),
            sub_keys=None if split is None else SubKeyPlan.from_json(split),
            first_grids=None if first is None else FirstGrids(**first),
            moved=None if moved is None else Moved(**moved),
            grouped=None if grouped is None else Grouped.from_json(grouped),
            batched=None if batched is None else Batched(**batched),
        )


@dataclass(frozen=True)
class Nodes:
    """The executors after an epoch: how many are there and starting, and the cores of each.

    `busy` are the seconds that tasks took on each of them since the last epoch, the oldest first, and `gone`
    those on executors that are no longer there. `startup` is how long new ones took to come, in seconds,
    None if none has.
    """

    executors: int
    starting: int = 0
    cores: int = 1
    busy: tuple[float, ...] = ()
    gone: float = 0.0
    startup: float | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Nodes":
        """The nodes from their plain values."""
        return cls(**{**value, "busy": tuple(value["busy"])})


@dataclass(frozen=True)
class UnitWork:
    """The tasks of one executor in an epoch: seconds, and those without the time that they had no processor.

    The two differ if others use its cores, or if it may use only a part of them.
    """

    name: str
    seconds: float
    occupied: float


@dataclass(frozen=True)
class OperatorWork:
    """An operator in an epoch: the map side of a stream, or a stage.

    It took `tuples` and kept cores from others for `seconds`: processor time, or the time that it waited for
    something else where that is more. `parents` are the places of the operators that feed it, each with the
    tuples that came from there. `left` tuples wait in the source.
    """

    name: str
    tuples: int
    seconds: float
    parents: tuple[tuple[int, int], ...] = ()
    left: int = 0

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "OperatorWork":
        """The operator from its plain values."""
        parents = tuple((place, tuples) for place, tuples in value["parents"])
        return cls(**{**value, "parents": parents})


@dataclass(frozen=True, repr=False)
class Observation:
    """What a policy sees after an epoch: its number, and the channels of every stage.

    Instants are in seconds since 1970: when the rows of the epoch had `arrived` (were offered to it), when it
    was planned and `started`, when its stages had `ended`, and when it was `committed`. `slots` is the number
    of tasks that can run at a time, on so many `cores`; `rows` is the number of tuples of the epoch, and
    `left` of those that the sources had and it did not take. `latency` is the 99th percentile of its results
    in seconds, if there is one to measure. `nodes` are the executors, if their number can be changed.
    `operators` are in topological order, and `units` are the executors that had tasks.
    """

    epoch: int
    stages: tuple[StageChannels, ...]
    arrived: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    committed: float = 0.0
    slots: int = 1
    cores: float = 1.0
    rows: int = 0
    left: int = 0
    latency: float | None = None
    nodes: Nodes | None = None
    operators: tuple[OperatorWork, ...] = ()
    units: tuple[UnitWork, ...] = ()

    def __repr__(self) -> str:
        return "\n".join([f"after epoch {self.epoch:,}:", *map(repr, self.stages)])

    def costs(self) -> dict[int, tuple[float, float]]:
        """What a row of each stage cost by the objective, and its rows; without stages that moved state."""
        objective, found = Objective(self.slots, self.cores), {}
        for stage in self.stages:
            rows = sum(each.rows or each.tuples for each in stage.channels)
            if rows and not stage.moving and stage.moved is None:
                busy = np.array([max(each.seconds, each.cpu_seconds) for each in stage.channels])
                cpu = sum(each.cpu_seconds for each in stage.channels)
                found[stage.stage] = objective.cost(busy, cpu) / rows, float(rows)
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain values that JSON can hold; an infinite imbalance becomes null."""
        return {
            **vars(self),
            "stages": [each.to_json() for each in self.stages],
            "nodes": None if self.nodes is None else vars(self.nodes),
            "operators": [vars(each) for each in self.operators],
            "units": [vars(each) for each in self.units],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Observation":
        """The observation from its plain values."""
        stages = tuple(StageChannels.from_json(each) for each in value["stages"])
        nodes = None if value.get("nodes") is None else Nodes.from_json(value["nodes"])
        operators = tuple(map(OperatorWork.from_json, value.get("operators", ())))
        units = tuple(UnitWork(**each) for each in value.get("units", ()))
        return cls(**{**value, "stages": stages, "nodes": nodes, "operators": operators, "units": units})


def most_over_least(loads: Sequence[float]) -> float:
    """How uneven loads are: 1 if equal, infinite if a channel has none while others do.

    >>> most_over_least([2, 3]), most_over_least([0, 0]), most_over_least([0, 1])
    (1.5, 1.0, inf)
    """
    most, least = max(loads, default=0), min(loads, default=0)
    if not most:
        return 1.0
    return most / least if least else math.inf


def _finite(ratio: float) -> float | None:
    return ratio if math.isfinite(ratio) else None


def _number(ratio: float | None) -> float:
    return math.inf if ratio is None else ratio


def _resources(value: Mapping[str, Any]) -> Resources:
    one, two, three = value["tolerances"]
    state, computation, communication = (
        Growth(value[each]) for each in ("state", "computation", "communication")
    )
    return Resources(state, computation, communication, (one, two, three))
