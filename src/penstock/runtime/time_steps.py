"""How often a run looks at streams that may be idle, and the steady time by which it tells that they are."""

from collections.abc import Sequence
from typing import Final

from penstock.query import Stream
from penstock.runtime.frontier import SteadyTime

__all__ = ["period", "steady_time"]

_TICKS_PER_IDLE: Final = 4
_SHORTEST_TICK: Final = 0.25  # seconds
_LONGEST_STEP: Final = 2**62


def steady_time(streams: Sequence[Stream]) -> SteadyTime:
    """Steady time for streams: it takes at least two looks until the first of them is idle."""
    return SteadyTime(
        min((each.idle // 2 for each in streams if each.idle is not None), default=_LONGEST_STEP)
    )


def period(streams: Sequence[Stream]) -> float | None:
    """Seconds between two epochs at most; None if no stream has an `idle`."""
    idle = min((each.idle for each in streams if each.idle is not None), default=None)
    return None if idle is None else max(_SHORTEST_TICK, idle / 1e6 / _TICKS_PER_IDLE)
