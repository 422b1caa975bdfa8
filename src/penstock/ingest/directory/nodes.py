"""Where gates run: an interface that a cluster manager can fill, and processes on this machine.

Gates have addresses that are known before they run, as the pods of a stateful set have. A gate registers with
the controller when it is ready. Starting and stopping only begin here: the controller sees from registrations
when a gate is there, and from `runs` when it has ended.
"""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Protocol

from penstock import durable
from penstock.durable import Purpose
from penstock.errors import BadAdmission
from penstock.ingest.wire.flight import GATE_PORT, Address

__all__ = ["LocalNodes", "Nodes"]

_LOGGER = logging.getLogger("penstock.controller")
_COMMAND: Final = "from penstock.cli import main; main()"
_STOP_S: Final = 15.0
_PID: Final = "pid"


class Nodes(Protocol):
    """Runs gates; every call returns at once."""

    @property
    def least(self) -> int:
        """The number of gates that always run."""
        ...

    def gates(self) -> Sequence[str]:
        """The addresses of all gates that it can run, in the order in which they are started."""
        ...

    def runs(self, gate: str) -> bool:
        """Whether a gate was started and has not ended."""
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
    ) -> None:
        if not 0 <= least <= most or most < 1:
            raise BadAdmission(f"gates from {least} to {most}; give numbers with 0 <= from <= to")
        self.least = least
        self._folder = folder
        self._controller = controller
        self._options = tuple(options)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._gates = tuple(str(Address(host, each)) for each in _ports(folder, host, port, most))

    def gates(self) -> Sequence[str]:
        """By port."""
        return self._gates

    def runs(self, gate: str) -> bool:
        """Whether its process lives, also one that an earlier controller started."""
        process = self._processes.get(gate)
        return process.poll() is None if process is not None else self._stranger(gate) is not None

    def start(self, gate: str) -> None:
        """Start its process; its log goes to `gate.log` beside its folder."""
        if self.runs(gate):
            return
        place = self._place(gate)
        place.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", _COMMAND, "gate", "--address", gate, "--folder", str(place / "gate")]
        command += ["--controller", self._controller, *self._options]
        with (place / "gate.log").open("ab") as said:
            process = subprocess.Popen(  # noqa: S603 -- our own command
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        self._processes[gate] = process
        with durable.writing(place / _PID, Purpose.CONTROLLER):
            (place / _PID).write_text(str(process.pid))
        _LOGGER.info("gate %s is being started as process %d", gate, process.pid)

    def stop(self, gate: str) -> None:
        """Ask its process to end."""
        process = self._processes.get(gate)
        number = process.pid if process is not None and process.poll() is None else self._stranger(gate)
        if number is not None:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGTERM)

    def clear(self, gate: str) -> None:
        """Delete its folder."""
        self._processes.pop(gate, None)
        shutil.rmtree(self._place(gate), ignore_errors=True)

    def close(self) -> None:
        """End all gates; what they hold stays."""
        for gate in self._gates:
            self.stop(gate)
        for gate, process in self._processes.items():
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                _LOGGER.warning("gate %s has not ended for %g s; it is killed", gate, _STOP_S)
                process.kill()
                process.wait()

    def _place(self, gate: str) -> Path:
        return self._folder / gate.rpartition(":")[2]

    def _stranger(self, gate: str) -> int | None:
        """The process of a gate that an earlier controller started, if it lives."""
        try:
            number = int((self._place(gate) / _PID).read_text())
            said = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return number if gate.encode() in said and b"gate" in said else None


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
