"""What a gate remembers besides the rows: schemas of inlets, metadata of streams, readers, what was deleted.

A file of JSON lines, each with a checksum. A line says how much of the file was synced before it; so a
broken line is damage if a later one says that it had been durable, or if it is complete, and otherwise the
torn end of the file. When the file has become several times as long as what it says, it is written anew under
another name, synced and renamed: so its size, and the time of a start, are bounded by the streams, inlets and
readers of the gate.
"""

import errno
import json
import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from penstock import durable
from penstock.durable import Purpose
from penstock.errors import DamagedLog, TooLarge, UnknownInlet, WrongSchema
from penstock.ingest.log.record import checksum
from penstock.ingest.wire.protocol import inlet_of

__all__ = ["Catalogue", "check_schema", "storable_schema"]

_SPARE: Final = 64 << 10
"""A file is never written anew below this size."""
_TIMES: Final = 4
"""A file is written anew when it is this many times as long as what it says."""
_MOST_SCHEMA: Final = 1 << 20
_STREAMS_IN_LINE: Final = 1000


class Catalogue:
    """The schema of every inlet, the metadata and deleted rows of every stream, the readers' names."""

    def __init__(self, path: Path) -> None:
        self.schemas: dict[str, pa.Schema] = {}
        self.declared: dict[str, dict[str, Any]] = {}
        self.deleted: dict[str, int] = {}
        """Every reader was done with the rows of a stream below this when some were deleted."""
        self.next: dict[str, int] = {}
        """The next number of a stream, where rows after the deleted ones were given and are lost."""
        self.producers: dict[str, int] = {}
        self.given_up: dict[str, list[tuple[int, int]]] = {}
        self.log = ""
        """The name of this log, made once: a folder that was emptied has another."""
        self.readers: dict[tuple[str, str], str | None] = {}
        """The readers (inlet, name), each with what people call its run."""
        self.dropped: dict[str, int] = {}
        """Rows below this of a stream went with its inlet, though files may still have them."""
        self.term = ""
        """The newest controller that this gate has followed."""
        self.gone: set[int] = set()
        """Segments whose rows were deleted; their files may still be there."""
        self.last_gone = 0
        """The highest number of a deleted segment: numbers are never used again."""
        self.accepted: set[tuple[int, int]] = set()
        """Places (segment, byte) of damaged rows whose loss was accepted."""
        self._path = path
        self._lock = threading.Lock()
        self._synced = 0
        self.size = 0
        """Bytes of the file."""
        for line, end in _lines(path):
            self._apply(line)
            self.size = end
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
        durable.cut(self._file, path, self.size, Purpose.CATALOGUE)
        durable.sync_folder(path.parent, Purpose.CATALOGUE)
        self._live = len(self._whole())
        self._unsynced, self._unsound = True, False
        if not self.log:
            self._write({"log": uuid4().hex})
            self.sync()

    def schema(self, inlet: str) -> pa.Schema:
        """The schema of an inlet: the first one pushed holds, and every later push must equal it."""
        if inlet not in self.schemas:
            raise UnknownInlet(
                f"no inlet {inlet!r} here; the inlets are: {', '.join(sorted(self.schemas)) or 'none yet'}"
            )
        return self.schemas[inlet]

    def add_schema(self, inlet: str, schema: pa.Schema) -> None:
        """Fix the schema of an inlet."""
        self._write({"inlet": inlet, "schema": b64encode(schema.serialize()).decode()})

    def declare(self, stream: str, metadata: dict[str, Any]) -> None:
        """Remember the metadata of a stream."""
        self._write({"stream": stream, "declared": metadata})

    def add_producers(self, producers: Mapping[str, int]) -> None:
        """Remember the newest producers of streams: rows of older ones are refused."""
        self._write({"producers": dict(producers)})

    def give_up(self, stream: str, low: int, high: int) -> None:
        """Remember that rows are lost and that readers go on without them."""
        self._write({"stream": stream, "given up": [low, high]})

    def add_reader(self, inlet: str, reader: str, run: str | None = None) -> None:
        """Remember a reader: nothing of the inlet is deleted before it has committed."""
        self._write({"inlet": inlet, "reader": reader} | ({} if run is None else {"run": run}))

    def drop_inlet(self, inlet: str, nexts: Mapping[str, int]) -> None:
        """Forget an inlet, its readers and the rows of its streams up to their next numbers."""
        self._write({"dropped": inlet, "upto": dict(nexts)})

    def follow(self, term: str) -> None:
        """Remember the newest controller: orders of earlier ones are refused."""
        self._write({"term": term})

    def remove_reader(self, inlet: str, reader: str) -> None:
        """Stop waiting for this reader."""
        self._write({"inlet": inlet, "removed": reader})

    def delete(
        self, highs: dict[str, int], segments: Iterable[int] = (), nexts: Mapping[str, int] | None = None
    ) -> None:
        """Remember up to where rows of streams are deleted, with which segments, and their next numbers.

        So they are not taken again, and files that are still there at the next start are deleted then.
        """
        further = {stream: number for stream, number in (nexts or {}).items() if number > highs[stream]}
        self._write({"deleted": highs, "next": further, "gone": sorted(segments)})

    def unlinked(self, segments: Iterable[int]) -> None:
        """The files of these segments are gone for good: the next start has nothing to do for them."""
        with self._lock:
            self.gone -= set(segments)

    def accept(self, places: Iterable[tuple[int, int]]) -> None:
        """Remember that the loss of the damaged rows at these places was accepted."""
        self._write({"accepted": [list(each) for each in places]})

    def sync(self) -> None:
        """Return when all of it is durable; free if nothing was added."""
        with self._lock:
            if self._unsound or self.size > _SPARE + _TIMES * self._live:
                self._compact()
            if self._unsynced:
                self._sync()

    def close(self) -> None:
        """Make it durable and close the file."""
        try:
            self.sync()
        finally:
            os.close(self._file)

    def _sync(self) -> None:
        # After a failed sync nobody knows what is on disk; only a new file is sure to hold all of it.
        self._unsound = True
        durable.sync_handle(self._file, self._path, Purpose.CATALOGUE)
        self._unsynced = self._unsound = False
        self._synced = self.size

    def _write(self, line: dict[str, Any]) -> None:
        """Add a line and act on it; on a full disk neither."""
        with self._lock:
            whole = _encoded(line, self._synced)
            # A short write leaves a torn line, over which the next one is written.
            _write_at(self._file, self._path, self.size, whole)
            self.size += len(whole)
            self._unsynced = True
            self._apply(line)

    def _compact(self) -> None:
        """Write what holds to a new file and put it in the place of the old one."""
        content = self._whole()
        fresh = self._path.with_name(self._path.name + ".new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        try:
            _write_at(file, fresh, 0, content)
            durable.sync_handle(file, fresh, Purpose.CATALOGUE)
            durable.rename(fresh, self._path, Purpose.CATALOGUE)
        except BaseException:
            os.close(file)
            raise
        os.close(self._file)
        self._file, self.size, self._live = file, len(content), len(content)
        # Until the folder is synced the old file could come back, and lines that are only in the new one go.
        self._unsound = True
        durable.sync_folder(self._path.parent, Purpose.CATALOGUE)
        self._unsynced = self._unsound = False
        self._synced = self.size

    def _whole(self) -> bytes:
        return b"".join(_encoded(line, 0) for line in self._state())

    def _state(self) -> Iterator[dict[str, Any]]:
        """What holds, as lines."""
        yield {"log": self.log}
        if self.term:
            yield {"term": self.term}
        dropped = iter(self.dropped.items())
        while some := dict(islice(dropped, _STREAMS_IN_LINE)):
            yield {"dropped": "", "upto": some}
        for inlet, schema in self.schemas.items():
            yield {"inlet": inlet, "schema": b64encode(schema.serialize()).decode()}
        for stream, metadata in self.declared.items():
            yield {"stream": stream, "declared": metadata}
        for (inlet, reader), run in sorted(self.readers.items()):
            yield {"inlet": inlet, "reader": reader} | ({} if run is None else {"run": run})
        deleted = iter(self.deleted.items())
        while highs := dict(islice(deleted, _STREAMS_IN_LINE)):
            further = {stream: self.next[stream] for stream in highs if stream in self.next}
            yield {"deleted": highs, "next": further, "gone": []}
        producers = iter(self.producers.items())
        while some := dict(islice(producers, _STREAMS_IN_LINE)):
            yield {"producers": some}
        for stream, ranges in self.given_up.items():
            for low, high in ranges:
                yield {"stream": stream, "given up": [low, high]}
        yield {"deleted": {}, "gone": sorted(self.gone), "last": self.last_gone}
        yield {"accepted": [list(each) for each in sorted(self.accepted)]}

    def _apply(self, line: dict[str, Any]) -> None:
        match line:
            case {"inlet": inlet, "schema": text}:
                self.schemas[inlet] = pa.ipc.read_schema(pa.py_buffer(b64decode(text)))
            case {"stream": stream, "declared": metadata}:
                self.declared[stream] = metadata
            case {"inlet": inlet, "reader": reader}:
                self.readers[inlet, reader] = line.get("run", self.readers.get((inlet, reader)))
            case {"inlet": inlet, "removed": reader}:
                self.readers.pop((inlet, reader), None)
            case {"deleted": highs}:
                for stream, high in highs.items():
                    self.deleted[stream] = max(high, self.deleted.get(stream, 0))
                for stream, number in line.get("next", {}).items():
                    self.next[stream] = max(number, self.next.get(stream, 0))
                gone = set(line.get("gone", ()))
                self.gone |= gone
                self.last_gone = max(self.last_gone, line.get("last", 0), *gone, 0)
                self.accepted = {each for each in self.accepted if each[0] not in gone}
            case {"accepted": places}:
                self.accepted |= {(segment, offset) for segment, offset in places}
            case _:
                self._apply_identity(line)

    def _apply_identity(self, line: dict[str, Any]) -> None:
        match line:
            case {"term": term}:
                self.term = term
            case {"log": name}:
                self.log = name
            case {"stream": stream, "given up": [low, high]}:
                self.given_up.setdefault(stream, []).append((low, high))
            case {"producers": producers}:
                for stream, producer in producers.items():
                    self.producers[stream] = max(producer, self.producers.get(stream, 0))
            case {"dropped": inlet, "upto": nexts}:
                self._apply_drop(inlet, nexts)

    def _apply_drop(self, inlet: str, nexts: Mapping[str, int]) -> None:
        self.dropped |= nexts
        self.deleted |= nexts
        self.schemas.pop(inlet, None)
        self.readers = {each: run for each, run in self.readers.items() if each[0] != inlet}
        for known in (self.declared, self.given_up):
            for stream in [each for each in known if inlet_of(each) == inlet]:
                del known[stream]


def _write_at(file: int, path: Path, at: int, content: bytes) -> None:
    with durable.writing(path, Purpose.CATALOGUE):
        if os.pwrite(file, content, at) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _encoded(line: dict[str, Any], synced: int) -> bytes:
    text = json.dumps({**line, "synced": synced}, separators=(",", ":")).encode()
    return b"%016x %s\n" % (checksum(text), text)


def _lines(path: Path) -> list[tuple[dict[str, Any], int]]:
    """Every valid line with the position of its end, up to a torn end of the file."""
    lines: list[tuple[dict[str, Any], int]] = []
    at, synced, broken = 0, 0, None
    # The end of the text is a line only if a newline is missing.
    parts = path.read_bytes().split(b"\n") if path.exists() else [b""]
    whole = [each + b"\n" for each in parts[:-1]] + [each for each in parts[-1:] if each]
    for number, each in enumerate(whole):
        line = _decoded(each)
        if line is None:
            broken = (number, at, each) if broken is None else broken
        else:
            synced = max(synced, line.get("synced", 0))
            if broken is None:
                lines.append((line, at + len(each)))
        at += len(each)
    if broken is not None and (broken[1] < synced or not _torn(broken[2])):
        raise DamagedLog(
            f"{path.name}: line {broken[0] + 1} is not what was written; restore the file from a copy, or "
            "delete it: the gate then knows neither schemas nor readers nor what it deleted, and rows that "
            "clients send again are stored again"
        )
    return lines


def _decoded(whole: bytes) -> dict[str, Any] | None:
    total, _, text = whole.rstrip(b"\n").partition(b" ")
    if not whole.endswith(b"\n") or total != b"%016x" % checksum(text):
        return None
    line: dict[str, Any] = json.loads(text)
    return line


def _torn(line: bytes) -> bool:
    """Whether a broken line looks like a write that did not finish: its end is missing, or a part is zeros.

    A line that is there from its first to its last byte was damaged later, also if that is the newline.
    """
    if not line.endswith(b"\n"):
        return _decoded(line[:-1] + b"\n") is None
    return bytes(16) in line


def check_schema(stream: str, schema: pa.Schema, known: pa.Schema) -> None:
    """Raise WrongSchema unless a stream has the schema of its inlet."""
    if not known.equals(schema):
        raise WrongSchema(
            f"stream {stream!r} has the schema ({_text(schema)}); its inlet {inlet_of(stream)!r} has "
            f"({_text(known)}): send that, or choose another inlet"
        )


def storable_schema(stream: str, schema: pa.Schema) -> pa.Schema:
    """The schema that the first stream of an inlet brings, as the catalogue keeps it."""
    for field in schema:
        if _has_dictionary(field.type):
            raise WrongSchema(
                f"stream {stream!r}: column {field.name!r} is {field.type}; dictionaries are not "
                "stored: send the plain values"
            )
    plain = schema.remove_metadata()
    size = plain.serialize().size
    if size > _MOST_SCHEMA:
        raise TooLarge(
            f"stream {stream!r}: a schema of {len(plain)} columns in {size:,} bytes; at most "
            f"{_MOST_SCHEMA:,} are stored: send fewer columns or shorter names"
        )
    return plain


def _has_dictionary(kind: pa.DataType) -> bool:
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return pa.types.is_dictionary(kind) or any(map(_has_dictionary, inner))


def _text(schema: pa.Schema) -> str:
    return ", ".join(f"{each.name} {each.type}{'' if each.nullable else ' not null'}" for each in schema)
