"""The one shape of every policy: it observes, it decides, and its state survives a restart.

A policy has no clock and does no I/O: instants come with what it observes and with `decide`, so that a run
can be replayed under another policy, and the same observations always give the same decisions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

__all__ = ["Policy"]

Seen_contra = TypeVar("Seen_contra", contravariant=True)
Decided_co = TypeVar("Decided_co", covariant=True)


class Policy(Protocol[Seen_contra, Decided_co]):
    """Turns observations into decisions."""

    def observe(self, seen: Seen_contra) -> None:
        """Take in what there is to know about an epoch or a period."""
        ...

    def decide(self, now: float) -> Sequence[Decided_co]:
        """What should change, each with its reason; `now` is in seconds since 1970."""
        ...

    def to_json(self) -> dict[str, Any]:
        """All that it remembers, as plain values."""
        ...

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        ...
