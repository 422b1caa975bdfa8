"""`penstock gate` processes on this machine: started, found again, watched and stopped.

A process is known by a file with its number beside the folder of its gate, so it survives whoever started it
and is found by the next one. Orders come under a term, the number of a controller's life: once a later term
has opened the folder, orders of earlier ones are refused, also in another process.
"""

import fcntl
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from penstock import durable
from penstock.durable import Purpose
from penstock.errors import Superseded

__all__ = ["GateProcesses"]

_LOGGER = logging.getLogger("penstock.controller")
_COMMAND: Final = "from penstock.cli import main; main()"
_STOP_S: Final = 15.0
_PID: Final = "pid"


class GateProcesses:
    """The gates in a folder, each in a folder named by its port."""

    def __init__(self, folder: Path, term: int = 0) -> None:
        self._folder, self._term = folder, term
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        with self._ordered():
            pass

    def runs(self, gate: str) -> bool:
        """Whether its process lives, also one that somebody else started."""
        process = self._processes.get(gate)
        return process.poll() is None if process is not None else self._stranger(gate) is not None

    def start(self, gate: str, options: Sequence[str]) -> None:
        """Start its process with these options; its log goes to `gate.log` beside its folder."""
        with self._ordered():
            if self.runs(gate):
                return
            place = self._place(gate)
            place.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-c", _COMMAND, "gate", "--address", gate]
            command += ["--folder", str(place / "gate"), *options]
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
        with self._ordered():
            process = self._processes.get(gate)
            number = process.pid if process is not None and process.poll() is None else self._stranger(gate)
            if number is not None:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGTERM)

    def clear(self, gate: str) -> None:
        """Delete its folder."""
        with self._ordered():
            self._processes.pop(gate, None)
            shutil.rmtree(self._place(gate), ignore_errors=True)

    def end(self, gates: Sequence[str]) -> None:
        """Stop gates and wait for those that were started here; what they hold stays."""
        for gate in gates:
            self.stop(gate)
        for gate, process in self._processes.items():
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                _LOGGER.warning("gate %s has not ended for %g s; it is killed", gate, _STOP_S)
                process.kill()
                process.wait()

    @contextmanager
    def _ordered(self) -> Iterator[None]:
        """Carry out an order inside of this block, one at a time, if no later term has given any."""
        file = self._folder / "term"
        with file.open("a+") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            handle.seek(0)
            known = int(handle.read() or 0)
            if known > self._term:
                raise Superseded(
                    f"the gates in {self._folder} follow the controller of term {known}, and this one has "
                    f"term {self._term}; it gives no orders any more. If the state of that controller is "
                    f"lost, and it is gone, delete {file}"
                )
            if known < self._term:
                handle.truncate(0)
                handle.write(str(self._term))
                handle.flush()
                durable.sync_handle(handle.fileno(), file, Purpose.CONTROLLER)
            yield

    def _place(self, gate: str) -> Path:
        return self._folder / gate.rpartition(":")[2]

    def _stranger(self, gate: str) -> int | None:
        """The process of a gate that somebody else started, if it lives."""
        try:
            number = int((self._place(gate) / _PID).read_text())
            said = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return number if gate.encode() in said and b"gate" in said else None
