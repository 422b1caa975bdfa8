"""What each redirection of a stream cost: how long rows that were ready had to wait for the new gate."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

__all__ = ["KEPT", "Redirection", "Redirections"]

KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class Redirection:
    """A stream went from one gate to another.

    `seconds` runs from the moment when the client stopped sending, or from the first row that was ready to
    go after it, to the first acknowledgement of the new gate; `rows` were buffered at the suspension.
    """

    stream: str
    source: str
    target: str
    rows: int
    seconds: float


class Redirections:
    """The last 1,000 redirections of a stream; time comes as an argument.

    >>> log = Redirections()
    >>> log.suspended(Redirection("reports/v1", "a:1", "b:1", rows=3, seconds=0.0), now=10.0)
    >>> log.sent(ready=10.5)
    >>> log.resumed("b:1", now=10.625)
    >>> log.finished[0].seconds
    0.125
    """

    def __init__(self) -> None:
        self.finished: deque[Redirection] = deque(maxlen=KEPT)
        self._under_way: Redirection | None = None
        self._since = 0.0
        self._sent = False

    def suspended(self, redirection: Redirection, now: float) -> None:
        """The stream is to leave; if it had not yet arrived where it was sent before, the clock goes on."""
        if self._under_way is None:
            self._since = now
        else:
            redirection = replace(redirection, source=self._under_way.source)
        self._under_way = redirection
        self._sent = False

    def sent(self, ready: float) -> None:
        """The first batch goes to the new gate, ready since then."""
        if self._under_way is not None and not self._sent:
            self._since = max(self._since, ready)
            self._sent = True

    def resumed(self, gate: str, now: float) -> None:
        """The gate where the stream has arrived has acknowledged."""
        if self._under_way is not None and self._sent:
            seconds = max(now - self._since, 0.0)
            self.finished.append(replace(self._under_way, target=gate, seconds=seconds))
            self._under_way = None
