"""Writes the recording of a run's control: what it saw after each epoch and what became of it.

    control/000000000003-000.jsonl    of the third owner of the checkpoint; files have at most about 8 MB

`control/recording.py` says how a file reads, `state/line_files.py` how files are written and which are kept.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.control.observation import Observation
from penstock.control.recording import controller_line, epoch_line, router_line
from penstock.control.ruling import Ruling
from penstock.control.setup import Find, Setup
from penstock.state.line_files import MOST_BYTES, MOST_FILES, LineFiles
from penstock.state.storage import Location

__all__ = ["MOST_BYTES", "MOST_FILES", "RecordingFiles"]

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
    _named: set[str] = field(default_factory=set)
    _files: LineFiles = field(init=False)

    def __post_init__(self) -> None:
        self._files = LineFiles(
            self.folder, f"{self.owner:012d}", self._head, _log, self.most_bytes, self.most_files
        )

    def begin(self) -> None:
        """Begin a file if none is open, before the controller observes the next epoch."""
        self._files.open()

    def add(self, seen: Observation, rulings: Sequence[Ruling]) -> None:
        """Record an epoch."""
        self._files.add(lambda: self._lines(seen, rulings))

    def close(self) -> None:
        """Write what is held back."""
        self._files.close()

    def _head(self) -> list[str]:
        self._named.clear()
        return [controller_line(self.setup, self.state())]

    def _lines(self, seen: Observation, rulings: Sequence[Ruling]) -> list[str]:
        names = dict.fromkeys(each.router for each in seen.stages if each.router)
        new = [name for name in names if name not in self._named]
        self._named.update(new)
        return [*(router_line(name, self.find(name)) for name in new), epoch_line(seen, rulings)]
