"""The latency of results: from the arrival of the last tuple that contributes to delivery ([000] §3.1).

A window has one latency, that of the last tuple of any key in it. What is known of arrivals is a line for
each stream and epoch: its event times lie between two instants, and so do its arrivals; in between, arrivals
are taken to follow event time evenly. So the latency of a window is exact to the time over which the tuples
of one epoch arrived, and much better for a steady stream. Where a source has many streams, or a tuple may
come later than its successors, the line goes by those that are ahead, and the latency is rather told too
long.

Results that follow from single tuples, such as those of a join, have the latencies of the epoch's own tuples.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.operators.kernel import Ends, WindowEnds
from penstock.query import Stream
from penstock.runtime.dataflow.receipts import StreamSeen
from penstock.runtime.graph import Graph
from penstock.runtime.progress import ResultLatency
from penstock.runtime.stage import StageRunner

__all__ = ["MOST_LATENCIES", "ArrivalLines", "LatencyMeter", "ResultWay", "result_ways"]

MOST_LATENCIES = 10_000
"""The number of last latencies that a run remembers, and the most that an epoch adds."""

_MOST_LINES = 1000
_PARTS = 16  # of an epoch's arrivals, for results of single tuples
_US = 1_000_000


@dataclass
class ArrivalLines:
    """When the tuples of a stream arrived, by event time: the last thousand epochs."""

    _lines: deque[tuple[int, int, int, int]] = field(default_factory=lambda: deque(maxlen=_MOST_LINES))

    def add(self, seen: StreamSeen, offered: int) -> None:
        """Take in an epoch; without stamps its tuples arrived when they were `offered`."""
        if seen.latest is None or seen.earliest is None:
            return
        first, last = (offered if each is None else each for each in (seen.arrived_first, seen.arrived_last))
        begin = seen.earliest
        if self._lines:
            if seen.latest <= self._lines[-1][1]:
                return
            begin = max(begin, self._lines[-1][1])
        self._lines.append((begin, seen.latest, first, last))

    def before(self, ends: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The arrival and the event time of the last tuple before each of these event times.

        A time before every known tuple has none: its event time is the least there is.

        >>> lines = ArrivalLines()
        >>> lines.add(StreamSeen(latest=20, earliest=10, arrived_first=100, arrived_last=200), 0)
        >>> [each.tolist() for each in lines.before(np.array([5, 15, 90]))]
        [[100.0, 150.0, 200.0], [-9223372036854775808, 15, 20]]
        """
        none = np.iinfo(np.int64).min
        if not self._lines:
            return np.zeros(len(ends)), np.full(len(ends), none)
        begin, end, first, last = (np.array(each) for each in zip(*self._lines, strict=True))
        place = np.searchsorted(begin, ends, side="left") - 1
        known = place >= 0
        place = np.maximum(place, 0)
        time = np.minimum(ends, end[place])
        width = np.maximum(end[place] - begin[place], 1)
        part = np.clip((time - begin[place]) / width, 0, 1)
        return first[place] + part * (last[place] - first[place]), np.where(known, time, none)


@dataclass(frozen=True)
class ResultWay:
    """A way to an output: the last stage on it, if there is one, and the streams whose tuples take it."""

    stage: int | None
    streams: frozenset[str]


def result_ways(graph: Graph) -> tuple[ResultWay, ...]:
    """The ways to the outputs of a query, each once."""
    found: dict[ResultWay, None] = {}
    for outlet in graph.outlets:
        for origin in outlet.origins:
            if isinstance(origin, str):
                found[ResultWay(None, frozenset({origin}))] = None
            else:
                found[ResultWay(origin, frozenset(_streams(graph.stages, origin)))] = None
    return tuple(found)


@dataclass
class LatencyMeter:
    """Measures the results of each epoch; `bound` and `allowed` in seconds.

    A bound does not count the time that the query itself asks for: a result may take the bound plus what is
    `allowed`, the longest delay of a stream.
    """

    ways: tuple[ResultWay, ...]
    streams: tuple[Stream, ...]
    bound: float | None = None
    lines: dict[str, ArrivalLines] = field(init=False)
    last: deque[float] = field(init=False, default_factory=lambda: deque(maxlen=MOST_LATENCIES))

    def __post_init__(self) -> None:
        self.lines = {each.name: ArrivalLines() for each in self.streams}
        self.allowed = max((each.delay for each in self.streams), default=0) / _US

    def epoch(
        self,
        seen: Mapping[str, StreamSeen],
        ends: Mapping[int, Ends],
        *,
        offered: float,
        delivered: float,
        results: int,
    ) -> ResultLatency | None:
        """The latencies of an epoch; `ends` says, by stage, up to which event times its results go."""
        for name, stream in seen.items():
            self.lines[name].add(stream, round(offered * _US))
        if not results:
            return None
        found: list[float] = []
        for way in self.ways:
            closed = None if way.stage is None else ends.get(way.stage)
            if closed is None:
                found += self._of_tuples(way.streams, seen, offered, delivered)
            else:
                found += self._of_windows(way.streams, closed, delivered)
        found = found[-MOST_LATENCIES:]
        self.last.extend(found)
        return self.summary(found)

    def summary(self, latencies: Collection[float]) -> ResultLatency | None:
        """What there is to say about some latencies."""
        if not latencies:
            return None
        values = np.fromiter(latencies, np.float64, len(latencies))
        p50, p99, most = (float(each) for each in np.percentile(values, [50, 99, 100]))
        within = None if self.bound is None else float((values <= self.bound + self.allowed).mean())
        return ResultLatency(len(latencies), p50, p99, most, within)

    def _of_windows(self, streams: Collection[str], ends: WindowEnds, delivered: float) -> list[float]:
        times = np.array(ends.times[-MOST_LATENCIES:], np.int64)
        size = np.broadcast_to(np.array(ends.size, np.int64), len(ends.times))[-MOST_LATENCIES:]
        known = [self.lines[each].before(times) for each in sorted(streams)]
        if not len(times) or not known:
            return []
        # A window that holds no tuple has no result.
        inside = [np.where(time >= times - size, arrived, -np.inf) for arrived, time in known]
        arrived = np.max(inside, axis=0)
        latencies: list[float] = (delivered - arrived[np.isfinite(arrived)] / _US).tolist()
        return latencies

    @staticmethod
    def _of_tuples(
        streams: Collection[str], seen: Mapping[str, StreamSeen], offered: float, delivered: float
    ) -> list[float]:
        found: list[float] = []
        for each in (seen[name] for name in sorted(streams) if name in seen):
            if each.latest is None:
                continue
            first, last = (
                offered if stamp is None else stamp / _US for stamp in (each.arrived_first, each.arrived_last)
            )
            found += (delivered - np.linspace(first, last, _PARTS)).tolist()
        return found


def _streams(runners: tuple[StageRunner, ...], number: int) -> Iterable[str]:
    """The streams whose tuples reach a stage, directly or through others."""
    for port in runners[number].ports:
        for feed in port:
            if isinstance(feed.origin, Stream):
                yield feed.origin.name
            else:
                yield from _streams(runners, feed.origin)
