"""The recording of a run's control: what it saw after each epoch and what became of it, one JSON line each.

    control/000000000003-000.jsonl    of the third owner of the checkpoint; files have at most 8 MB

A file stands for itself. Its first line has the state of the controller, and a router has a line of its own
before the first epoch that names it. The last 8 files are kept. Lines are written but not synced: after a
loss of power some of the last are missing, or the very last one is torn. On an object store, which cannot
append, 64 epochs are one file.
"""

import base64
import json
import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import durable
from penstock.control.observation import Observation
from penstock.control.ruling import Ruling
from penstock.durable import Purpose
from penstock.routing import HashPair
from penstock.state.storage import Location

__all__ = ["MOST_BYTES", "MOST_FILES", "Recording"]

MOST_BYTES = 8 * 2**20
"""The size from which a file is followed by another."""
MOST_FILES = 8
"""The number of files that are kept."""

_EPOCHS_AT_ONCE = 64  # of a file on an object store

_log = logging.getLogger("penstock.run")


@dataclass
class Recording:
    """Writes the recording; a failure to write is logged once and ends the recording, not the run.

    `find` gives the router of a name, and `state` what the controller remembers.
    """

    folder: Location
    owner: int
    find: Callable[[str], HashPair]
    state: Callable[[], Mapping[str, Any]]
    most_bytes: int = MOST_BYTES
    most_files: int = MOST_FILES
    _number: int = 0
    _size: int = 0
    _named: set[str] = field(default_factory=set)
    _held: list[str] = field(default_factory=list)
    _epochs: int = 0
    _failed: bool = False

    def begin(self) -> None:
        """Begin a file, before the observation of the next epoch is taken in."""
        if self._failed or self._size:
            return
        self._named.clear()
        self._guarded(lambda: self._add([{"kind": "controller", "state": self.state()}]))

    def add(self, seen: Observation, rulings: Sequence[Ruling]) -> None:
        """Record an epoch."""
        if not self._failed:
            self._guarded(lambda: self._record(seen, rulings))

    def close(self) -> None:
        """Write what is held back."""
        if self._held and not self._failed:
            self._guarded(self._write)

    def _record(self, seen: Observation, rulings: Sequence[Ruling]) -> None:
        names = [each.router for each in seen.stages if each.router and each.router not in self._named]
        lines: list[Mapping[str, Any]] = [
            {"kind": "router", "name": name, "data": _packed(self.find(name))}
            for name in dict.fromkeys(names)
        ]
        self._named.update(names)
        told = [each.to_json() for each in rulings]
        self._add([*lines, {"kind": "epoch", "observation": seen.to_json(), "rulings": told}])
        self._epochs += 1
        if self._size >= self.most_bytes or (not self.folder.local and self._epochs >= _EPOCHS_AT_ONCE):
            self._next()

    def _add(self, lines: Sequence[Mapping[str, Any]]) -> None:
        texts = [json.dumps(each, separators=(",", ":"), allow_nan=False) + "\n" for each in lines]
        self._held += texts
        self._size += sum(map(len, texts))
        if self.folder.local:
            self._write()

    def _write(self) -> None:
        """Append what is held back, or write it as a file where nothing can be appended."""
        data, self._held = "".join(self._held).encode(), []
        if not self.folder.local:
            self.folder.write(self._name, data, Purpose.RECORDING)
            return
        self.folder.make(Purpose.RECORDING)
        path = Path(self.folder.path, self._name)
        with durable.writing(path, Purpose.RECORDING), path.open("ab") as file:
            file.write(data)

    def _next(self) -> None:
        """Go on with another file, and delete the oldest ones."""
        if self._held:
            self._write()
        self._number, self._size, self._epochs = self._number + 1, 0, 0
        for name in self.folder.names()[: -self.most_files]:
            self.folder.delete(name, Purpose.RECORDING)

    @property
    def _name(self) -> str:
        return f"{self.owner:012d}-{self._number:03d}.jsonl"

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # noqa: BLE001 -- a storage may raise anything
            self._failed = True
            _log.exception("the recording of control ends, the run goes on: %s", self.folder.uri)


def _packed(router: HashPair) -> str:
    return base64.b85encode(zlib.compress(router.to_bytes())).decode()
