"""The one price of a move, in seconds: what it takes, and what rewriting the moved state takes later.

State moves by reference, so the move itself takes milliseconds whatever its size. What was moved is rewritten
by compaction in the epochs after it, and read through views until then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from penstock.control.observation import Moved

__all__ = ["PLANNING", "MovePrice"]

PLANNING = 0.03
"""Seconds to make a plan: 5 to 30 ms for 1,000 known keys on 8 channels."""

_FIXED, _REWRITTEN = 0.05, 1 / 200e6
"""Priors: a move takes an epoch some 50 ms more, for new files and caches; state is read and written again at
200 MB/s."""
_PRIORS = 2
_REMEMBERED = 16


@dataclass
class MovePrice:
    """The median over the last moves, so that a move in a slow minute does not price all later ones.

    >>> round(MovePrice().of(0), 2), round(MovePrice().of(100e6), 2)
    (0.08, 0.58)
    """

    _seconds: list[float] = field(default_factory=list)

    def observe(self, moved: Moved) -> None:
        """Take in how long a stage stood still for a move; without state it takes no time."""
        if moved.seconds:
            self._seconds = [*self._seconds, moved.seconds][-_REMEMBERED:]

    def of(self, size: float) -> float:
        """The seconds that a move of this many bytes costs, with the planning of it."""
        return PLANNING + median([*self._seconds, *[_FIXED] * _PRIORS]) + size * _REWRITTEN

    def to_json(self) -> dict[str, Any]:
        """The last moves."""
        return {"seconds": list(self._seconds)}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._seconds = list(value["seconds"])
