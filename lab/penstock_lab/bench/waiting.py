"""Waiting for other processes by polling, because they do not announce that they are ready."""

import socket
import time
from collections.abc import Callable

__all__ = ["free_port", "listens", "wait_until"]


def wait_until(done: Callable[[], bool], seconds: float, pause: float = 0.1) -> bool:
    """Ask every `pause` seconds until it is done; False if that takes longer than the time given."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
    return True


def free_port() -> int:
    """A port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Whether a process listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
