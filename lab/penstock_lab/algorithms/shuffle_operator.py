"""An operator that learns what its tuples cost and tells the scheduler once it knows ([001] §5.2).

Two states: START gathers the first N tuples, STABILIZING compares the sketch with its last snapshot
every N tuples. Messages leave in the order of the tuples that caused them; the same tuples
give the same messages however they are cut into calls.
"""

from collections.abc import Iterable
from enum import Enum

import numpy as np

from penstock.errors import BadRouting
from penstock.routing.router import Costs, Hashes
from penstock_lab.algorithms.shuffle_messages import Matrices, ShuffleSettings, SyncReply, SyncRequest

__all__ = ["OperatorPhase", "OperatorState"]


class OperatorPhase(Enum):
    """Whether there is a snapshot to compare with."""

    START = "start"
    STABILIZING = "stabilizing"


class OperatorState:
    """One parallel instance, on one channel: executed tuples and sync requests in, messages out.

    >>> operator = OperatorState(0, ShuffleSettings(window=2))
    >>> item, cost = np.array([5, 5], np.uint64), np.array([3.0, 3.0])
    >>> operator.execute(item, cost), operator.phase
    ([], <OperatorPhase.STABILIZING: 'stabilizing'>)
    >>> [type(message).__name__ for message in operator.execute(item, cost)]
    ['Matrices']
    """

    def __init__(self, channel: int, settings: ShuffleSettings) -> None:
        self.channel, self.settings = channel, settings
        self.phase = OperatorPhase.START
        self.executed, self.busy = 0, 0.0
        self._sketch = settings.sketch()
        self._snapshot = self._sketch.ratios()
        self._unchecked = 0

    def execute(
        self, hashes: Hashes, costs: Costs, requests: Iterable[SyncRequest] = ()
    ) -> list[Matrices | SyncReply]:
        """Note tuples that were executed, in order, and answer the requests that came with some of them."""
        answers = self._answers(costs, requests)
        sent: list[tuple[int, Matrices | SyncReply]] = []
        at = 0
        while at < len(hashes):
            end = min(len(hashes), at + self.settings.window - self._unchecked)
            self._sketch.update(hashes[at:end], costs[at:end])
            self._unchecked += end - at
            at = end
            if self._unchecked == self.settings.window:
                sent += [(at, message) for message in self._look()]
        self.executed += len(hashes)
        self.busy += float(costs.sum())
        return [message for _, message in sorted(answers + sent, key=lambda pair: pair[0])]

    def barrier(self) -> None:
        """All work is done, as at the end of an epoch; the scheduler counts from zero again too."""
        self.busy = 0.0

    def _answers(
        self, costs: Costs, requests: Iterable[SyncRequest]
    ) -> list[tuple[int, Matrices | SyncReply]]:
        answers: list[tuple[int, Matrices | SyncReply]] = []
        for request in requests:
            place = request.ordinal - self.executed
            if request.channel != self.channel or not 1 <= place <= len(costs):
                raise BadRouting(
                    f"{request} reached channel {self.channel}, which now executes its tuples "
                    f"{self.executed + 1} to {self.executed + len(costs)}; keep it with its tuple"
                )
            truth = self.busy + float(costs[:place].sum())
            answers.append((place, SyncReply(self.channel, request.round, truth - request.estimate)))
        return answers

    def _look(self) -> list[Matrices]:
        """The transitions A, B and C of Figure 7b."""
        self._unchecked = 0
        before, self._snapshot = self._snapshot, self._sketch.ratios()
        if self.phase is OperatorPhase.START:
            self.phase = OperatorPhase.STABILIZING
            return []
        if np.abs(before - self._snapshot).sum() > self.settings.tolerance * before.sum():
            return []
        steady, self._sketch = self._sketch, self.settings.sketch()
        self.phase = OperatorPhase.START
        return [Matrices(self.channel, steady)]
