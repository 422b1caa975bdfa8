"""Results leave a merge at once, unless two that are out of order would lie more than k results apart.

The merge of [004] §2.5 with the order constraint of k: what comes at least k + 1 results after another is not
before it. With k = 0 results leave in order, without a bound each leaves when it arrives.

A result that is missing, while a greater one has left at position p, has to leave at p + k at the latest. The
merge may wait as long as it likes, so the only question is whether positions are left: the missing results,
least first, take the next ones. A result therefore leaves at position q if, with the deadlines of all others
that have not left (those that it overtakes get q + k), the i-th from 0 is at least q + 1 + i. This condition
is also necessary: nothing is withheld that could leave.

A result costs O(log n + k), the k vectorised; without a bound it costs nothing.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting

__all__ = ["DisorderMeter", "KOrderedMerge", "realised_disorder"]

T = TypeVar("T")
_Positions = NDArray[np.int64]


class KOrderedMerge(Generic[T]):
    """The merge of results whose ranks are known: all that can come, equal ranks in any order.

    >>> merge = KOrderedMerge(disorder=1, expected=[1, 2, 3, 4])
    >>> merge.offer(2, "b"), merge.offer(3, "c"), merge.offer(1, "a")
    (['b'], [], ['a', 'c'])
    >>> merge.close(4), merge.expects
    ([], 0)
    """

    def __init__(self, disorder: int | None, expected: Iterable[int]) -> None:
        if disorder is not None and disorder < 0:
            raise BadRouting(f"disorder={disorder}; give a whole number, at least 0, or None for no bound")
        ranks, counts = np.unique(np.fromiter(expected, np.int64), return_counts=True)
        self._most = disorder
        self._ranks: list[int] = ranks.tolist()
        # How many of each rank have neither left nor been closed; those overtaken are counted elsewhere.
        self._left: list[int] = counts.tolist()
        # How many of each rank have neither arrived nor been closed.
        self._open: list[int] = counts.tolist()
        self._position = 0
        # The greatest rank that has left is at this place; overtaken results are those below it.
        self._front = 0
        self._overtaken: list[int] = []
        self._deadlines: _Positions = np.empty(0, np.int64)
        self._waiting: list[tuple[int, int, T]] = []
        self._arrived = 0

    @property
    def expects(self) -> int:
        """The number of results that have neither arrived nor been closed."""
        return sum(self._open)

    @property
    def withheld(self) -> int:
        """The number of results that have arrived and not left."""
        return len(self._waiting)

    def offer(self, rank: int, result: T) -> list[T]:
        """Take a result that has arrived; those that leave now, in order."""
        self._settle(rank, "arrived")
        self._arrived += 1
        if self._most is None:
            self._left[self._place(rank)] -= 1
            return [result]
        entry = (rank, self._arrived, result)
        heapq.heappush(self._waiting, entry)
        # Behind one that could not leave before, it cannot leave either: an arrival changes no deadline.
        return self._leaving() if self._waiting[0] is entry else []

    def close(self, *ranks: int) -> list[T]:
        """Take note that results will not come, such as those of empty windows; those that leave now."""
        for rank in ranks:
            self._settle(rank, "was closed")
            self._remove(rank)
        return self._leaving()

    def _place(self, rank: int) -> int:
        return bisect_left(self._ranks, rank)

    def _settle(self, rank: int, what: str) -> None:
        place = self._place(rank)
        if place == len(self._ranks) or self._ranks[place] != rank or not self._open[place]:
            raise BadRouting(f"a result of rank {rank} {what} that was not expected; name all in `expected`")
        self._open[place] -= 1

    def _leaving(self) -> list[T]:
        """What cannot leave keeps everything greater from leaving: the least that waits decides."""
        found: list[T] = []
        while self._waiting and self._may_leave(self._waiting[0][0]):
            rank, _, result = heapq.heappop(self._waiting)
            self._remove(rank)
            self._overtake(rank)
            self._position += 1
            found.append(result)
        return found

    def _may_leave(self, rank: int) -> bool:
        place, most = self._place(rank), self._most
        assert most is not None
        if place > self._front:
            # Those overtaken now are the last of the missing; the last of all gets position q + m.
            newly = sum(self._left[self._front : place])
            if newly and newly + len(self._overtaken) > most:
                return False
        before = bisect_left(self._overtaken, rank)
        if not before:
            return True
        slack = self._deadlines[:before] - np.arange(self._position, self._position + before)
        return bool(slack.min() > 0)

    def _remove(self, rank: int) -> None:
        """Take a result out of those that are missing."""
        place = bisect_left(self._overtaken, rank)
        if place < len(self._overtaken) and self._overtaken[place] == rank:
            # Of equal ranks any may go, since all have the same deadline.
            del self._overtaken[place]
            self._deadlines = np.delete(self._deadlines, place)
        else:
            self._left[self._place(rank)] -= 1

    def _overtake(self, rank: int) -> None:
        """Give a deadline to everything missing below a result that leaves now."""
        place, most = self._place(rank), self._most
        assert most is not None
        for each in range(self._front, place):
            count = self._left[each]
            if count:
                self._overtaken += [self._ranks[each]] * count
                self._deadlines = np.append(self._deadlines, np.full(count, self._position + most))
                self._left[each] = 0
        self._front = max(self._front, place)


class DisorderMeter:
    """How far results are out of order that leave one after another: the least k that their order keeps to.

    >>> meter = DisorderMeter()
    >>> [meter.add(rank) for rank in [2, 3, 1, 1, 5]], meter.most
    ([0, 0, 2, 3, 0], 3)
    """

    def __init__(self) -> None:
        self.most = 0
        self._position = 0
        # The steps of the greatest rank so far: ranks, and the positions at which they left.
        self._steps: list[int] = []
        self._since: list[int] = []

    def add(self, rank: int) -> int:
        """How many positions a result leaves after the first that is greater; 0 if none is."""
        place = bisect_right(self._steps, rank)
        behind = self._position - self._since[place] if place < len(self._steps) else 0
        if not self._steps or rank > self._steps[-1]:
            self._steps.append(rank)
            self._since.append(self._position)
        self._position += 1
        self.most = max(self.most, behind)
        return behind


def realised_disorder(ranks: Iterable[int]) -> int:
    """The least k to which an order of results keeps.

    >>> realised_disorder([1, 3, 2, 4]), realised_disorder([2, 3, 4, 1])
    (1, 3)
    """
    meter = DisorderMeter()
    for rank in ranks:
        meter.add(rank)
    return meter.most
