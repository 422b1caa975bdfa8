"""A request for a number of channels of a stage, with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.checks import one_of, printable, whole_number
from penstock.errors import BadRescale
from penstock.routing import PARTITIONINGS, HashPair, Spread, router_name

__all__ = ["MOST_CHANNELS", "Rescale"]

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

    setting: ClassVar[str] = "channels"
    """What of a stage it changes."""

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

    def words(self) -> str:
        """What is asked for, for people."""
        return f"{self.channels} channel{'s' if self.channels != 1 else ''}"

    def subject(self) -> str:
        """What changes, and where."""
        return f"stage {self.stage}, {self.words()}"

    def to_json(self) -> dict[str, Any]:
        """Plain values; a router is told by its name, which follows from its content."""
        return {
            "kind": "rescale",
            "stage": self.stage,
            "reason": self.reason,
            "numbers": dict(self.numbers),
            "channels": self.channels,
            "partitioning": self.partitioning,
            "router": None if self.router is None else router_name(self.router.to_bytes()),
            "spread": None if self.spread is None else vars(self.spread),
        }
