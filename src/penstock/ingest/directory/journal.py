"""Writes what admission saw and decided beside the controller's database, and reads it after a restart.

    admission/000000000003-000.jsonl    of the third start of the controller; files have at most about 8 MB

`control/admission/recording.py` says how a file reads, `state/line_files.py` which files are kept. A policy
goes on where the last one was: the last file is replayed from the state at its beginning.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from penstock.control.admission import (
    Admission,
    AdmissionController,
    AdmissionRecording,
    AdmissionSetup,
    Arrivals,
    Decision,
    LineWriter,
    Seen,
)
from penstock.control.ruling import Ruling
from penstock.errors import PenstockError
from penstock.state.line_files import LineFiles
from penstock.state.storage import Location

__all__ = ["FOLDER", "Journal", "recordings"]

FOLDER: Final = "admission"
_LOGGER = logging.getLogger("penstock.controller")


class Journal:
    """The journal of one life of a controller."""

    def __init__(self, folder: Path, setup: AdmissionSetup) -> None:
        self._setup = setup
        self._folder = Location.of(folder / FOLDER)
        self._lines = LineWriter()
        self._control: AdmissionController | None = None
        self.learnt: Mapping[str, Any] = {}
        """What the last life had learnt of gates, once its policy was asked for."""
        names = self._names()
        life = 1 + (int(names[-1].split("-")[0]) if names else 0)
        self._files = LineFiles(self._folder, f"{life:012d}", self._head, _LOGGER)

    def resumed(self) -> tuple[Admission, AdmissionController] | None:
        """Policy and controller as the last life left them; None if there were none with this setup."""
        names = self._names()
        if not names:
            return None
        try:
            text = self._folder.read(names[-1]).decode()
            last = AdmissionRecording.parse(text.splitlines(), names[-1])
            self.learnt = last.learnt
            if replace(last.setup, mode=self._setup.mode) != self._setup:
                _LOGGER.info("admission begins anew, since its settings are not those of the last start")
                return None
            return replace(last, setup=self._setup).resumed()
        except (PenstockError, OSError, ValueError) as error:
            _LOGGER.warning("admission begins anew, since its recording cannot be read: %s", error)
            return None

    def begin(self, control: AdmissionController) -> None:
        """Begin a file if none is open, before the policy observes anything."""
        self._control = control
        self._files.open()

    def period(self, seen: Seen, rulings: Sequence[Ruling]) -> None:
        """Record what was seen and ruled."""
        self._files.add(lambda: [self._lines.period(seen, rulings)])

    def arrivals(self, seen: Arrivals, decisions: Sequence[Decision]) -> None:
        """Record where new streams enter."""
        self._files.add(lambda: [self._lines.arrivals(seen, decisions)])

    def asked(self, at: float, decisions: Sequence[Decision]) -> None:
        """Record what an operator has decided."""
        self._files.add(lambda: [self._lines.asked(at, decisions)])

    def cut(self) -> None:
        """The policy has failed in between: the next file begins with what it knows then."""
        self._files.cut()

    def close(self) -> None:
        """Write what is held back."""
        self._files.close()

    def _head(self) -> list[str]:
        assert self._control is not None, "a file is begun for a policy"
        return [self._lines.head(self._setup, self._control.to_json())]

    def _names(self) -> list[str]:
        return [each for each in self._folder.names() if each.endswith(".jsonl")]


def recordings(root: Location) -> list[AdmissionRecording]:
    """The recordings in the folder of a controller, the oldest first."""
    folder = root / FOLDER
    names = [each for each in folder.names() if each.endswith(".jsonl")] if folder.kind == "folder" else []
    return [
        AdmissionRecording.parse(folder.read(name).decode().splitlines(), f"{folder.uri}/{name}")
        for name in names
    ]
