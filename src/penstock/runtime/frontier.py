"""The frontier of a source: the event time below which no more tuples are expected.

Each stream promises nothing below its latest tuple minus the delay; the source promises the
minimum over its streams, leaving out those that have been idle too long (n gates close a pane
when all n have passed it: 000 §5.2). A frontier never goes back. Time comes in as an argument.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Frontier"]

_NEVER = -(2**63)


@dataclass(frozen=True)
class Frontier:
    """Latest event time and last sign of life of every stream, in microseconds; `newest` of all ever seen.

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

    def advance(self, seen: Mapping[str, int], *, now: int, delay: int, idle: int | None) -> "Frontier":
        """The frontier after tuples up to the given times were seen in each stream."""
        alive = {**self.alive, **dict.fromkeys(seen, now)}
        if idle is not None:
            # An idle stream is forgotten, which also bounds the table; it is back with its next tuple.
            alive = {stream: time for stream, time in alive.items() if now - time <= idle}
        latest = {stream: max(self.latest.get(stream, _NEVER), seen.get(stream, _NEVER)) for stream in alive}
        promised = min(latest.values()) - delay if latest else None
        if promised is None or (self.value is not None and promised < self.value):
            promised = self.value
        newest = max([*seen.values(), *([] if self.newest is None else [self.newest])], default=None)
        return Frontier(promised, latest, alive, newest)
