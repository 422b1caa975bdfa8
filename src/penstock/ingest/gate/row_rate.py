"""A limit of rows per second over all streams of a gate: batches above it get turns, one after the other.

Virtual scheduling: the gate is busy until all rows that it took or promised to take would have passed at its
rate. A batch is taken if that is at most a short burst ahead; else its stream gets a turn, which counts as
busy time from then on. So streams take turns, none comes in vain, and the rate is used up. A stream that does
not come to its turn loses it. O(1) a batch; time is an argument.
"""

from dataclasses import dataclass, field

__all__ = ["RowRate"]

BURST_S = 0.05
"""Rows of this time may come at once."""
KEPT_S = 2.0
"""A turn is kept for so long after its time."""
_MANY = 64


@dataclass(slots=True)
class RowRate:
    """At most `rows` rows a second; 0 is no limit.

    >>> rate = RowRate(100.0)
    >>> rate.wait("a", 50, now=10.0), rate.taken("a", 50, now=10.0)
    (0.0, None)
    >>> [round(rate.wait(stream, 20, now=10.1), 3) for stream in ("a", "b", "a")]
    [0.35, 0.55, 0.35]
    >>> rate.wait("a", 20, now=10.46), round(rate.wait("b", 20, now=10.46), 3)
    (0.0, 0.19)
    """

    rows: float
    _busy_until: float = 0.0
    _turns: dict[str, tuple[float, int]] = field(default_factory=dict)

    def wait(self, stream: str, rows: int, now: float) -> float:
        """Seconds until the turn of a stream with this many rows; 0 if it is now."""
        if not self.rows or not rows:
            return 0.0
        turn = self._turns.get(stream)
        if turn is not None:
            return max(turn[0] - now, 0.0)
        free = self._busy_until - BURST_S
        if free <= now:
            return 0.0
        if len(self._turns) >= _MANY:
            self._turns = {each: known for each, known in self._turns.items() if known[0] > now - KEPT_S}
        self._turns[stream] = free, rows
        self._busy_until += rows / self.rows
        return free - now

    def taken(self, stream: str, rows: int, now: float) -> None:
        """Count rows that were taken; those of a turn are counted already."""
        if self.rows:
            _, counted = self._turns.pop(stream, (0.0, 0))
            self._busy_until = max(self._busy_until, now) + (rows - counted) / self.rows
