"""A bounded journal: lines in files of limited size, of which the last few are kept.

Each file stands for itself: it begins with the lines that `begin` gives. Lines are written when they are
added, to a file that stays open, but not synced: after a loss of power some of the last are missing, or the
very last one is torn. On an object store, which
cannot append, a number of lines is one file.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from penstock import durable
from penstock.durable import Purpose
from penstock.state.storage import Location

__all__ = ["MOST_BYTES", "MOST_FILES", "LineFiles"]

MOST_BYTES = 8 * 2**20
"""The size from which a file is followed by another."""
MOST_FILES = 8
"""The number of files that are kept."""

_AT_ONCE = 64  # additions to a file on an object store


@dataclass
class LineFiles:
    """The files of one writer, `PREFIX-000.jsonl` and so on; names sort by age if prefixes do.

    A failure to write is logged once and ends the journal, not its writer.
    """

    folder: Location
    prefix: str
    begin: Callable[[], Sequence[str]]
    log: logging.Logger
    most_bytes: int = MOST_BYTES
    most_files: int = MOST_FILES
    _number: int = 0
    _size: int = 0
    _additions: int = 0
    _held: list[str] = field(default_factory=list)
    _failed: bool = False
    _file: FileIO | None = None

    def open(self) -> None:
        """Begin a file if none is open."""
        if not self._size:
            self._guarded(self._begin)

    def add(self, lines: Callable[[], Sequence[str]]) -> None:
        """Add lines, which are made only as long as the journal is written."""
        self._guarded(lambda: self._record(lines()))

    def cut(self) -> None:
        """Go on with another file: what comes does not follow from what is there."""
        if self._size:
            self._guarded(self._next)

    def close(self) -> None:
        """Write what is held back; more may follow."""
        if self._held:
            self._guarded(self._write)
        self._close()

    def _begin(self) -> None:
        """Write the first lines of a file, and delete the oldest files, also those of earlier writers."""
        self._add(self.begin())
        for name in self.folder.names()[: -self.most_files]:
            self.folder.delete(name, Purpose.RECORDING)

    def _record(self, lines: Sequence[str]) -> None:
        self._add(lines)
        self._additions += 1
        if self._size >= self.most_bytes or (not self.folder.local and self._additions >= _AT_ONCE):
            self._next()

    def _add(self, lines: Sequence[str]) -> None:
        self._held += [f"{line}\n" for line in lines]
        self._size += sum(len(line) + 1 for line in lines)
        if self.folder.local:
            self._write()

    def _write(self) -> None:
        """Append what is held back, or write it as a file where nothing can be appended."""
        data, self._held = "".join(self._held).encode(), []
        name = f"{self.prefix}-{self._number:03d}.jsonl"
        if not self.folder.local:
            self.folder.write(name, data, Purpose.RECORDING)
            return
        path = Path(self.folder.path, name)
        if self._file is None:
            self.folder.make(Purpose.RECORDING)
            self._file = path.open("ab", buffering=0)
        with durable.writing(path, Purpose.RECORDING):
            self._file.write(data)

    def _next(self) -> None:
        """Go on with another file, once there is something to write."""
        if self._held:
            self._write()
        self._close()
        self._number, self._size, self._additions = self._number + 1, 0, 0

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _guarded(self, call: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            call()
        except Exception:
            self._failed = True
            self._close()
            self.log.exception("the recording of control ends, everything else goes on: %s", self.folder.uri)
