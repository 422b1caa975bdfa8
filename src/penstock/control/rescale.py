"""What a user or a policy asks of a stage, with the reason: channels, sub-keys, a grouping, batches."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.checks import one_of, printable, whole_number
from penstock.control.sub_keys import SubKeyPlan
from penstock.errors import BadRescale
from penstock.routing import PARTITIONINGS, Grouping, HashPair, Spread

__all__ = ["MOST_CHANNELS", "Rebatch", "Regroup", "Rescale", "Resplit"]

MOST_CHANNELS = 1024
"""The most channels that a stage can have."""

_MOST_STAGE = 2**31 - 1


@dataclass(frozen=True)
class Rescale:
    """A request: a number of channels for a stage, a partitioning (default: as before) and a reason.

    A policy that has planned already gives the `router` itself, for exactly that many channels, and the hot
    keys of a join that lie on grids from then on (`spread`; None: as before). `numbers` are the figures
    behind the reason.

    >>> Rescale(0, 8)
    Rescale(stage=0, channels=8, partitioning=None, reason='asked for')
    """

    stage: int
    channels: int
    partitioning: str | None = None
    reason: str = "asked for"
    router: HashPair | None = field(default=None, repr=False, compare=False)
    spread: Spread | None = field(default=None, repr=False)
    numbers: Mapping[str, float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Check what needs no run, so that a policy fails where it makes the request."""
        for name, least, most in (("stage", 0, _MOST_STAGE), ("channels", 1, MOST_CHANNELS)):
            given = whole_number(name, getattr(self, name), least, most, BadRescale)
            object.__setattr__(self, name, given)
        if self.partitioning is not None:
            one_of("partitioning", self.partitioning, PARTITIONINGS, BadRescale)
        printable("reason", self.reason, BadRescale, longest=1000)
        if self.router is not None and self.router.channels != self.channels:
            raise BadRescale(
                f"the router has {self.router.channels} channels and the request {self.channels}; give a "
                "router for the number of channels that is asked for"
            )


@dataclass(frozen=True)
class Resplit:
    """A request: the hot keys of a stage that are split into sub-keys from the next epoch on, or None."""

    stage: int
    sub_keys: SubKeyPlan | None
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Regroup:
    """A request: how the rows of a stage where any channel will do find theirs from the next epoch on."""

    stage: int
    grouping: Grouping
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Rebatch:
    """A request: how many windows of a stage are computed together, from the next boundary of a batch on."""

    stage: int
    batch: int
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict, repr=False)
