"""What a gate remembers besides the rows: schemas of inlets, metadata of streams, readers, what was deleted.

A file of JSON lines, each with a checksum; a torn last line is dropped.
"""

import errno
import json
import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from penstock import durable
from penstock.durable import Step
from penstock.errors import DamagedLog, UnknownInlet, WrongSchema
from penstock.ingest.log.record import checksum
from penstock.ingest.wire.protocol import inlet_of

__all__ = ["Catalogue", "check_schema", "storable_schema"]


class Catalogue:
    """The schema of every inlet, the metadata and deleted rows of every stream, the readers' names."""

    def __init__(self, path: Path) -> None:
        self.schemas: dict[str, pa.Schema] = {}
        self.declared: dict[str, dict[str, Any]] = {}
        self.deleted: dict[str, int] = {}
        self.producers: dict[str, int] = {}
        self.given_up: dict[str, list[tuple[int, int]]] = {}
        self.log = ""
        """The name of this log, made once: a folder that was emptied has another."""
        self.readers: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._size = 0
        for line, end in _lines(path):
            self._apply(line)
            self._size = end
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
        durable.cut(self._file, path, self._size, Step.CATALOGUE)
        durable.sync_folder(path.parent, Step.CATALOGUE)
        self._path = path
        self._unsynced = False
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

    def add_reader(self, inlet: str, reader: str) -> None:
        """Remember a reader: nothing of the inlet is deleted before it has committed."""
        self._write({"inlet": inlet, "reader": reader})

    def remove_reader(self, inlet: str, reader: str) -> None:
        """Stop waiting for this reader."""
        self._write({"inlet": inlet, "removed": reader})

    def delete(self, highs: dict[str, int]) -> None:
        """Remember up to where rows of these streams were deleted, so that they are not taken again."""
        self._write({"deleted": highs})

    def sync(self) -> None:
        """Return when all of it is durable; free if nothing was added."""
        with self._lock:
            if self._unsynced:
                durable.sync_handle(self._file, self._path, Step.CATALOGUE)
                self._unsynced = False

    def close(self) -> None:
        """Make it durable and close the file."""
        self.sync()
        os.close(self._file)

    def _write(self, line: dict[str, Any]) -> None:
        """Add a line and act on it; on a full disk neither."""
        text = json.dumps(line, separators=(",", ":")).encode()
        whole = b"%016x %s\n" % (checksum(text), text)
        with self._lock:
            # A short write leaves a torn line, over which the next one is written.
            with durable.writing(self._path, Step.CATALOGUE):
                if os.pwrite(self._file, whole, self._size) < len(whole):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._size += len(whole)
            self._unsynced = True
            self._apply(line)

    def _apply(self, line: dict[str, Any]) -> None:
        match line:
            case {"inlet": inlet, "schema": text}:
                self.schemas[inlet] = pa.ipc.read_schema(pa.py_buffer(b64decode(text)))
            case {"stream": stream, "declared": metadata}:
                self.declared[stream] = metadata
            case {"inlet": inlet, "reader": reader}:
                self.readers.add((inlet, reader))
            case {"inlet": inlet, "removed": reader}:
                self.readers.discard((inlet, reader))
            case {"deleted": highs}:
                for stream, high in highs.items():
                    self.deleted[stream] = max(high, self.deleted.get(stream, 0))
            case _:
                self._apply_identity(line)

    def _apply_identity(self, line: dict[str, Any]) -> None:
        match line:
            case {"log": name}:
                self.log = name
            case {"stream": stream, "given up": [low, high]}:
                self.given_up.setdefault(stream, []).append((low, high))
            case {"producers": producers}:
                for stream, producer in producers.items():
                    self.producers[stream] = max(producer, self.producers.get(stream, 0))


def _lines(path: Path) -> list[tuple[dict[str, Any], int]]:
    """Every valid line with the position of its end; a torn line can only be the last."""
    lines: list[tuple[dict[str, Any], int]] = []
    at, torn = 0, None
    for number, each in enumerate(path.read_bytes().split(b"\n") if path.exists() else []):
        total, _, text = each.partition(b" ")
        at += len(each) + 1
        if total != b"%016x" % checksum(text):
            torn = number if torn is None else torn
        elif torn is not None:
            raise DamagedLog(
                f"{path.name}: line {torn + 1} is not what was written; restore the file from a copy, or "
                "delete it and let clients declare schemas and metadata again"
            )
        else:
            lines.append((json.loads(text), at))
    return lines


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
    return schema.remove_metadata()


def _has_dictionary(kind: pa.DataType) -> bool:
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return pa.types.is_dictionary(kind) or any(map(_has_dictionary, inner))


def _text(schema: pa.Schema) -> str:
    return ", ".join(f"{each.name} {each.type}{'' if each.nullable else ' not null'}" for each in schema)
