"""How the number of channels of a run changed, and what moved for it over what had to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Seen", "Step", "over_ideal", "steps_of"]


@dataclass(frozen=True)
class Seen:
    """A stage after an epoch: when it was committed, its channels, its state, and the bytes it had moved."""

    at: float
    epoch: int
    channels: int
    state_bytes: int
    moved_bytes: int = 0


@dataclass(frozen=True)
class Step:
    """A change of the number of channels: the bytes that moved for it, of the state that was there."""

    epoch: int
    before: int
    after: int
    moved_bytes: int
    state_bytes: int

    @property
    def over_ideal(self) -> float:
        """Moved over what had to."""
        return over_ideal(self.before, self.after, self.moved_bytes, self.state_bytes)


def over_ideal(before: int, after: int, moved: float, state: float) -> float:
    """Moved bytes over |ΔN| / max N of the state: so much has to move if channels are even.

    >>> over_ideal(4, 8, moved=60, state=100)
    1.2
    >>> over_ideal(8, 6, moved=25, state=100)
    1.0
    """
    ideal = abs(after - before) / max(before, after) * state
    return moved / ideal if ideal else math.inf


def steps_of(seen: Sequence[Seen]) -> list[Step]:
    """The changes of the number of channels; what later epochs still move for a change is part of it.

    >>> epochs = [Seen(0, 0, 4, 80), Seen(1, 1, 8, 90, 30), Seen(2, 2, 8, 90, 15), Seen(3, 3, 8, 90)]
    >>> steps_of(epochs)
    [Step(epoch=1, before=4, after=8, moved_bytes=45, state_bytes=80)]
    """
    found: list[Step] = []
    going = False
    for then, now in pairwise(seen):
        if now.channels != then.channels:
            found.append(Step(now.epoch, then.channels, now.channels, now.moved_bytes, then.state_bytes))
        elif going and now.moved_bytes:
            last = found[-1]
            moved = last.moved_bytes + now.moved_bytes
            found[-1] = Step(last.epoch, last.before, last.after, moved, last.state_bytes)
        going = now.channels != then.channels or (going and bool(now.moved_bytes))
    return found
