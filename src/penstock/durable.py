"""Files that must survive a kill or a loss of power: all syncs, renames, cuts and deletions of them.

Each operation names its `Purpose`. Together, purpose and operation are a **crash point**.
Four environment variables let tests use them; without these variables a point costs a few comparisons:

- `PENSTOCK_DIE_AT="manifest/rename"` kills the process just before that operation, `"manifest/rename:3"`
  before its third time.
- `PENSTOCK_STOP_AT` stops it there instead, as SIGSTOP does, until somebody lets it go on.
- `PENSTOCK_FAIL_AT="gate group/sync:2"` lets the second time of that operation fail with an input/output
  error instead, `"gate group/sync:2+"` the second and every later time.
- `PENSTOCK_RECORD="folder"` records every operation of this process and its children there, with the bytes
  that each file had. Tests rebuild from it every disk that a loss of power could have left.
"""

import errno
import fcntl
import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

__all__ = [
    "Operation",
    "Purpose",
    "cut",
    "delete",
    "link",
    "make_folder",
    "reached",
    "rename",
    "sync",
    "sync_folder",
    "sync_handle",
    "writing",
]


class Purpose(StrEnum):
    """What a durable operation is done for."""

    CHECKPOINT = "checkpoint"
    """The record that a checkpoint belongs to a query."""
    OWNER = "owner"
    """Who owns a checkpoint or the state of a controller, and that it has ended."""
    GO_BACK = "go back"
    """Epochs that are set aside when a run goes back to an earlier one."""
    SOURCE = "source"
    """What a source keeps in the checkpoint: its rows, or its name as a reader."""
    OFFSETS = "offsets"
    """What Spark plans to read in an epoch, made durable before its plan."""
    PLAN = "plan"
    """The plan of an epoch, before it runs."""
    ROUTER = "router"
    """A router that a plan names."""
    SEGMENT = "segment"
    """State of a channel, written by a worker."""
    MOVE = "move"
    """The rule by which channels find their rows in segments that moved."""
    RESULT = "result"
    """A file of results, written by a worker."""
    ASIDE = "set aside"
    """Late tuples and rejects."""
    DELIVERY = "delivery"
    """Results given to a sink."""
    MANIFEST = "manifest"
    """The record that an epoch happened."""
    RECORDING = "recording"
    """What the control of a run saw and decided; it may be lost."""
    COLLECT = "collect"
    """Files that no record names any more, deleted."""
    GATE_GROUP = "gate group"
    """Rows of a gate, before they are acknowledged."""
    GATE_SEGMENT = "gate segment"
    """A new file of a gate's log, or a torn end cut off."""
    GATE_INDEX = "gate index"
    """The index of a closed file of a gate's log."""
    GATE_RETENTION = "gate retention"
    """Files of a gate's log that every reader is done with."""
    GATE_ACKNOWLEDGED = "gate acknowledged"
    """How far a gate's log was acknowledged."""
    CATALOGUE = "catalogue"
    """What a gate remembers besides rows."""
    CONTROLLER = "controller"
    """What a controller remembers: gates, streams, and which gates may hold rows of them."""
    BEAT = "beat"
    """The sign of life of a controller; it may be lost."""


Operation = Literal["write", "sync", "rename", "link", "cut", "delete", "sync folder", "reach"]


@contextmanager
def writing(path: str | os.PathLike[str], step: Purpose) -> Iterator[None]:
    """Write to a file inside of this block; what is written lasts once the file is synced."""
    _before(step, "write")
    yield
    _after(step, "write", path)


