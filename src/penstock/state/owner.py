"""Who owns a folder: a process of a host, told apart from those of other boots and containers.

A host name that is the same after a reboot, or in another container, stands for a process that is gone.
"""

import getpass
import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["Owner"]

_PROC = Path("/proc")
_GONE = "ZX"  # states of a process that has died and waits for its parent


@dataclass(frozen=True)
class Owner:
    """Who took a folder; `machine` tells boots and containers of a host apart, `begun` uses of a pid."""

    number: int
    host: str
    machine: str
    pid: int
    begun: str
    user: str
    since: str
    run: str

    @classmethod
    def here(cls, number: int, run: str) -> "Owner":
        """This process."""
        return cls(
            number=number,
            host=socket.gethostname(),
            machine=_machine(),
            pid=os.getpid(),
            begun=_begun(os.getpid()) or "",
            user=_user(),
            since=datetime.now(UTC).isoformat(timespec="seconds"),
            run=run,
        )

    @property
    def alive(self) -> bool:
        """Whether its process may still run; True if that cannot be known from here."""
        if self.host != socket.gethostname():
            return True
        return self.machine == _machine() and _begun(self.pid) == self.begun

    def __str__(self) -> str:
        run = f"run {self.run!r} of " if self.run else ""
        return f"{run}{self.user}, process {self.pid} on {self.host}, since {self.since}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _machine() -> str:
    """This boot of this host, and the container; empty where the system does not tell."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _begun(pid: int) -> str | None:
    """When a process began, in ticks of its system; None if there is none, and empty if nobody tells."""
    if (_PROC / "self/stat").exists():
        try:
            # The second field is the name of the program, which may hold spaces and brackets.
            fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in _GONE else fields[19]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""
