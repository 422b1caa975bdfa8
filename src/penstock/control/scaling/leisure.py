"""Leisure: epochs run as soon as tuples come while that is rare, and are paced once a run is busy.

For runs that were given no bound. A tuple now and then is answered at once; a steady load is not allowed to
keep processors busy with the fixed cost of ever smaller epochs.
"""

from collections import deque
from dataclasses import dataclass, field

__all__ = ["DEFAULT_BOUND", "Leisure"]

DEFAULT_BOUND = 1.5
"""The latency in seconds that a run keeps at a steady load if it was given no bound.

It is what `penstock bench latency` has always asked of runs without a bound. The cost of an epoch is nearly
all fixed, so epochs that are half as frequent cost half; whoever can wait longer says so with a bound.
"""


@dataclass
class Leisure:
    """Whether a run was busy for less than `share` of the last `window` seconds.

    >>> leisure = Leisure(share=0.2, window=10.0)
    >>> leisure.observe(0.0, 1.0); leisure.there(1.0)
    True
    >>> leisure.observe(1.0, 2.0); leisure.observe(2.0, 3.5); leisure.there(3.5)
    False
    >>> leisure.there(13.0)
    True
    """

    share: float = 0.2
    window: float = 30.0
    _busy: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=1000), init=False)

    def observe(self, started: float, ended: float) -> None:
        """An epoch ran between these instants."""
        self._busy.append((started, ended))

    def there(self, now: float) -> bool:
        """Whether the next epoch need not wait."""
        since = now - self.window
        while self._busy and self._busy[0][1] <= since:
            self._busy.popleft()
        return sum(ended - max(started, since) for started, ended in self._busy) < self.share * self.window
