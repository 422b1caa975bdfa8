"""A limit of rows per second over all streams of a gate: batches above it get turns, one after the other.

Virtual scheduling: the gate is busy until all rows that it took would have passed at its rate. A batch is
taken if that is at most a short burst ahead, and else told when its turn comes. Turns do not overlap, so
clients that wait do not come back all at once. O(1) a batch; time is an argument.
"""

from dataclasses import dataclass

__all__ = ["RowRate"]

BURST_S = 0.05
"""Rows of this time may come at once."""


@dataclass(slots=True)
class RowRate:
    """At most `rows` rows a second; 0 is no limit.

    >>> rate = RowRate(100.0)
    >>> rate.wait(50, now=10.0), rate.taken(50, now=10.0)
    (0.0, None)
    >>> [round(rate.wait(20, now=10.1), 3) for _ in range(2)]
    [0.35, 0.55]
    >>> rate.wait(20, now=10.46)
    0.0
    """

    rows: float
    _busy_until: float = 0.0
    _turn: float = 0.0

    def wait(self, rows: int, now: float) -> float:
        """Seconds until the turn of this batch; 0 if it is now."""
        if not self.rows or not rows or self._busy_until - BURST_S <= now:
            return 0.0
        turn = max(self._busy_until - BURST_S, self._turn)
        self._turn = turn + rows / self.rows
        return turn - now

    def taken(self, rows: int, now: float) -> None:
        """Count rows that were taken."""
        if self.rows:
            self._busy_until = max(self._busy_until, now) + rows / self.rows
