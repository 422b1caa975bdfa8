"""Which rows of a stream are there: ranges [low, high) that never touch, ascending."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

__all__ = ["RowRanges"]

_ENDLESS = 2**63


class RowRanges:
    """Ranges of one stream. Nearly always there is one; every method is O(log n) in their number, or O(n).

    >>> rows = RowRanges([(0, 10), (20, 30)])
    >>> rows.reach(5), rows.reach(10), rows.following(10), rows.high
    (10, 10, 20, 30)
    >>> rows.add(10, 20)
    >>> rows.remove(25, 30)
    >>> rows.all()
    [(0, 25)]
    """

    __slots__ = ("_highs", "_lows")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []
        for low, high in ranges:
            self.add(low, high)

    @property
    def high(self) -> int:
        """The number after the last row, 0 if there is none."""
        return self._highs[-1] if self._highs else 0

    def all(self) -> list[tuple[int, int]]:
        """Every range."""
        return list(zip(self._lows, self._highs, strict=True))

    def reach(self, at: int) -> int:
        """The first row from `at` on that is not there."""
        place = bisect_right(self._lows, at) - 1
        return max(at, self._highs[place]) if place >= 0 else at

    def following(self, at: int) -> int:
        """Where the first range after `at` begins; far beyond every row if there is none."""
        place = bisect_right(self._lows, at)
        return self._lows[place] if place < len(self._lows) else _ENDLESS

    def add(self, low: int, high: int) -> None:
        """Add rows, some of which may be there."""
        if low >= high:
            return
        if self._highs and low == self._highs[-1]:
            self._highs[-1] = high
            return
        # The ranges from first to last touch the new one.
        first, last = bisect_left(self._highs, low), bisect_right(self._lows, high)
        if first < last:
            low, high = min(low, self._lows[first]), max(high, self._highs[last - 1])
        self._lows[first:last], self._highs[first:last] = [low], [high]

    def remove(self, low: int, high: int) -> None:
        """Take rows away, some of which may not be there."""
        kept = [
            part
            for start, end in self.all()
            for part in ((start, min(end, low)), (max(start, high), end))
            if part[0] < part[1]
        ]
        self._lows, self._highs = [each[0] for each in kept], [each[1] for each in kept]
