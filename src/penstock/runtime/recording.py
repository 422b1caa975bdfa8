"""Writes the recording of a run's control: what it saw after each epoch and what became of it.

    control/000000000003-000.jsonl    of the third owner of the checkpoint; files have at most about 8 MB

`control/recording.py` says how a file reads. Each stands for itself, and the last 8 are kept. Lines are
written but not synced: after a loss of power some of the last are missing, or the very last one is torn. On
an object store, which cannot append, 64 epochs are one file.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import durable
from penstock.control.observation import Observation
from penstock.control.recording import controller_line, epoch_line, router_line
from penstock.control.ruling import Ruling
from penstock.control.setup import Find, Setup
from penstock.durable import Purpose
from penstock.state.storage import Location

__all__ = ["MOST_BYTES", "MOST_FILES", "RecordingFiles"]

MOST_BYTES = 8 * 2**20
"""The size from which a file is followed by another."""
MOST_FILES = 8
"""The number of files that are kept."""

_EPOCHS_AT_ONCE = 64  # of a file on an object store

_log = logging.getLogger("penstock.run")


@dataclass
class RecordingFiles:
    """The files of a run; a failure to write is logged once and ends the recording, not the run.

    `find` gives the router of a name, and `state` what the controller remembers.
    """

    folder: Location
    owner: int
    setup: Setup
    find: Find
    state: Callable[[], Mapping[str, Any]]
    most_bytes: int = MOST_BYTES
    most_files: int = MOST_FILES
    _number: int = 0
    _size: int = 0
    _epochs: int = 0
    _named: set[str] = field(default_factory=set)
    _held: list[str] = field(default_factory=list)
    _failed: bool = False

    def begin(self) -> None:
        """Begin a file if none is open, before the controller observes the next epoch."""
        if not self._size:
            self._named.clear()
            self._guarded(lambda: self._add(controller_line(self.setup, self.state())))

    def add(self, seen: Observation, rulings: Sequence[Ruling]) -> None:
        """Record an epoch."""
        self._guarded(lambda: self._record(seen, rulings))

    def close(self) -> None:
        """Write what is held back."""
        if self._held:
            self._guarded(self._write)

    def _record(self, seen: Observation, rulings: Sequence[Ruling]) -> None:
        names = dict.fromkeys(each.router for each in seen.stages if each.router)
        new = [name for name in names if name not in self._named]
        self._named.update(new)
        routers = [router_line(name, self.find(name)) for name in new]
        self._add(*routers, epoch_line(seen, rulings))
        self._epochs += 1
        if self._size >= self.most_bytes or (not self.folder.local and self._epochs >= _EPOCHS_AT_ONCE):
            self._next()

    def _add(self, *lines: str) -> None:
        self._held += [f"{line}\n" for line in lines]
        self._size += sum(len(line) + 1 for line in lines)
        if self.folder.local:
            self._write()

    def _write(self) -> None:
        """Append what is held back, or write it as a file where nothing can be appended."""
        data, self._held = "".join(self._held).encode(), []
        name = f"{self.owner:012d}-{self._number:03d}.jsonl"
        if not self.folder.local:
            self.folder.write(name, data, Purpose.RECORDING)
            return
        self.folder.make(Purpose.RECORDING)
        path = Path(self.folder.path, name)
        with durable.writing(path, Purpose.RECORDING), path.open("ab") as file:
            file.write(data)

    def _next(self) -> None:
        """Go on with another file, and delete the oldest ones."""
        if self._held:
            self._write()
        self._number, self._size, self._epochs = self._number + 1, 0, 0
        for name in self.folder.names()[: -self.most_files]:
            self.folder.delete(name, Purpose.RECORDING)

    def _guarded(self, call: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            call()
        except Exception:  # noqa: BLE001 -- a storage may raise anything
            self._failed = True
            _log.exception("the recording of control ends, the run goes on: %s", self.folder.uri)
