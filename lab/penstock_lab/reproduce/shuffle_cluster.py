"""Operators with queues, on paper: tuples of different costs shuffled over k channels ([001] §5).

The state machines are Penstock's own. Messages reach the scheduler after each block of tuples.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from penstock.routing import Channels, Costs, Hashes, OperatorState, SchedulerState, ShuffleSettings
from penstock.routing.greedy import greedy_unlike
from penstock.routing.shuffle_messages import SyncReply
from penstock.routing.shuffle_scheduler import Placement, SchedulerPhase
from penstock.sketches import splitmix64
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
        self.scheduler = SchedulerState(self.channels, self.place)
        self._operators = [OperatorState(channel, self.settings) for channel in range(self.channels)]

    def execute(self, tuples: Tuples) -> tuple[Channels, Costs]:
        """Where one block goes and how long each tuple takes there."""
        sent = self.scheduler.submit(tuples.hashes)
        seconds = tuples.costs * np.broadcast_to(self.factors, self.channels)[sent.channels]
        for operator in self._operators:
            here = sent.channels == operator.channel
            due = [request for request in sent.requests if request.channel == operator.channel]
            for message in operator.execute(tuples.hashes[here], seconds[here], due):
                if self.synchronised or not isinstance(message, SyncReply):
                    self.scheduler.receive(message)
        return sent.channels, seconds

    def run(self, tuples: Tuples, *, later: Costs | None = None) -> tuple[Channels, Costs]:
        """A whole stream; `later`, if given, are the factors of its second half."""
        routes, seconds = [], []
        for number, block in enumerate(tuples.blocks(_BLOCK)):
            if later is not None and 2 * number * _BLOCK >= len(tuples.hashes):
                self.factors = later
            there, took = self.execute(block)
            routes.append(there)
            seconds.append(took)
        return np.concatenate(routes), np.concatenate(seconds)

    def barrier(self) -> None:
        """The end of an epoch."""
        self.scheduler.barrier()
        for operator in self._operators:
            operator.barrier()


def completion_times(routes: Channels, seconds: Costs, arrivals: Costs) -> Costs:
    """How long each tuple waits and runs on its channel, first come first served."""
    taken = np.empty(len(routes))
    for channel in np.unique(routes):
        here = np.flatnonzero(routes == channel)
        work = np.cumsum(seconds[here])
        # A channel is done with tuple i after all work since it was last idle: the latest slack so far.
        slack = np.maximum.accumulate(arrivals[here] - (work - seconds[here]))
        taken[here] = work + slack - arrivals[here]
    return taken


def epoch_makespans(cluster: Cluster, warm_up: Tuples, epochs: list[Tuples]) -> Costs:
    """Makespan over the least possible of each epoch, after operators have learnt from the warm-up."""
    for block in warm_up.blocks(1_000):
        cluster.execute(block)
        cluster.barrier()
    assert cluster.scheduler.phase is not SchedulerPhase.ROUND_ROBIN, "give a longer warm-up"
    ratios = []
    for epoch in epochs:
        routes, seconds = cluster.execute(epoch)
        cluster.barrier()
        ratios.append(
            np.bincount(routes, seconds, cluster.channels).max() / least_possible(seconds, cluster.channels)
        )
    return np.array(ratios)


def least_possible(costs: Costs, channels: int) -> float:
    """What no schedule can beat: an even share, or the longest tuple."""
    return float(max(costs.sum() / channels, costs.max()))
