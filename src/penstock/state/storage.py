"""Files of a run, on the filesystem that the location names.

All state and output passes through here: a local path, or any URI that `pyarrow.fs` understands
(s3, gs, abfs, hdfs). A location is a plain value that travels to the workers; each opens its own
connection. On a local disk, files are synced before they count as written, and memory-mapped for reads.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from penstock import durable
from penstock.durable import Step
from penstock.errors import BadPath

__all__ = ["Location"]


@dataclass(frozen=True)
class Location:
    """A folder, named by a local path or a URI."""

    uri: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> "Location":
        """The folder that a user named; local paths become absolute."""
        text = os.fspath(path)
        return cls(text if "://" in text else str(Path(text).absolute()))

    def __truediv__(self, name: str) -> "Location":
        return Location(f"{self.uri.rstrip('/')}/{name}")

    @property
    def local(self) -> bool:
        """Whether it is on this machine's own filesystem."""
        return isinstance(_open(self.uri)[0], fs.LocalFileSystem)

    @property
    def path(self) -> str:
        """The path within its filesystem."""
        return _open(self.uri)[1]

    @property
    def files(self) -> Any:
        """Its filesystem."""
        return _open(self.uri)[0]

    def make(self, step: Step = Step.CHECKPOINT) -> None:
        """Create the folder and its parents, durably."""
        if self.local:
            durable.make_folder(self.path, step)
        else:
            self.files.create_dir(self.path, recursive=True)

    def names(self) -> list[str]:
        """Names of the files and folders in it, sorted; none if it does not exist."""
        found = self.files.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return sorted(info.base_name for info in found)

    def has(self, name: str) -> bool:
        """Whether a file with that name exists."""
        return bool(self.files.get_file_info(f"{self.path}/{name}").type == fs.FileType.File)

    def size(self, name: str) -> int | None:
        """The size of a file in bytes, or None if it does not exist."""
        info = self.files.get_file_info(f"{self.path}/{name}")
        return info.size if info.type == fs.FileType.File else None

    def read(self, name: str) -> bytes:
        """A whole file."""
        with self.files.open_input_stream(f"{self.path}/{name}") as stream:
            return bytes(stream.read())

    def write(self, name: str, data: bytes, step: Step) -> None:
        """Write a whole file, all at once or not at all, and durably."""
        hidden = f"_{name}.{uuid4().hex[:8]}"
        with self.output(hidden, step) as stream:
            stream.write(data)
        self.sync(hidden, step)
        self.move(hidden, name, step)
        self.sync_names(step)

    def create(self, name: str, data: bytes, step: Step, *, sure: Callable[[], None] | None = None) -> None:
        """Write a whole new file durably, all at once or not at all; FileExistsError if the name is taken.

        `sure` is called last before the file gets its name and may refuse by raising.
        """
        hidden = f"_{name}.{uuid4().hex[:8]}"
        try:
            with self.output(hidden, step) as stream:
                stream.write(data)
            self.sync(hidden, step)
            if sure is not None:
                sure()
            self._name_once(hidden, name, step)
        finally:
            self.delete(hidden, step)
        self.sync_names(step)

    def _name_once(self, hidden: str, name: str, step: Step) -> None:
        if self.local:
            durable.link(f"{self.path}/{hidden}", f"{self.path}/{name}", step)
        elif self.has(name):
            raise FileExistsError(f"{self.uri}/{name}")
        else:
            self.move(hidden, name, step)

    def move(self, name: str, to: str, step: Step) -> None:
        """Rename within the folder and replace an existing file; `sync_names` makes it last."""
        if self.local:
            durable.rename(f"{self.path}/{name}", f"{self.path}/{to}", step)
        else:
            durable.reached(step)
            self.files.move(f"{self.path}/{name}", f"{self.path}/{to}")

    def delete(self, name: str, step: Step) -> None:
        """Remove a file; a missing file is not an error."""
        if self.local:
            durable.delete(f"{self.path}/{name}", step)
        elif self.has(name):
            durable.reached(step)
            self.files.delete_file(f"{self.path}/{name}")

    @contextmanager
    def output(self, name: str, step: Step) -> Iterator[Any]:
        """A stream to write a new file to; on a local disk the file lasts once it is synced."""
        path = f"{self.path}/{name}"
        with durable.writing(path if self.local else "", step), self.files.open_output_stream(path) as stream:
            yield stream

    def input(self, name: str) -> Any:
        """A file for random reads, memory-mapped if possible."""
        if self.local:
            return pa.memory_map(f"{self.path}/{name}")
        return self.files.open_input_file(f"{self.path}/{name}")

    def sync(self, name: str, step: Step) -> None:
        """Make the bytes of a written file survive a loss of power; object stores do so on closing."""
        if self.local:
            path = f"{self.path}/{name}"
            durable.sync(path, step)

    def sync_names(self, step: Step) -> None:
        """Make the names in the folder survive a loss of power."""
        if self.local:
            durable.sync_folder(self.path, step)


@lru_cache(maxsize=256)
def _open(uri: str) -> tuple[Any, str]:
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadPath(
            f"no filesystem for {uri!r}: {error}; give a local path or a URI such as s3://bucket/folder"
        ) from error
    return filesystem, path.rstrip("/")
