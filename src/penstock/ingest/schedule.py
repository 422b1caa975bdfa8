"""Which stream of many is due next: one heap, O(log n) for each change."""

import heapq
from typing import Generic, TypeVar

__all__ = ["Schedule"]

T = TypeVar("T")


class Schedule(Generic[T]):
    """Items by the time at which they are due; earlier ones first, among equals the one that came first.

    >>> schedule = Schedule()
    >>> schedule.set("a", 5.0); schedule.set("b", 3.0); schedule.set("b", 7.0)
    >>> schedule.first(), schedule.pop(now=6.0), schedule.pop(now=6.0)
    (5.0, 'a', None)
    """

    def __init__(self) -> None:
        self._at: dict[T, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def set(self, item: T, due: float | None) -> None:
        """Make an item due then, or with None not at all; what was said before no longer holds."""
        known = self._at.get(item)
        if due is None:
            self._at.pop(item, None)
        elif known is None or known[0] != due:
            self._count += 1
            self._at[item] = (due, self._count)
            heapq.heappush(self._heap, (due, self._count, item))

    def first(self) -> float | None:
        """When the first item is due."""
        # An entry that was overtaken stays in the heap until it comes up here: each is looked at once.
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> T | None:
        """The first item that is due by now, which then no longer is."""
        first = self.first()
        if first is None or first > now:
            return None
        item = heapq.heappop(self._heap)[2]
        del self._at[item]
        return item
