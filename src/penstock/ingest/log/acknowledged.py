"""How far a gate's log was acknowledged: one segment and a position in it, in a small file of its own.

Every group says in its headers what was durable before it, so only the last group needs this file. It is
written after each group and synced once the log has been idle for a moment: a sync for each group would
double the cost of the log. So after a loss of power the file may tell too little, and never too much.
"""

import logging
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from penstock import durable
from penstock.durable import Purpose
from penstock.ingest.log.record import checksum

__all__ = ["AcknowledgedEnd"]

_PLACE: Final = struct.Struct("<QQQ")
_SUM: Final = struct.Struct("<Q")
_SLOT: Final = 512
_LOGGER = logging.getLogger("penstock.gate")


class AcknowledgedEnd:
    """The last segment of which rows were acknowledged, and where these end; 0 and 0 before there are any.

    Two slots take turns, so that one that is torn or damaged leaves the other.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with durable.writing(path, Purpose.GATE_ACKNOWLEDGED):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        self._turn, self.segment, self.end = max(self._read(0), self._read(1))
        self.unsynced = False

    def note(self, segment: int, end: int) -> None:
        """Remember that everything before this place was acknowledged; it is not synced.

        An error is no reason to stop: what is remembered then is less than what holds.
        """
        try:
            self._write(segment, end)
        except OSError as error:
            _LOGGER.warning("how far the log was acknowledged cannot be noted: %s", error)

    def forget(self, segment: int) -> None:
        """The file of this segment is about to be deleted: expect nothing of it. Durable."""
        if segment == self.segment and self.end:
            self._write(segment, 0)
            self._write(segment, 0)
            self.unsynced = True
            self.sync()

    def sync(self) -> None:
        """Make it durable."""
        if self.unsynced:
            durable.sync_handle(self._file, self._path, Purpose.GATE_ACKNOWLEDGED)
            self.unsynced = False

    def close(self) -> None:
        """Make it durable and close the file."""
        with suppress(OSError):
            self.sync()
        os.close(self._file)

    def _write(self, segment: int, end: int) -> None:
        self._turn += 1
        place = _PLACE.pack(self._turn, segment, end)
        with durable.writing(self._path, Purpose.GATE_ACKNOWLEDGED):
            os.pwrite(self._file, place + _SUM.pack(checksum(place)), self._turn % 2 * _SLOT)
        self.unsynced = True
        self.segment, self.end = segment, end

    def _read(self, slot: int) -> tuple[int, int, int]:
        content = os.pread(self._file, _PLACE.size + _SUM.size, slot * _SLOT)
        place = content[: _PLACE.size]
        if len(content) < _PLACE.size + _SUM.size or _SUM.pack(checksum(place)) != content[_PLACE.size :]:
            return (0, 0, 0)
        turn, segment, end = _PLACE.unpack(place)
        return (turn, segment, end)
