"""The checkpoint of a streaming query of Spark's: made durable, known by digests, and set back.

Spark writes what it plans for a batch ahead to `offsets/N` and asks its sources for the same again when it
runs the batch again; a source of files has its own list beside it, `sources/0/N`. Spark syncs neither. After
a loss of power it could plan the batch with other rows, and everything that Penstock has of the epoch would
speak of the old ones. So both are synced before an epoch is planned with the batch, and its offset has the
digest.

Of two drivers that plan one batch at the same time, Spark's managers of checkpoint files let the later one
win on a local disk: each looks for the name first and renames afterwards, in a way that replaces. (On HDFS a
rename refuses.) The digest finds that as well.
"""

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from penstock.durable import Purpose
from penstock.errors import DamagedCheckpoint
from penstock.state.storage import Location

__all__ = ["SparkOffsets"]

# The version of the format, and a line with the time of planning and Spark's settings.
_HEADER_LINES = 2
_NO_OFFSET = "-"
_METADATA = "metadata"
_threads = ThreadPoolExecutor(8, thread_name_prefix="penstock-sync")


@dataclass
class SparkOffsets:
    """The folder that a streaming query has as its checkpoint."""

    folder: Location
    _synced: set[str] = field(default_factory=set)

    def settle(self, batch: int) -> str:
        """Make the offsets of a batch durable and return their digest."""
        new = self._new("offsets", str(batch))
        for source in (self.folder / "sources").names():
            new += self._new(f"sources/{source}")
        # Together they wait for one or two writes of the disk's journal, one by one for six.
        list(_threads.map(lambda sync: sync(), new))
        return self.digest(batch)

    def restore_metadata(self) -> None:
        """Write Spark's file of metadata anew if a loss of power has taken or cut it.

        Spark never syncs it, and refuses offsets without it. All that it has is an id of the streaming query,
        for people and listeners; any id will do.
        """
        if not (self.folder / "offsets").names():
            return
        known = self.folder.has(_METADATA) and _object(self.folder.read(_METADATA).decode(errors="replace"))
        if known and known.get("id"):
            return
        # Hadoop would compare the new bytes with the checksum of the old ones.
        self.folder.delete(f".{_METADATA}.crc", Purpose.OFFSETS)
        self.folder.write(_METADATA, json.dumps({"id": str(uuid4())}).encode(), Purpose.OFFSETS)

    def set_back(self, last: int, aside: Location) -> None:
        """Move what Spark has of later batches to another folder, so that it plans them anew.

        A source of files may not be set back if the list of the last batch is gone: it would take files for
        new that it has read.
        """
        lists = self._lists(last)
        for part in ("offsets", "commits"):
            self._move(part, last, aside)
        for part, at in lists.items():
            self._move(part, at, aside)

    def digest(self, batch: int) -> str:
        """The digest of what a batch reads, equal however often Spark plans the same offsets."""
        found = hashlib.blake2b(digest_size=16)
        for number, offset in enumerate(self.lines(batch)):
            found.update(f"{offset}\n".encode() + self._listed(number, offset))
        return found.hexdigest()

    def lines(self, batch: int) -> list[str]:
        """The offset of each source after a batch."""
        place = self.folder / "offsets"
        if not place.has(str(batch)):
            raise DamagedCheckpoint(
                f"{place.uri}/{batch}, Spark's offsets of batch {batch}, is missing; restore the whole "
                "checkpoint from one backup, or use a new one"
            )
        return place.read(str(batch)).decode().splitlines()[_HEADER_LINES:]

    def check(self, batch: int, expected: str) -> None:
        """Refuse to go on if an epoch was planned with other offsets."""
        found = self.digest(batch)
        if found != expected:
            raise DamagedCheckpoint(
                f"{self.folder.uri}/offsets/{batch} has other offsets of batch {batch} than its epoch was "
                f"made from (digest {found}, expected {expected}): going on would lose or repeat rows; "
                "restore the whole checkpoint from one backup, or go back with start(from_epoch=…) to an "
                "earlier epoch"
            )

    def _lists(self, last: int) -> dict[str, int]:
        """The folders in which sources of files list them, each with the last list that a batch read."""
        lines = self.lines(last) if last >= 0 else []
        found = {}
        for name in (self.folder / "sources").names():
            folder = self.folder / "sources" / name
            at = _list_of(lines[int(name)]) if name.isdecimal() and int(name) < len(lines) else None
            if at is not None and (folder.has(f"{at}") or folder.has(f"{at}.compact")):
                found[f"sources/{name}"] = at
            elif last < 0:
                found[f"sources/{name}"] = -1
        return found

    def _move(self, part: str, last: int, aside: Location) -> None:
        """Move the records after a number, newest first."""
        numbered = {name: name.removesuffix(".compact") for name in (self.folder / part).names()}
        later = [name for name, number in numbered.items() if number.isdecimal() and int(number) > last]
        if not later:
            return
        target = aside / part
        target.make(Purpose.GO_BACK)
        above = Location(self.folder.uri.rsplit("/", 1)[0])
        inner = [each.uri.removeprefix(above.uri).lstrip("/") for each in (self.folder / part, target)]
        for name in sorted(later, key=lambda name: -int(numbered[name])):
            # Hadoop keeps a checksum beside each file of Spark's.
            for each in (name, f".{name}.crc"):
                if (self.folder / part).has(each):
                    above.move(f"{inner[0]}/{each}", f"{inner[1]}/{each}", Purpose.GO_BACK)
        target.sync_names(Purpose.GO_BACK)
        (self.folder / part).sync_names(Purpose.GO_BACK)

    def _listed(self, number: int, offset: str) -> bytes:
        """What a source of files lists for an offset; its number alone does not say which files."""
        at, folder = _list_of(offset), self.folder / "sources" / str(number)
        for name in () if at is None else (f"{at}", f"{at}.compact"):
            if folder.has(name):
                return folder.read(name)
        return b""

    def _new(self, place: str, only: str | None = None) -> list[Callable[[], None]]:
        """Syncs of what is new in a folder of Spark's, with the checksums that Hadoop keeps beside files."""
        folder = self.folder / place
        if not folder.local:
            return []
        names = [only, f".{only}.crc"] if only else folder.names()
        new = [name for name in names if f"{place}/{name}" not in self._synced and folder.has(name)]
        self._synced |= {f"{place}/{name}" for name in new}
        found: list[Callable[[], None]] = [partial(folder.sync, name, Purpose.OFFSETS) for name in new]
        if new:
            found.append(partial(folder.sync_names, Purpose.OFFSETS))
        # Spark made the folders; their names must last too, up to that of its part in the checkpoint.
        for depth in range(1, place.count("/") + 3) if f"{place}/" not in self._synced else ():
            above = Location(folder.uri.rsplit("/", depth)[0])
            found.append(partial(above.sync_names, Purpose.OFFSETS))
        self._synced.add(f"{place}/")
        return found


def _list_of(offset: str) -> int | None:
    """The number of the list that an offset of Spark's source of files names."""
    found = _object(offset).get("logOffset")
    return found if isinstance(found, int) else None


def _object(offset: str) -> dict[str, Any]:
    """The offset of a source as an object; empty if the source has a format of its own, or no offset yet."""
    try:
        value = json.loads(offset) if offset != _NO_OFFSET else None
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