def sync(path: str | os.PathLike[str], step: Purpose) -> None:
    """Return when all bytes of a file are on disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_handle(handle, path, step)
    finally:
        os.close(handle)


def sync_handle(handle: int, path: str | os.PathLike[str], step: Purpose) -> None:
    """Return when all bytes of an open file are on disk; `path` is its name for the record."""
    _before(step, "sync")
    os.fdatasync(handle)
    _after(step, "sync", path)


def sync_folder(path: str | os.PathLike[str], step: Purpose) -> None:
    """Return when the names in a folder are on disk."""
    _before(step, "sync folder")
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # A file system may treat names as data that fdatasync does not cover.
        os.fsync(handle)
    finally:
        os.close(handle)
    _after(step, "sync folder", path)


def rename(path: str | os.PathLike[str], to: str | os.PathLike[str], step: Purpose) -> None:
    """Give a file another name and replace what had it; lasts once the folder is synced."""
    _before(step, "rename")
    Path(path).replace(to)
    _after(step, "rename", path, to)


def link(path: str | os.PathLike[str], to: str | os.PathLike[str], step: Purpose) -> None:
    """Give a file a second name; raise FileExistsError if something has it."""
    _before(step, "link")
    os.link(path, to)
    _after(step, "link", path, to)


def make_folder(path: str | os.PathLike[str], step: Purpose) -> None:
    """Make a folder and its parents, each with a name that lasts."""
    missing = [each for each in (Path(path), *Path(path).parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        sync_folder(each.parent, step)


def cut(handle: int, path: str | os.PathLike[str], size: int, step: Purpose) -> None:
    """Cut an open file to `size` bytes; lasts once it is synced."""
    _before(step, "cut")
    os.ftruncate(handle, size)
    _after(step, "cut", path)


def delete(path: str | os.PathLike[str], step: Purpose) -> None:
    """Delete a file; a missing one is not an error."""
    _before(step, "delete")
    Path(path).unlink(missing_ok=True)
    _after(step, "delete", path)


def reached(step: Purpose, note: str = "") -> None:
    """A crash point without a file, such as an answer to a client; the record keeps the note as its path."""
    _before(step, "reach")
    _after(step, "reach", note)


class _Death:
    """Kills or stops this process before the n-th time of one operation."""

    def __init__(self, text: str, number: signal.Signals) -> None:
        point, _, times = text.partition(":")
        self.point, self.left, self.signal = point, int(times or 1), number
        self._lock = threading.Lock()

    def at(self, step: Purpose, operation: Operation) -> None:
        if self.point != f"{step}/{operation}":
            return
        with self._lock:
            self.left -= 1
            if self.left == 0:
                # To this thread: sent to the process, another one may take it and this one goes on.
                signal.raise_signal(self.signal)


class _Failure:
    """Fails the n-th time of one operation, or that and every later one."""

    def __init__(self, text: str) -> None:
        self.point, _, number = text.partition(":")
        self.lasts = number.endswith("+")
        self.left = int(number.rstrip("+") or 1)
        self._lock = threading.Lock()

    def at(self, step: Purpose, operation: Operation) -> None:
        if self.point != f"{step}/{operation}":
            return
        with self._lock:
            self.left -= 1
            if self.left == 0 or (self.left < 0 and self.lasts):
                raise OSError(errno.EIO, os.strerror(errno.EIO))


class _Recorder:
    """A folder with one line for each operation, and the bytes of files under the digest of their content.

    Several processes append to the same file; a lock on it keeps the order of operations.
    """

    def __init__(self, folder: Path) -> None:
        self._bytes = folder / "bytes"
        self._bytes.mkdir(parents=True, exist_ok=True)
        self._lines = folder / "operations"
        self._lock = threading.Lock()

    def add(self, step: Purpose, operation: Operation, path: str, to: str) -> None:
        line: dict[str, str] = {"step": step, "operation": operation, "path": path}
        if to:
            line["to"] = to
        with self._lock, self._lines.open("ab") as lines:
            fcntl.flock(lines, fcntl.LOCK_EX)
            if operation in {"write", "sync", "cut"}:
                line["bytes"] = self._keep(Path(path))
            lines.write(json.dumps(line).encode() + b"\n")

    def _keep(self, path: Path) -> str:
        content = path.read_bytes()
        digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        kept = self._bytes / digest
        if not kept.exists():
            kept.write_bytes(content)
        return digest


_DIES_AT: Final = "PENSTOCK_DIE_AT"
_FAILS_AT: Final = "PENSTOCK_FAIL_AT"
_RECORDS_IN: Final = "PENSTOCK_RECORD"
_STOPS_AT: Final = "PENSTOCK_STOP_AT"
_SIGNALS: Final = {_DIES_AT: signal.SIGKILL, _STOPS_AT: signal.SIGSTOP}
_deaths = [_Death(os.environ[name], number) for name, number in _SIGNALS.items() if name in os.environ]
_failure = _Failure(os.environ[_FAILS_AT]) if _FAILS_AT in os.environ else None
_record = _Recorder(Path(os.environ[_RECORDS_IN])) if _RECORDS_IN in os.environ else None


def _before(step: Purpose, operation: Operation) -> None:
    for death in _deaths:
        death.at(step, operation)
    if _failure is not None:
        _failure.at(step, operation)


def _after(
    step: Purpose, operation: Operation, path: str | os.PathLike[str], to: str | os.PathLike[str] = ""
) -> None:
    if _record is not None:
        _record.add(step, operation, os.fspath(path), os.fspath(to))
