"""Files of a run, on the filesystem that the location names.

All state and output passes through here: a local path, or any URI that `pyarrow.fs` understands
(s3, gs, abfs, hdfs). A location is a plain value that travels to the workers; each opens its own
connection. On a local disk, files are synced before they count as written, and memory-mapped for reads.

An object store has no rename: `write` is one upload, which becomes visible as a whole when it ends, `create`
is an upload on the condition that nothing is there, and `move` copies and deletes.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from penstock import durable
from penstock.durable import Purpose
from penstock.errors import BadPath
from penstock.extras import extra

__all__ = ["Location"]


@dataclass(frozen=True)
class Location:
    """A folder, named by a local path or a URI."""

    uri: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> "Location":
        """The folder that a user named; local paths become absolute."""
        text = os.fspath(path)
        if text.startswith("s3a://"):  # Hadoop's name for the same place
            text = f"s3://{text.removeprefix('s3a://')}"
        return cls(text if "://" in text else str(Path(text).absolute()))

    def __truediv__(self, name: str) -> "Location":
        return Location(f"{self.uri.rstrip('/')}/{name}")

    @property
    def local(self) -> bool:
        """Whether it is on this machine's own filesystem."""
        return isinstance(_open(self.uri)[0], fs.LocalFileSystem)

    @property
    def for_spark(self) -> str:
        """The URI under which Spark finds it: Hadoop's name for S3 is s3a."""
        return f"s3a://{self.uri.removeprefix('s3://')}" if self.uri.startswith("s3://") else self.uri

    @property
    def path(self) -> str:
        """The path within its filesystem."""
        return _open(self.uri)[1]

    @property
    def files(self) -> Any:
        """Its filesystem."""
        return _open(self.uri)[0]

    @property
    def kind(self) -> Literal["file", "folder"] | None:
        """What is there, None if nothing is."""
        found = self.files.get_file_info(self.path).type
        if found == fs.FileType.NotFound:
            return None
        return "file" if found == fs.FileType.File else "folder"

    def check_folder(self) -> None:
        """Raise `BadPath` if it cannot be a folder because a file of this machine is there, or above it."""
        if self.local:
            for each in (Path(self.path), *Path(self.path).parents):
                if each.is_file():
                    raise BadPath(f"{self.uri} cannot be a folder: {each} is a file; give another path")

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[str]:
        """The paths of the files in it and in its folders, as far as their names are wanted."""
        for info in sorted(self.files.get_file_info(fs.FileSelector(self.path)), key=lambda info: info.path):
            if wanted(info.base_name):
                if info.type == fs.FileType.File:
                    yield info.path
                else:
                    yield from (self / info.base_name).walk(wanted)

    def make(self, step: Purpose = Purpose.CHECKPOINT) -> None:
        """Create the folder and its parents, durably."""
        if self.local:
            self.check_folder()
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

    def write(
        self, name: str, data: bytes, step: Purpose, *, sure: Callable[[], None] = lambda: None
    ) -> None:
        """Write a whole file, all at once or not at all, and durably.

        `sure` is called last before the file gets its name and may refuse by raising.
        """
        if not self.local:
            sure()
            self._upload(name, data, step)
            return
        hidden = self._hidden(name, data, step)
        sure()
        self.move(hidden, name, step)
        self.sync_names(step)

    def create(
        self, name: str, data: bytes, step: Purpose, *, sure: Callable[[], None] | None = None
    ) -> None:
        """Write a whole new file durably, all at once or not at all; FileExistsError if the name is taken.

        Of several writers one succeeds. `sure` is called last before the file gets its name and may refuse by
        raising.
        """
        if not self.local:
            if sure is not None:
                sure()
            durable.reached(step)
            if not _put_if_absent(self.uri, name, data):
                raise FileExistsError(f"{self.uri}/{name}")
            return
        hidden = self._hidden(name, data, step)
        try:
            if sure is not None:
                sure()
            durable.link(f"{self.path}/{hidden}", f"{self.path}/{name}", step)
        finally:
            self.delete(hidden, step)
        self.sync_names(step)

    def _upload(self, name: str, data: bytes, step: Purpose) -> None:
        with self.output(name, step) as stream:
            stream.write(data)

    def _hidden(self, name: str, data: bytes, step: Purpose) -> str:
        """A file with the data, on disk, under a name that nothing reads."""
        hidden = f"_{name}.{uuid4().hex[:8]}"
        self._upload(hidden, data, step)
        self.sync(hidden, step)
        return hidden

    def move(self, name: str, to: str, step: Purpose) -> None:
        """Rename within the folder and replace an existing file; `sync_names` makes it last.

        An object store copies, then deletes; the new name shows the whole file or nothing.
        """
        if self.local:
            durable.rename(f"{self.path}/{name}", f"{self.path}/{to}", step)
        else:
            durable.reached(step)
            self.files.move(f"{self.path}/{name}", f"{self.path}/{to}")

    def delete(self, name: str, step: Purpose) -> None:
        """Remove a file; a missing file is not an error."""
        if self.local:
            durable.delete(f"{self.path}/{name}", step)
        elif self.has(name):
            durable.reached(step)
            self.files.delete_file(f"{self.path}/{name}")

    @contextmanager
    def output(self, name: str, step: Purpose) -> Iterator[Any]:
        """A stream to write a new file to; on a local disk the file lasts once it is synced."""
        path = f"{self.path}/{name}"
        with durable.writing(path if self.local else "", step), self.files.open_output_stream(path) as stream:
            yield stream

    def input(self, name: str) -> Any:
        """A file for random reads, memory-mapped if possible."""
        if self.local:
            return pa.memory_map(f"{self.path}/{name}")
        return self.files.open_input_file(f"{self.path}/{name}")

    def sync(self, name: str, step: Purpose) -> None:
        """Make the bytes of a written file survive a loss of power; object stores do so on closing."""
        if self.local:
            path = f"{self.path}/{name}"
            durable.sync(path, step)

    def sync_names(self, step: Purpose) -> None:
        """Make the names in the folder survive a loss of power."""
        if self.local:
            durable.sync_folder(self.path, step)


def _put_if_absent(uri: str, name: str, data: bytes) -> bool:
    """Upload an object if there is none with its name; the store itself decides between two writers."""
    with extra("s3", "obstore", f"a checkpoint in {uri}"):
        import obstore  # noqa: PLC0415 -- only object stores need it
        from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415
    try:
        obstore.put(_store(uri), name, data, mode="create")
    except AlreadyExistsError:
        return False
    return True


@lru_cache(maxsize=256)
def _store(uri: str) -> Any:
    from obstore.store import from_url  # noqa: PLC0415 -- only object stores need it

    # The variable with which tools of AWS name another server than Amazon's, as pyarrow reads it.
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    try:
        return from_url(uri, client_options={"allow_http": plain})
    except Exception as error:
        raise BadPath(
            f"{uri!r} is on no store that can create a file only if it is absent: {error}; give a local path "
            "or a URI of S3, Google Cloud Storage or Azure"
        ) from error


@lru_cache(maxsize=256)
def _open(uri: str) -> tuple[Any, str]:
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadPath(
            f"no filesystem for {uri!r}: {error}; give a local path or a URI such as s3://bucket/folder"
        ) from error
    return filesystem, path.rstrip("/")
