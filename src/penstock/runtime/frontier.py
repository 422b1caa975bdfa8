"""The frontier of a source: the event time below which no more tuples are expected.

Each stream promises nothing below its latest tuple minus the delay. The source promises the
minimum over its streams, without those that have been idle too long (n gates close a pane
when all n have passed it: [000] §5.2). A stream that the source expects, but of which no tuple has come,
promises nothing. A frontier, or watermark, never goes back. The time is an argument.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.query import Merging

__all__ = ["Frontier", "Merging", "merged"]

_NEVER = -(2**63)


@dataclass(frozen=True)
class Frontier:
    """Latest event time and last activity of every stream, in microseconds; `newest` is over all time.

    >>> seen = Frontier().advance({"a": 100, "b": 40}, now=0, delay=10, idle=None)
    >>> seen.value
    30
    >>> seen.advance({"a": 200}, now=60, delay=10, idle=50).value
    190
    """

    value: int | None = None
    latest: Mapping[str, int] = field(default_factory=dict)
    alive: Mapping[str, int] = field(default_factory=dict)
    newest: int | None = None
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Since when each stream is expected of which no tuple has come."""

    def advance(
        self,
        seen: Mapping[str, int],
        *,
        now: int,
        delay: int,
        idle: int | None,
        waiting: Collection[str] = (),
    ) -> "Frontier":
        """The frontier after each stream had tuples up to the given times.

        It stays while one of the streams in `waiting` is expected for less than `idle`.
        """
        alive = {**self.alive, **dict.fromkeys(seen, now)}
        if idle is not None:
            # An idle stream is removed, which also bounds the table; it returns with its next tuple.
            alive = {stream: time for stream, time in alive.items() if now - time <= idle}
        latest = {stream: max(self.latest.get(stream, _NEVER), seen.get(stream, _NEVER)) for stream in alive}
        promised = min(latest.values()) - delay if latest else None
        if promised is None or (self.value is not None and promised < self.value):
            promised = self.value
        newest = max([*seen.values(), *([] if self.newest is None else [self.newest])], default=None)
        since = {stream: self.waiting.get(stream, now) for stream in waiting}
        if any(idle is None or now - time <= idle for time in since.values()):
            promised = self.value
        return Frontier(promised, latest, alive, newest, since)


def merged(frontiers: Sequence[int | None], merging: Merging) -> int | None:
    """The frontier of an input from those of its feeds, None while nothing is promised.

    Transparent: the minimum over all feeds, so the result is that of one machine. Best effort: the maximum,
    so results come as soon as the fastest feed allows, and tuples of slower feeds may be late.

    >>> merged([30, 10], "transparent"), merged([30, None], "transparent"), merged([30, None], "best effort")
    (10, None, 30)
    """
    known = [each for each in frontiers if each is not None]
    if merging == "best effort":
        return max(known, default=None)
    return min(known) if len(known) == len(frontiers) else None
