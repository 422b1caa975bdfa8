"""The files that a source has read, in order, so that an offset is a number.

Entries are appended, never changed. Every run begins a list of its own, `ID.jsonl`, whose first line names
the offset after which it begins, in another list or in none; an offset is a list and a number of entries. So
an offset means the same files for ever, whatever a driver that lost the checkpoint still appends to its list,
and going back to an earlier epoch needs nothing but its offset.

    {"after":{}}                                                     3f2a9c01
    {"files":[["day=1/a.parquet",5120,1700000000000000000]]}         91b60c2d

A line ends with its checksum. An addition is one line, on disk before an epoch is planned with it; a line
that a kill has torn is in no offset. On an object store, which cannot append, an addition is an object.
"""

import json
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock import durable
from penstock.connect.source import Offset
from penstock.connect.sources.listing import File
from penstock.durable import Purpose
from penstock.errors import DamagedCheckpoint
from penstock.state.storage import Location

__all__ = ["FileIndex"]

_FILES, _LIST, _AFTER = "files", "list", "after"


class FileIndex:
    """The entries up to the last offset that was asked for or made; about 200 bytes of memory for each."""

    def __init__(self, folder: Location) -> None:
        self._folder = folder
        self._own: str | None = None
        self._at: Offset = {}
        self._paths: list[str] = []
        self._known: set[str] = set()
        self._sizes = array("q")
        self._changed = array("q")

    def between(self, after: Offset, upto: Offset) -> list[File]:
        """The entries from one offset to another."""
        here = upto.get(_LIST) == self._at.get(_LIST) and _count(upto) <= len(self._paths)
        if not here:
            self._load(upto)
        part = slice(_count(after), _count(upto))
        return list(map(File, self._paths[part], self._sizes[part], self._changed[part]))

    def unread(self, after: Offset, files: Sequence[File]) -> list[File]:
        """Those of some files that are not among the entries up to an offset."""
        if after != self._at:
            self._load(after)
        return [each for each in files if each.path not in self._known]

    def add(self, after: Offset, files: Sequence[File]) -> Offset:
        """Append entries after an offset, durably; the offset after them."""
        if after != self._at:
            self._load(after)
        # A list whose end may be torn because an addition failed is not continued.
        own, self._own = self._own, None
        line = _line({_FILES: [[each.path, each.size, each.changed] for each in files]})
        if own is None:
            own = uuid4().hex[:16]
            line = _line({_AFTER: dict(after)}) + line
        self._append(own, _count(after), line.encode())
        for each in files:
            self._take(each.path, each.size, each.changed)
        self._own, self._at = own, {_FILES: len(self._paths), _LIST: own}
        return self._at

    def _append(self, name: str, first: int, data: bytes) -> None:
        self._folder.make(Purpose.SOURCE)
        if not self._folder.local:
            self._folder.write(f"{name}-{first:012d}.jsonl", data, Purpose.SOURCE)
            return
        path = Path(self._folder.path, f"{name}.jsonl")
        new = not path.exists()
        with durable.writing(path, Purpose.SOURCE), path.open("ab") as file:
            file.write(data)
        durable.sync(path, Purpose.SOURCE)
        if new:
            self._folder.sync_names(Purpose.SOURCE)

    def _load(self, offset: Offset) -> None:
        """Read the entries up to an offset; a list that this run goes on with may not have more."""
        self._own, self._at = None, dict(offset)
        self._paths, self._known, self._sizes, self._changed = [], set(), array("q"), array("q")
        names = self._folder.names()
        steps: list[tuple[int, list[Any]]] = []
        at: Offset = offset
        while at:
            records = self._records(at[_LIST], names)
            if not records or _AFTER not in records[0]:
                raise self._damaged(at, "is missing, truncated or altered")
            steps.append((_count(at), records[1:]))
            at = records[0][_AFTER]
        for count, records in reversed(steps):
            for path, size, changed in (entry for record in records for entry in record[_FILES]):
                if len(self._paths) < count:
                    self._take(path, size, changed)
            if len(self._paths) < count:
                raise self._damaged(offset, f"has {len(self._paths):,} of {count:,} files")

    def _take(self, path: str, size: int, changed: int) -> None:
        self._paths.append(path)
        self._known.add(path)
        self._sizes.append(size)
        self._changed.append(changed)

    def _records(self, name: str, names: Sequence[str]) -> list[Any]:
        """The records of a list up to the first line that a kill has torn."""
        parts = [each for each in names if each.startswith(name) and each.endswith(".jsonl")]
        found = []
        for line in (line for each in parts for line in self._folder.read(each).splitlines()):
            body, _, checksum = line.rpartition(b"\t")
            if checksum != f"{zlib.crc32(body):08x}".encode():
                break
            found.append(json.loads(body))
        return found

    def _damaged(self, offset: Offset, what: str) -> DamagedCheckpoint:
        return DamagedCheckpoint(
            f"{self._folder.uri}/{offset.get(_LIST)}.jsonl, the list of files that were read, {what}; "
            "restore the whole checkpoint from one backup, or use a new one"
        )


def _count(offset: Offset) -> int:
    return int(offset.get(_FILES, 0))


def _line(record: Any) -> str:
    body = json.dumps(record, separators=(",", ":"))
    return f"{body}\t{zlib.crc32(body.encode()):08x}\n"
