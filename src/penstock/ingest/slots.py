"""Slots: how many calls a server serves at once, and how many of these one token may have.

A call that only waits for its client gives its slot to the next one that needs it, once it has been idle for
long enough: clients that open calls and say nothing lock nobody out. As long as slots are free, idle calls
stay. Flight has no way to end a call that waits for a message, so the client's connection is cut; a client
that was only quiet connects again.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar
from urllib.parse import unquote

from penstock.errors import TooMany

__all__ = ["Slot", "Slots"]

_FILES: Final = "/proc/self/fd"
_T = TypeVar("_T")


class Slot:
    """The right of one call to be served; `lost` once another call has it."""

    def __init__(self, token: str | None, peer: str) -> None:
        self.token, self.peer = token, peer
        self.lost = False
        self._waits_since: float | None = None

    def wait_for(self, message: Callable[[], _T]) -> _T:
        """What `message` returns; the call waits for its client meanwhile."""
        self._waits_since = time.monotonic()
        try:
            return message()
        finally:
            self._waits_since = None

    def idle(self, now: float) -> float:
        """For how many seconds the call has been waiting for its client."""
        since = self._waits_since
        return 0.0 if since is None else now - since


class Slots:
    """At most `most` calls at once, and `most_each` of one token; `what` names them in errors.

    >>> reads = Slots("reads", most=1, most_each=1)
    >>> with reads.taken("a"), reads.taken("b"):
    ...     pass
    Traceback (most recent call last):
        ...
    penstock.errors.TooMany: 1 reads are open, the limit of this server; use fewer, or try later
    """

    def __init__(self, what: str, most: int, most_each: int, idle_seconds: float = float("inf")) -> None:
        self._what, self._most, self._most_each, self._idle = what, most, most_each, idle_seconds
        self._taken: set[Slot] = set()
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, token: str | None, peer: str = "") -> Iterator[Slot]:
        """Hold a slot inside of this block; without a token only the limit of all calls counts."""
        slot = Slot(token, peer)
        with self._lock:
            loser = self._make_room(slot)
            self._taken.add(slot)
        if loser is not None:
            cut_connection(loser.peer)
        try:
            yield slot
        finally:
            with self._lock:
                self._taken.discard(slot)

    def _make_room(self, slot: Slot) -> Slot | None:
        """See that there is a slot; the call that loses its own for it, if one has to."""
        own = [each for each in self._taken if slot.token is not None and each.token == slot.token]
        if len(own) >= self._most_each:
            return self._take_away(own, f"{self._most_each} {self._what} of this token are open, its limit")
        if len(self._taken) >= self._most:
            said = f"{self._most} {self._what} are open, the limit of this server"
            return self._take_away(list(self._taken), said)
        return None

    def _take_away(self, slots: list[Slot], full: str) -> Slot:
        now = time.monotonic()
        loser = max(slots, key=lambda each: each.idle(now))
        if loser.idle(now) <= self._idle:
            raise TooMany(f"{full}; use fewer, or try later")
        loser.lost = True
        self._taken.discard(loser)
        return loser


def cut_connection(peer: str) -> None:
    """Shut the socket to a peer as Flight names it, such as "ipv4:127.0.0.1:40118"; all its calls fail.

    Where the system does not list open files this does nothing: the call then ends with its next message.
    """
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    if not port.isdigit() or not os.path.isdir(_FILES):  # noqa: PTH112 -- no path of ours
        return
    wanted = (host.strip("[]"), int(port))
    for name in os.listdir(_FILES):  # noqa: PTH208 -- names are numbers of open files
        # Only the copy is looked at: the number itself may belong to another file by now.
        try:
            copy = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        with copy:
            try:
                if copy.getpeername()[:2] == wanted:
                    copy.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
