"""What moving state costs in seconds: a fixed part and a part for each byte, learnt from past moves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from penstock.control.observation import Moved

__all__ = ["MovePrice"]

_FIXED, _PER_BYTE = 0.25, 1 / 50e6
"""Priors: a job of its own takes a quarter of a second, and state moves at 50 MB/s. Each counts as two moves
that were seen, so that one odd move does not decide."""
_PRIORS = 2
_TELLING = 1_000_000
"""Only moves of this many bytes tell the price of a byte."""
_REMEMBERED = 16

PLANNING = 0.05
"""Seconds to make a plan: `balanced` takes 20 to 120 ms for 1,000 known keys on 8 channels."""


@dataclass
class MovePrice:
    """Medians over the last moves, so that a move in a slow minute does not price all later ones.

    >>> price = MovePrice()
    >>> round(price.of(0), 2), round(price.of(100e6), 2)
    (0.3, 2.3)
    """

    _moves: list[tuple[int, float]] = field(default_factory=list)

    def observe(self, moved: Moved) -> None:
        """Take in a move and how long the stage stood still for it; without state it takes no time."""
        if not moved.seconds:
            return
        self._moves = [*self._moves, (moved.bytes, moved.seconds)][-_REMEMBERED:]

    def of(self, size: float) -> float:
        """The seconds that a move of this many bytes costs, with the planning of it."""
        return PLANNING + self.fixed + size * self.per_byte

    @property
    def per_byte(self) -> float:
        """Seconds for a byte."""
        seen = [max(time - _FIXED, 0.0) / size for size, time in self._moves if size >= _TELLING]
        return median([*seen, *[_PER_BYTE] * _PRIORS])

    @property
    def fixed(self) -> float:
        """Seconds for any move."""
        rest = [max(time - size * self.per_byte, 0.0) for size, time in self._moves]
        return median([*rest, *[_FIXED] * _PRIORS])

    def to_json(self) -> dict[str, Any]:
        """The last moves."""
        return {"moves": [list(each) for each in self._moves]}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._moves = [(size, time) for size, time in value["moves"]]
