"""What a run tells about its channels: rows, cost, state and keys of each, and how even they are."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from penstock.runtime.records import Manifest, Moved
from penstock.runtime.rescaling import Rescale

__all__ = [
    "ChannelLoad",
    "Decision",
    "Observation",
    "Policy",
    "StageChannels",
    "TrackedKey",
    "most_over_least",
]


@dataclass(frozen=True)
class ChannelLoad:
    """One channel in the last epoch: tuples, busy seconds, keys among them; and the state it keeps."""

    channel: int
    tuples: int
    seconds: float
    keys: int
    state_rows: int
    state_bytes: int


@dataclass(frozen=True)
class TrackedKey:
    """A frequent key: the hash of it, its share of all tuples, and its channel (None if it is spread)."""

    hash: int
    share: float
    channel: int | None


@dataclass(frozen=True)
class StageChannels:
    """The channels of a stage, and most over least load of state, computation and communication.

    `imbalance` is r_k of 003, `tolerated` the alpha_k that the partitioning function aims at. `target` is the
    number of channels that steps under way lead to, and `moving` says that there are such. A stage
    without a key to part its state by is not `rescalable`.
    """

    stage: int
    name: str
    partitioning: str
    target: int
    channels: tuple[ChannelLoad, ...]
    imbalance: tuple[float, float, float]
    tolerated: tuple[float, float, float]
    tracked: tuple[TrackedKey, ...]
    moving: bool = False
    rescalable: bool = True


@dataclass(frozen=True)
class Observation:
    """What a policy sees after an epoch: its number, and the channels of every stage."""

    epoch: int
    stages: tuple[StageChannels, ...]


Policy = Callable[[Observation], Iterable[Rescale]]
"""Asked after each epoch; what it returns takes effect with the next one."""


@dataclass(frozen=True, kw_only=True)
class Decision(Moved):
    """A change of router and what moved for it: when it was, and why.

    With the partitioning "sub-keys" it is about which hot keys are formed in several channels; nothing moves
    for that.
    """

    epoch: int
    partitioning: str
    reason: str


def decided(manifest: Manifest, before: Manifest, wishes: Mapping[int, Rescale]) -> list[Decision]:
    """What an epoch rescaled, why, and what moved for it."""
    moved = {each.stage: each for each in manifest.moved}
    found = []
    for stage in sorted({*moved, *wishes}):
        plan, then = manifest.plan.stages[stage], before.plan.stages[stage]
        move = moved.get(stage, Moved(stage, then.channels, plan.channels))
        found.append(
            Decision(
                **asdict(move),
                epoch=manifest.moment.epoch,
                partitioning=plan.partitioning,
                reason=wishes[stage].reason if stage in wishes else "the next step of what was asked for",
            )
        )
    return found


def most_over_least(loads: Sequence[float]) -> float:
    """How uneven loads are: 1 if equal, infinite if a channel has none while others do.

    >>> most_over_least([2, 3]), most_over_least([0, 0]), most_over_least([0, 1])
    (1.5, 1.0, inf)
    """
    most, least = max(loads, default=0), min(loads, default=0)
    if not most:
        return 1.0
    return most / least if least else math.inf
