"""Where gates run: an interface that a cluster manager can fill, and processes on this machine.

Gates have addresses that are known before they run, as the pods of a stateful set have. A gate registers with
the controller when it is ready. Starting and stopping only begin here: the controller sees from registrations
when a gate is there, and from `runs` when it has ended.
"""

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from penstock import durable
from penstock.durable import Purpose
from penstock.errors import BadAdmission
from penstock.ingest.directory.gate_processes import GateProcesses
from penstock.ingest.wire.flight import GATE_PORT, Address

__all__ = ["LocalNodes", "Nodes"]


class Nodes(Protocol):
    """Runs gates; every call returns at once."""

    @property
    def least(self) -> int:
        """The number of gates that always run."""
        ...

    def gates(self) -> Sequence[str]:
        """The addresses of all gates that it can run, in the order in which they are started."""
        ...

    def share(self, gate: str) -> float:
        """What a gate can do as a multiple of a usual one, where nobody has measured it."""
        ...

    def runs(self, gate: str) -> bool:
        """Whether a gate was started and has not ended; True if nobody can tell."""
        ...

    def start(self, gate: str) -> None:
        """Begin to start a gate, on what it held before, if anything."""
        ...

    def stop(self, gate: str) -> None:
        """Begin to stop a gate."""
        ...

    def clear(self, gate: str) -> None:
        """Delete what a gate held: it has ended, and nobody needs its rows."""
        ...

    def close(self) -> None:
        """The controller ends."""
        ...


class LocalNodes:
    """`penstock gate` processes on this machine, from `least` to `most`, on consecutive ports.

    Gates survive the death of the controller, and the next one on the same folder finds them again; when it
    ends in order, they do too. With port 0 free ports are taken and remembered in the folder.
    """

    def __init__(  # noqa: PLR0913 -- each is one setting with a default
        self,
        folder: Path,
        controller: str,
        *,
        least: int = 1,
        most: int = 8,
        host: str = "127.0.0.1",
        port: int = GATE_PORT,
        options: Sequence[str] = (),
        term: int = 0,
    ) -> None:
        if not 0 <= least <= most or most < 1:
            raise BadAdmission(f"gates from {least} to {most}; give numbers with 0 <= from <= to")
        self.least = least
        self._options = ("--controller", controller, *options)
        self._processes = GateProcesses(folder, term)
        self._gates = tuple(str(Address(host, each)) for each in _ports(folder, host, port, most))

    def gates(self) -> Sequence[str]:
        """By port."""
        return self._gates

    def share(self, _: str) -> float:
        """They are all alike."""
        return 1.0

    def runs(self, gate: str) -> bool:
        """Whether its process lives, also one that an earlier controller started."""
        return self._processes.runs(gate)

    def start(self, gate: str) -> None:
        """Start its process; its log goes to `gate.log` beside its folder."""
        self._processes.start(gate, self._options)

    def stop(self, gate: str) -> None:
        """Ask its process to end."""
        self._processes.stop(gate)

    def clear(self, gate: str) -> None:
        """Delete its folder."""
        self._processes.clear(gate)

    def close(self) -> None:
        """End all gates; what they hold stays."""
        self._processes.end(self._gates)


def _ports(folder: Path, host: str, port: int, most: int) -> list[int]:
    if port:
        return list(range(port, port + most))
    file = folder / "ports"
    known = [int(each) for each in file.read_text().split()] if file.exists() else []
    with ExitStack() as probes:
        while len(known) < most:
            probe = probes.enter_context(socket.socket())
            probe.bind((host, 0))
            known.append(probe.getsockname()[1])
    with durable.writing(file, Purpose.CONTROLLER):
        file.write_text("\n".join(map(str, known)))
    return known[:most]
