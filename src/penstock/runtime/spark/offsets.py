"""The offsets that Structured Streaming plans for an epoch: made durable, and known by a digest.

Spark writes them ahead to `spark/offsets/N` and asks its sources for the same ones when it runs the epoch
again; a source of files has its own list beside them, `spark/sources/0/N`. Spark syncs neither. After a loss
of power it could plan the epoch again with other rows, and everything that Penstock has of the epoch would
speak of the old ones. So both are synced before the plan of the epoch is written, and plan and manifest have
the digest.

A source may also say something of itself in its offset, which a replay then knows as well. Only `ps.gates`
does: a JSON object with the name of its `stream` and the offsets of its inlet, which have the promises of
clients.

Of two drivers that plan one epoch at the same time, Spark's managers of checkpoint files let the later one
win on a local disk: each looks for the name first and renames afterwards, in a way that replaces. (On HDFS a
rename refuses.) The digest finds that as well: what the last manifest says must be what Spark begins from.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from penstock.durable import Purpose
from penstock.errors import DamagedCheckpoint
from penstock.state.storage import Location

__all__ = ["SourceNote", "SparkOffsets", "log_offset"]

# The version of the format, and a line with the time of planning and Spark's settings.
_HEADER_LINES = 2
_NO_OFFSET = "-"
_METADATA = "metadata"
_SHOWN = 3
_threads = ThreadPoolExecutor(8, thread_name_prefix="penstock-sync")


@dataclass(frozen=True)
class SourceNote:
    """Streams that a source expects and has had no tuple of, and gates of it that did not answer.

    `promised` has the event times below which streams promised to have no more tuples, by the values of the
    column `column`, if it has one. `least` is the same for the whole source: the least promise if every
    stream, also of those expected, has made one.
    `left` is the number of tuples that it had and did not give; the note is the same without it.
    """

    waiting: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    promised: Mapping[str, int] = field(default_factory=dict)
    least: int | None = None
    column: str | None = None
    left: int = field(default=0, compare=False)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "SourceNote":
        """From the offset of a source."""
        waiting, away = tuple(said.get("waiting", ())), tuple(said.get("away", ()))
        left = int(said.get("left", 0))
        if "promised" not in said:
            return cls(waiting, away, left=left)
        from penstock.ingest.reader import Offsets  # noqa: PLC0415 -- other sources need no Flight

        offsets = Offsets.unpacked(said)
        promised = offsets.promises()
        all_have = len(promised) == len(offsets.streams) and promised.keys() >= set(waiting)
        least = min(promised.values()) if all_have else None
        return cls(waiting, away, promised, least, said.get("column"), left)

    def __str__(self) -> str:
        away = f"no answer from gate {', '.join(self.away)}" if self.away else ""
        more = f" and {len(self.waiting) - _SHOWN:,} more" if len(self.waiting) > _SHOWN else ""
        names = f"no tuple yet of {', '.join(self.waiting[:_SHOWN])}{more}" if self.waiting else ""
        return "; ".join(each for each in (away, names) if each)


@dataclass
class SparkOffsets:
    """Spark's part of a checkpoint."""

    folder: Location
    _synced: set[str] = field(default_factory=set)

    def settle(self, epoch: int) -> str:
        """Make the offsets of an epoch durable and return their digest."""
        new = self._new("offsets", str(epoch))
        for source in (self.folder / "sources").names():
            new += self._new(f"sources/{source}")
        # Together they wait for one or two writes of the disk's journal, one by one for six.
        list(_threads.map(lambda sync: sync(), new))
        return self.digest(epoch)

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

    def digest(self, epoch: int) -> str:
        """The digest of what an epoch reads, equal however often Spark plans the same offsets."""
        found = hashlib.blake2b(digest_size=16)
        for number, offset in enumerate(self.lines(epoch)):
            found.update(f"{offset}\n".encode() + self._listed(number, offset))
        return found.hexdigest()

    def lines(self, epoch: int) -> list[str]:
        """The offset of each source after an epoch."""
        place = self.folder / "offsets"
        if not place.has(str(epoch)):
            raise DamagedCheckpoint(
                f"{place.uri}/{epoch}, Spark's offsets of epoch {epoch}, is missing; restore the whole "
                "checkpoint from one backup, or use a new one"
            )
        return place.read(str(epoch)).decode().splitlines()[_HEADER_LINES:]

    def notes(self, epoch: int) -> dict[str, SourceNote]:
        """What the sources of an epoch say of themselves, by the name of the stream."""
        found = {}
        for said in map(_object, self.lines(epoch)):
            if isinstance(said.get("stream"), str):
                found[said["stream"]] = SourceNote.of(said)
        return found

    def check(self, epoch: int, expected: str, record: str) -> None:
        """Refuse to go on if a record of the epoch was made from other offsets."""
        found = self.digest(epoch)
        if found != expected:
            raise DamagedCheckpoint(
                f"{self.folder.uri}/offsets/{epoch} has other offsets of epoch {epoch} than its {record} was "
                f"made from (digest {found}, expected {expected}): going on would lose or repeat rows; "
                "restore the whole checkpoint from one backup, or go back with start(from_epoch=…) to an "
                "earlier epoch"
            )

    def _listed(self, number: int, offset: str) -> bytes:
        """What a source of files lists for an offset; its number alone does not say which files."""
        at, folder = log_offset(offset), self.folder / "sources" / str(number)
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


def log_offset(offset: str) -> int | None:
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
