"""Which unit gets a tuple, on paper: dealt in turn or shuffled by cost; messages come with completion.

A grouping routes tuples as they arrive and is told which have completed since. Nothing that an operator
learns from a tuple is known before that tuple is done.
"""

from collections import deque
from typing import Protocol

import numpy as np

from penstock.routing import Channels, Costs, Hashes, RoundRobin
from penstock.routing.greedy import greedy, greedy_unlike
from penstock_lab.algorithms.shuffle_messages import ShuffleSettings, SyncReply, SyncRequest
from penstock_lab.algorithms.shuffle_operator import OperatorState
from penstock_lab.algorithms.shuffle_scheduler import Placement, SchedulerState

__all__ = ["DealtInTurn", "Grouping", "MergedCosts", "PerUnitSketches"]


class Grouping(Protocol):
    """Routes tuples to units 0 to k - 1; `block` tuples are routed with the same knowledge, 0 for all."""

    block: int

    def route(self, hashes: Hashes) -> Channels:
        """The unit of each tuple."""
        ...

    def completed(self, unit: int, hashes: Hashes, seconds: Costs) -> None:
        """Tuples of a unit are done, in the order in which they were routed to it."""
        ...

    def told(self) -> None:
        """That was all that is done so far."""
        ...

    def resized(self, units: int) -> None:
        """There are so many units from now on; tuples that had not begun are routed again."""
        ...


class DealtInTurn:
    """Round robin, the shuffle grouping of Storm."""

    block = 0

    def __init__(self, units: int) -> None:
        self._deal = RoundRobin(units)

    def route(self, hashes: Hashes) -> Channels:
        """One after the other."""
        routes = self._deal.route(hashes)
        self._deal = self._deal.after(len(hashes))
        return routes

    def completed(self, unit: int, hashes: Hashes, seconds: Costs) -> None:
        """It learns nothing."""

    def told(self) -> None:
        """Nor here."""

    def resized(self, units: int) -> None:
        """It begins at unit 0."""
        self._deal = RoundRobin(units)


class PerUnitSketches:
    """Online shuffle grouping as in [001] §5.2: sketches for each unit, learnt anew after a change."""

    block = 512

    def __init__(
        self,
        units: int,
        settings: ShuffleSettings | None = None,
        *,
        place: Placement = greedy_unlike,
        synchronised: bool = True,
    ) -> None:
        self.settings, self._place, self._synchronised = settings or ShuffleSettings(), place, synchronised
        self.resized(units)

    def route(self, hashes: Hashes) -> Channels:
        """As the scheduler places them; requests wait for their tuples."""
        sent = self.scheduler.submit(hashes)
        for request in sent.requests:
            self._requests[request.channel].append(request)
        return sent.channels

    def completed(self, unit: int, hashes: Hashes, seconds: Costs) -> None:
        """The operator learns, and what it says reaches the scheduler."""
        operator, waiting = self._operators[unit], self._requests[unit]
        due = []
        while waiting and waiting[0].ordinal <= operator.executed + len(hashes):
            due.append(waiting.popleft())
        for message in operator.execute(hashes, seconds, due):
            if self._synchronised or not isinstance(message, SyncReply):
                self.scheduler.receive(message)

    def told(self) -> None:
        """Nothing more to do."""

    def resized(self, units: int) -> None:
        """All is learnt anew: sketches and estimated work belong to units."""
        self.scheduler = SchedulerState(units, self._place)
        self._operators = [OperatorState(unit, self.settings) for unit in range(units)]
        self._requests: list[deque[SyncRequest]] = [deque() for _ in range(units)]

    def barrier(self) -> None:
        """The end of an epoch, when all is done."""
        self.scheduler.barrier()
        for operator in self._operators:
            operator.barrier()


class MergedCosts:
    """Shuffled by cost with one sketch over all units, which a change of their number leaves as it is.

    Each unit's estimated work is that of the tuples that it was sent and has not completed. What was learnt
    is forgotten after `memory` to twice as many tuples.
    """

    block = 512

    def __init__(self, units: int, settings: ShuffleSettings | None = None, *, memory: int = 16_384) -> None:
        self.settings, self._memory = settings or ShuffleSettings(epsilon=0.0005), memory
        # One sketch is asked; the other has only what is newer, and takes its place after a while.
        self._asked, self._newer = self.settings.sketch(), self.settings.sketch()
        self._known = 0
        self._work: Costs = np.zeros(units)
        self._sent: list[deque[Costs]] = []
        self._fresh: list[tuple[Hashes, Costs]] = []
        self.resized(units)

    def route(self, hashes: Hashes) -> Channels:
        """Each to the unit with the least estimated work."""
        distinct, items = np.unique(hashes, return_inverse=True)
        known = self._asked.counts.total > 0
        means = self._asked.means(distinct) if known else np.ones(len(distinct))
        estimates = means[items]
        placed = greedy(estimates, np.maximum(self._work, 0.0))
        self._work = self._work + np.bincount(placed.channels, estimates, len(self._work))
        for unit in np.unique(placed.channels):
            self._sent[unit].append(estimates[placed.channels == unit])
        return placed.channels

    def completed(self, unit: int, hashes: Hashes, seconds: Costs) -> None:
        """The costs are learnt, and the estimates of these tuples are no longer work to do."""
        self._fresh.append((hashes, seconds))
        left, sent = len(hashes), self._sent[unit]
        while left:
            part = sent[0][:left]
            self._work[unit] -= part.sum()
            left -= len(part)
            if len(part) == len(sent[0]):
                sent.popleft()
            else:
                sent[0] = sent[0][len(part) :]

    def told(self) -> None:
        """All that was completed up to an instant is known: the sketches take it in at once."""
        if not self._fresh:
            return
        hashes, seconds = (np.concatenate(each) for each in zip(*self._fresh, strict=True))
        self._fresh = []
        self._asked.update(hashes, seconds)
        self._newer.update(hashes, seconds)
        self._known += len(hashes)
        if self._known >= self._memory:
            self._asked, self._newer, self._known = self._newer, self.settings.sketch(), 0

    def resized(self, units: int) -> None:
        """Costs stay known; work is counted from what is routed from now on."""
        self._work = np.zeros(units)
        self._sent = [deque() for _ in range(units)]
        self._fresh = []
