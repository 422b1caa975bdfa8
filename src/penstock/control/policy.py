"""The one shape of every policy: it observes, it proposes, and its state survives a restart.

A policy has no clock and does no I/O: instants come with what it observes and with `propose`, so that a run
can be replayed under another policy, and the same observations always give the same proposals.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from penstock.control.proposal import Proposal

__all__ = ["Policy"]

Seen_contra = TypeVar("Seen_contra", contravariant=True)
Changed_co = TypeVar("Changed_co", covariant=True)


class Policy(Protocol[Seen_contra, Changed_co]):
    """Turns observations into proposals."""

    def observe(self, seen: Seen_contra) -> None:
        """Take in what there is to know about an epoch or a period."""
        ...

    def propose(self, now: float) -> Sequence[Proposal[Changed_co]]:
        """What should change, or why nothing should; `now` is in seconds since 1970."""
        ...

    def to_json(self) -> dict[str, Any]:
        """All that it remembers, as plain values."""
        ...

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        ...
