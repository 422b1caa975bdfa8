"""The files under a path or a pattern, by Spark's rules.

A name that begins with a dot or an underscore is hidden, with all that is under it. A pattern has `*`, `?`,
`[a-c]` and `{a,b}`. A live source looks again for every epoch: a look at a folder of a local disk that has
not changed costs one `stat`, however many files it has.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import Final

from pyarrow import fs

from penstock.state.storage import Location

__all__ = ["File", "Listing", "hive_columns", "is_pattern"]

_LASTS_S: Final = 10.0
"""A folder is read again after this time, whatever its modification time says."""
_COARSEST_NS: Final = 2 * 10**9
"""A file may be added within this time after a look, and the folder keep its modification time."""
_BRACES: Final = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class File:
    """A file by its path within the filesystem; `changed` is its modification time in nanoseconds."""

    path: str
    size: int
    changed: int

    @property
    def order(self) -> tuple[int, str]:
        """Files are read in this order."""
        return self.changed, self.path


@dataclass
class _Folder:
    """The names in a folder when it was read, and whether a look may rely on them."""

    changed: int
    read_at: float
    settled: bool
    folders: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


class Listing:
    """Looks for files again and again; each file is found once."""

    def __init__(self, path: str) -> None:
        self._patterns = [_parts(each, is_pattern(path)) for each in _alternatives(Location.of(path).uri)]
        self.place = Location.of(path) if not is_pattern(path) else Location(self._patterns[0][0])
        self._files = self.place.files
        self._local = self.place.local
        self._seen: set[str] = set()
        self._known: dict[str, _Folder] = {}
        self._infos: dict[str, fs.FileInfo] = {}

    def look(self) -> list[File]:
        """The files that no earlier look has found, in the order in which they are read."""
        new = {path for root, parts in self._patterns for path in self._matching(Location(root).path, parts)}
        self._seen |= new
        found = [each for path in new if (each := self._file(path)) is not None]
        self._infos.clear()
        return sorted(found, key=lambda each: each.order)

    def now(self, paths: Iterable[str]) -> list[File | None]:
        """How files are now; None for one that is gone."""
        if self._local:
            return [_local(path) for path in paths]
        return [_remote(info) for info in self._files.get_file_info(list(paths))]

    def _matching(self, folder: str, parts: tuple[str, ...]) -> Iterator[str]:
        """New files below a folder, or those under the names in it that match the rest of a pattern."""
        known = self._names(folder)
        if not parts:
            yield from self._new(folder, known.files)
            for name in known.folders:
                yield from self._matching(f"{folder}/{name}", ())
            return
        fits = re.compile(translate(parts[0].replace("[^", "[!"))).match
        for name in known.folders:
            if fits(name):
                yield from self._matching(f"{folder}/{name}", parts[1:])
        if len(parts) == 1:
            yield from self._new(folder, [name for name in known.files if fits(name)])

    def _new(self, folder: str, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            path = f"{folder}/{name}"
            if path not in self._seen:
                yield path

    def _names(self, folder: str) -> _Folder:
        if not self._local:
            return self._asked(folder)
        known, began = self._known.get(folder), time.monotonic()
        try:
            changed = Path(folder or "/").stat().st_mtime_ns
            fresh = known is not None and known.changed == changed and known.settled
            if known is not None and fresh and began - known.read_at < _LASTS_S:
                return known
            found = _Folder(changed, began, time.time_ns() - changed > _COARSEST_NS)
            with os.scandir(folder or "/") as entries:
                for each in entries:
                    if not _hidden(each.name):
                        (found.folders if each.is_dir() else found.files).append(each.name)
        except (FileNotFoundError, NotADirectoryError):
            return _Folder(0, began, settled=False)
        self._known[folder] = found
        return found

    def _asked(self, folder: str) -> _Folder:
        found = _Folder(0, 0.0, settled=False)
        for info in self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
            if not _hidden(info.base_name):
                is_folder = info.type == fs.FileType.Directory
                (found.folders if is_folder else found.files).append(info.base_name)
                self._infos[f"{folder}/{info.base_name}"] = info
        return found

    def _file(self, path: str) -> File | None:
        return _local(path) if self._local else _remote(self._infos[path])


def is_pattern(path: str) -> bool:
    """Whether a path stands for all paths that match it."""
    return any(character in path for character in "*?[{")


def hive_columns(base: str, path: str) -> tuple[str, ...]:
    """The names that folders such as `day=1` between a folder and a file give, in lower case."""
    inner = path.removeprefix(base).split("/")[:-1]
    return tuple(part.partition("=")[0].lower() for part in inner if "=" in part)


def _parts(path: str, one_of_a_pattern: bool) -> tuple[str, tuple[str, ...]]:  # noqa: FBT001 -- private
    """The folder in front of the first part that is a pattern, and the parts from there on.

    What braces stand for may have no other pattern: then the last part is one, since it may be a file.
    """
    parts = path.rstrip("/").split("/")
    patterns = (place for place, part in enumerate(parts) if is_pattern(part))
    first = next(patterns, len(parts) - one_of_a_pattern)
    return "/".join(parts[:first]) or "/", tuple(parts[first:])


def _alternatives(pattern: str) -> list[str]:
    """The patterns that braces stand for."""
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [each for part in found[1].split(",") for each in _alternatives(f"{before}{part}{after}")]


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _local(path: str) -> File | None:
    try:
        found = os.stat(path)  # noqa: PTH116 -- of thousands of files
    except FileNotFoundError:
        return None
    return File(path, found.st_size, found.st_mtime_ns)


def _remote(info: fs.FileInfo) -> File | None:
    return File(info.path, info.size, info.mtime_ns or 0) if info.type == fs.FileType.File else None
