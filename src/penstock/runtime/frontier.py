"""The frontier of a source: the event time below which no more tuples are expected.

Each stream promises nothing below its latest tuple minus the delay, or what its client promised, if that is
later. The source promises the minimum over its streams, without those that have been idle too long (n gates
close a pane when all n have passed it: [000] §5.2). A stream that the source expects, but of which neither a
tuple nor a promise has come, promises nothing. A frontier, or watermark, never goes back. The time is an
argument.

**Idleness goes by what was offered.** Times of activity are steady times (`SteadyTime`), which pass only
while a driver runs. A stream is idle once an epoch has taken all that the source had and found nothing of the
stream, more than `idle` after the stream's last tuple or new promise. The epoch before it ended before the
source was asked, so time counts up to that end: neither a pause between the offer and the epoch, nor a
backlog, nor time without a driver, nor a step of the wall clock makes a stream idle. The number of tuples of
an epoch is known at its end, so the next one draws the conclusion.

**Silence moves the frontier.** If all streams are idle, event time goes on with steady time: the frontier is
the newest tuple, plus the silence since then, minus the delay. Streams whose event time follows the clock are
not late when they return.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.query import Merging

__all__ = ["Frontier", "Merging", "SteadyTime", "merged"]

_NEVER = -(2**63)
_LATEST = 2**62
"""A promise beyond is this one: arithmetic with it stays within 64 bits."""


@dataclass
class SteadyTime:
    """Microseconds that pass only while a driver runs; it continues where the run before it stopped.

    No step between two readings counts more than `longest`, so that after a pause of the whole machine other
    streams have time to return.

    >>> readings = iter([10.0, 10.5, 99.0, 98.0])
    >>> steady = SteadyTime(longest=2_000_000, clock=lambda: next(readings))
    >>> steady.read(), steady.read(), steady.read()
    (500000, 2500000, 2500000)
    """

    longest: int
    clock: Callable[[], float] = time.monotonic
    value: int = 0
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self._last = self.clock()

    def read(self) -> int:
        """The steady time now."""
        now = self.clock()
        self.value += max(0, min(self.longest, int((now - self._last) * 1e6)))
        self._last = now
        return self.value

    def resume(self, value: int) -> None:
        """Go on from a time that was recorded before."""
        self.value = max(self.value, value)


@dataclass(frozen=True)
class Frontier:
    """The latest event time of every stream, and the steady time of its last activity, in microseconds.

    `newest` and `active` are the same over all streams and all time. The last epoch was offered its tuples
    after the steady time `looked`, and `whole` says that it took all that there was.

    >>> seen = Frontier().advance({"a": 100, "b": 40}, steady=0, looked=0, delay=10, idle=50)
    >>> seen.value
    30
    >>> later = seen.advance({"a": 200}, steady=70, looked=60, delay=10, idle=50)
    >>> later.advance({"a": 300}, steady=90, looked=80, delay=10, idle=50).value
    290
    """

    value: int | None = None
    latest: Mapping[str, int] = field(default_factory=dict)
    alive: Mapping[str, int] = field(default_factory=dict)
    newest: int | None = None
    active: int = 0
    looked: int = 0
    whole: bool = True
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Since which steady time each stream is expected of which no tuple and no promise has come."""
    promised: Mapping[str, int] = field(default_factory=dict)
    """What clients have promised for each stream."""

    def advance(  # noqa: PLR0913 -- what an epoch has seen, when, and what the stream declares
        self,
        seen: Mapping[str, int],
        *,
        steady: int,
        looked: int,
        delay: int,
        idle: int | None,
        waiting: Collection[str] = (),
        promised: Mapping[str, int] | None = None,
        least: int | None = None,
    ) -> "Frontier":
        """The frontier after each stream had tuples up to the given times.

        It stays while one of the streams in `waiting` is expected for less than `idle`. `promised` are all
        promises of streams so far, `least` one that holds for the whole source.

        >>> quiet = Frontier().advance({"a": 100, "b": 40}, steady=0, looked=0, delay=10, idle=None)
        >>> quiet.advance({}, steady=1, looked=0, delay=10, idle=None, promised={"b": 95}).value
        90
        """
        alive = self.alive
        if idle is not None and self.whole:
            # An idle stream is removed, which also bounds the table; it returns with its next tuple.
            alive = {stream: time for stream, time in alive.items() if self.looked - time <= idle}
        spoken = {**self.promised}
        for stream, time_ in (promised or {}).items():
            spoken[stream] = max(min(time_, _LATEST), spoken.get(stream, _NEVER))
        news = [stream for stream in spoken if spoken[stream] > self.promised.get(stream, _NEVER)]
        alive = {**alive, **dict.fromkeys([*seen, *news], steady)}
        latest = {stream: max(self.latest.get(stream, _NEVER), seen.get(stream, _NEVER)) for stream in alive}
        reached = [max(time_ - delay, spoken.get(stream, _NEVER)) for stream, time_ in latest.items()]
        value = min(reached) if reached else self._in_silence(delay)
        newest = max([*seen.values(), *([] if self.newest is None else [self.newest])], default=None)
        since = {stream: self.waiting.get(stream, steady) for stream in waiting if stream not in spoken}
        if any(idle is None or looked - begun <= idle for begun in since.values()):
            value = None
        active = steady if seen or news else self.active
        least = None if least is None else min(least, _LATEST)
        value = max((each for each in (self.value, value, least) if each is not None), default=None)
        return Frontier(value, latest, alive, newest, active, looked, waiting=since, promised=spoken)

    def _in_silence(self, delay: int) -> int | None:
        """What a source without active streams promises: event time goes on with steady time."""
        if self.newest is None or not self.whole:
            return None
        return self.newest + max(0, self.looked - self.active) - delay


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
