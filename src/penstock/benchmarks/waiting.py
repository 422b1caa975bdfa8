"""Waiting for other processes, which say nothing when they are ready: only looking again and again tells."""

import socket
import time
from collections.abc import Callable

__all__ = ["free_port", "listens", "wait_until"]

_PAUSE_S = 0.1


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Ask every tenth of a second until it is done; False if that takes longer than so many seconds."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
