"""Operators with queues, on paper: tuples of different costs shuffled over k channels ([001] §5).

The state machines are Penstock's own. What an operator says reaches the scheduler when the tuple is done that
caused it, block by block.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Channels, Costs, Hashes
from penstock.routing.greedy import greedy_unlike
from penstock.sketches import splitmix64
from penstock_lab.algorithms.shuffle_messages import ShuffleSettings
from penstock_lab.algorithms.shuffle_scheduler import Placement, SchedulerPhase, SchedulerState
from penstock_lab.simulate.elastic import queue_up
from penstock_lab.simulate.groupings import PerUnitSketches
from penstock_lab.workloads import zipf_shares

__all__ = ["Cluster", "Tuples", "completion_times", "epoch_makespans", "least_possible", "zipf_tuples"]

_BLOCK = 256


@dataclass(frozen=True)
class Tuples:
    """A stream: the hash of each tuple's value and the seconds that it costs."""

    hashes: Hashes
    costs: Costs

    def arrivals(self, channels: int, busy: float) -> Costs:
        """Evenly spaced arrivals that keep `channels` channels busy for this share of the time."""
        return np.arange(len(self.costs), dtype=np.float64) * float(self.costs.mean() / (channels * busy))

    def blocks(self, size: int) -> Iterator["Tuples"]:
        """The stream cut into blocks; what is left over at the end is dropped."""
        for start in range(0, len(self.hashes) - size + 1, size):
            yield Tuples(self.hashes[start : start + size], self.costs[start : start + size])


def zipf_tuples(rng: np.random.Generator, count: int, skew: float) -> Tuples:
    """Tuples of 4,096 values that cost 1 to 64 ms each, at random, with Zipf frequencies."""
    values = rng.choice(4_096, count, p=zipf_shares(4_096, skew))
    costs = rng.integers(1, 65, 4_096) / 1_000
    return Tuples(splitmix64(values.astype(np.uint64), 1), costs[values])


@dataclass
class Cluster:
    """A scheduler and its operators; `factors` is how many times longer a tuple takes on each channel."""

    channels: int
    place: Placement = greedy_unlike
    synchronised: bool = True
    factors: Costs = field(default_factory=lambda: np.ones(1))
    settings: ShuffleSettings = field(default_factory=ShuffleSettings)

    def __post_init__(self) -> None:
        self._shuffle = PerUnitSketches(
            self.channels, self.settings, place=self.place, synchronised=self.synchronised
        )

    @property
    def scheduler(self) -> SchedulerState:
        """What the scheduler knows."""
        return self._shuffle.scheduler

    def epoch(self, tuples: Tuples) -> tuple[Channels, Costs]:
        """Where the tuples of an epoch go and how long each takes there; at its end all is done and known."""
        routes, seconds = self._sent(tuples)
        for channel in range(self.channels):
            here = routes == channel
            self._shuffle.completed(channel, tuples.hashes[here], seconds[here])
        self._shuffle.barrier()
        return routes, seconds

    def run(self, tuples: Tuples, arrivals: Costs, *, later: Costs | None = None) -> tuple[Channels, Costs]:
        """A whole stream that arrives at these instants; `later` are the factors of its second half.

        What an operator learns from a tuple, and its reply to a request, are known once the tuple is done.
        """
        routes, seconds = [], []
        free, running = np.zeros(self.channels), _Running.none()
        for number, block in enumerate(tuples.blocks(_BLOCK)):
            if later is not None and 2 * number * _BLOCK >= len(tuples.hashes):
                self.factors = later
            came = arrivals[number * _BLOCK : (number + 1) * _BLOCK]
            running = self._told(running, float(came[0]))
            there, took = self._sent(block)
            starts, free = queue_up(there, took, came, free)
            running = running.with_(_Running(there, starts + took, block.hashes, took))
            routes.append(there)
            seconds.append(took)
        return np.concatenate(routes), np.concatenate(seconds)

    def _sent(self, tuples: Tuples) -> tuple[Channels, Costs]:
        routes = self._shuffle.route(tuples.hashes)
        return routes, tuples.costs * np.broadcast_to(self.factors, self.channels)[routes]

    def _told(self, running: "_Running", now: float) -> "_Running":
        """Tell the operators what was done before an instant; what is left is still running or waiting."""
        done = running.done < now
        for channel in range(self.channels):
            here = done & (running.routes == channel)
            if here.any():
                self._shuffle.completed(channel, running.hashes[here], running.seconds[here])
        return running.where(~done)


@dataclass(frozen=True)
class _Running:
    """Tuples that are not done: their channels, when they will be done, hashes and seconds."""

    routes: Channels
    done: Costs
    hashes: Hashes
    seconds: Costs

    @classmethod
    def none(cls) -> "_Running":
        return cls(np.empty(0, np.int32), np.empty(0), np.empty(0, np.uint64), np.empty(0))

    def where(self, kept: NDArray[np.bool_]) -> "_Running":
        return _Running(self.routes[kept], self.done[kept], self.hashes[kept], self.seconds[kept])

    def with_(self, more: "_Running") -> "_Running":
        both = zip(vars(self).values(), vars(more).values(), strict=True)
        return _Running(*(np.concatenate(pair) for pair in both))


def completion_times(routes: Channels, seconds: Costs, arrivals: Costs) -> Costs:
    """How long each tuple waits and runs on its channel, first come first served."""
    starts, _ = queue_up(routes, seconds, arrivals, np.zeros(int(routes.max()) + 1))
    return starts + seconds - arrivals


def epoch_makespans(cluster: Cluster, warm_up: Tuples, epochs: list[Tuples]) -> Costs:
    """Makespan over the least possible of each epoch, after operators have learnt from the warm-up."""
    for block in warm_up.blocks(1_000):
        cluster.epoch(block)
    assert cluster.scheduler.phase is not SchedulerPhase.ROUND_ROBIN, "give a longer warm-up"
    ratios = []
    for epoch in epochs:
        routes, seconds = cluster.epoch(epoch)
        ratios.append(
            np.bincount(routes, seconds, cluster.channels).max() / least_possible(seconds, cluster.channels)
        )
    return np.array(ratios)


def least_possible(costs: Costs, channels: int) -> float:
    """What no schedule can beat: an even share, or the longest tuple."""
    return float(max(costs.sum() / channels, costs.max()))
