"""Each tuple to the channel with the least work, estimated from what operators report ([001] §5.2).

With exact costs the makespan is within 2 - 1/k of the best; the synchronisation corrects
the errors of the estimates. ROUND ROBIN until every operator has reported; SEND ALL asks each for its
true work, with one tuple each; WAIT ALL and RUN place tuples by estimated work; a new report
starts SEND ALL again. A reply of an earlier round is void.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.greedy import Schedule, greedy_unlike
from penstock.routing.round_robin import RoundRobin
from penstock.routing.router import Channels, Costs, Hashes
from penstock_lab.algorithms.shuffle_messages import Matrices, SyncReply, SyncRequest

__all__ = ["Assignment", "Placement", "SchedulerPhase", "SchedulerState"]

Placement = Callable[[Costs, NDArray[np.intp], Costs], Schedule]


class SchedulerPhase(Enum):
    """What the scheduler knows and waits for."""

    ROUND_ROBIN = "round robin"
    SEND_ALL = "send all"
    WAIT_ALL = "wait all"
    RUN = "run"


@dataclass(frozen=True)
class Assignment:
    """The channel of every tuple submitted, and the requests that travel with some of them."""

    channels: Channels
    requests: tuple[SyncRequest, ...] = ()


class SchedulerState:
    """Tuples and messages of operators in, channels and sync requests out.

    `place` gives tuples of estimated cost to channels: `greedy_unlike` one by one as in the paper, or
    `longest_first_unlike` for all that are submitted at once.

    >>> scheduler = SchedulerState(channels=2)
    >>> scheduler.submit(np.array([5, 5, 9], np.uint64)).channels.tolist(), scheduler.phase
    ([0, 1, 0], <SchedulerPhase.ROUND_ROBIN: 'round robin'>)
    """

    def __init__(self, channels: int, place: Placement = greedy_unlike) -> None:
        self._deal = RoundRobin(channels)
        self._place = place
        self.phase = SchedulerPhase.ROUND_ROBIN
        self.round = 0
        self.work: Costs = np.zeros(channels)
        self._sent = np.zeros(channels, np.int64)
        self._reports: dict[int, Matrices] = {}
        self._asked = 0
        self._drifts: dict[int, float] = {}

    @property
    def channels(self) -> int:
        """How many channels there are."""
        return self._deal.channels

    def submit(self, hashes: Hashes) -> Assignment:
        """Place tuples in their order; costs one estimate for each channel and distinct tuple."""
        if self.phase is SchedulerPhase.ROUND_ROBIN:
            routes = self._deal.route(hashes)
            self._deal = self._deal.after(len(hashes))
            self._sent += np.bincount(routes, minlength=self.channels)
            return Assignment(routes)
        distinct, items = np.unique(hashes, return_inverse=True)
        table = np.stack([self._reports[channel].sketch.means(distinct) for channel in range(self.channels)])
        asked, requests = self._ask(table, items)
        placed = self._place(table, items[len(asked) :], self.work)
        self.work = placed.loads
        self._sent += np.bincount(placed.channels, minlength=self.channels)
        return Assignment(np.concatenate([asked, placed.channels]), requests)

    def receive(self, message: Matrices | SyncReply) -> None:
        """Take in what an operator says."""
        if not 0 <= message.channel < self.channels:
            raise BadRouting(f"a message of channel {message.channel}; there are {self.channels} channels")
        if isinstance(message, Matrices):
            self._learn(message)
        elif message.round == self.round and self.phase in {SchedulerPhase.SEND_ALL, SchedulerPhase.WAIT_ALL}:
            self._drifts[message.channel] = message.drift
            self._correct()

    def barrier(self) -> None:
        """Every channel has done all its work, as at the end of an epoch: from here on none is ahead.

        The operators must pass the same barrier, since drifts compare their sums with ours.
        """
        self.work = np.zeros(self.channels)
        if self.phase is SchedulerPhase.WAIT_ALL:
            self.round += 1
            self.phase = SchedulerPhase.RUN
        elif self.phase is SchedulerPhase.SEND_ALL:
            self._begin_round()

    def _learn(self, message: Matrices) -> None:
        self._reports[message.channel] = message
        if len(self._reports) == self.channels:
            self._begin_round()

    def _begin_round(self) -> None:
        self.phase = SchedulerPhase.SEND_ALL
        self.round += 1
        self._asked = 0
        self._drifts = {}

    def _ask(self, table: Costs, items: NDArray[np.intp]) -> tuple[Channels, tuple[SyncRequest, ...]]:
        """Send the requests that are due with the next tuples, one to each channel in turn."""
        if self.phase is not SchedulerPhase.SEND_ALL:
            return np.empty(0, np.int32), ()
        asked = np.arange(self._asked, min(self.channels, self._asked + len(items)), dtype=np.int32)
        self.work[asked] += table[asked, items[: len(asked)]]
        self._sent[asked] += 1
        requests = tuple(
            SyncRequest(int(channel), self.round, int(self._sent[channel]), float(self.work[channel]))
            for channel in asked
        )
        self._asked += len(asked)
        if self._asked == self.channels:
            self.phase = SchedulerPhase.WAIT_ALL
        return asked, requests

    def _correct(self) -> None:
        if self.phase is SchedulerPhase.WAIT_ALL and len(self._drifts) == self.channels:
            self.work = self.work + np.array([self._drifts[channel] for channel in range(self.channels)])
            self.phase = SchedulerPhase.RUN
