"""Connections that are open when the program ends: closed, and rows that nobody waited for are told."""

import atexit
import sys
import weakref
from typing import Protocol

__all__ = ["remember"]


class Closable(Protocol):
    """A connection."""

    def unacknowledged(self) -> int:
        """Rows that were pushed and not acknowledged."""

    def close(self) -> None:
        """End all calls."""


def remember(connection: Closable) -> None:
    """Close a connection with the program, unless it is gone by then."""
    _OPEN.add(connection)


_OPEN: "weakref.WeakSet[Closable]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Threads inside of gRPC must not outlive the interpreter.
    for connection in list(_OPEN):
        left = connection.unacknowledged()
        connection.close()
        if left:
            sys.stderr.write(
                f"penstock: {left} rows were pushed and not acknowledged when the program ended; flush or "
                "close their clients before\n"
            )
