"""Files in a folder or under a URI: workers read Parquet and Arrow files, Spark reads the others."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.checks import flag, path_text, short, whole_number
from penstock.connect.source import Ahead, Offset, Reader, Source, SourceContext, Split
from penstock.connect.sources.columnar import Parts, arrow_parts, cut, parquet_parts
from penstock.connect.sources.file_index import FileIndex
from penstock.connect.sources.listing import File, Listing, is_pattern
from penstock.connect.sources.spark_files import SparkFiles
from penstock.errors import BadSource
from penstock.state.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BYTES_PER_EPOCH", "FilesSource", "files"]

FORMATS: Final = ("parquet", "csv", "json", "orc", "arrow")

BYTES_PER_EPOCH: Final = 2**30
"""The default of the bytes that an epoch takes: what a machine of a few GB can hold and replay."""

_MOST_FILES = 2**31 - 1
_MOST_BYTES = 2**63 - 1
# How Spark's file streams find files, which do not read them here.
_OF_STREAMS: Final = {
    "cleansource",
    "filenameonly",
    "latestfirst",
    "maxbytespertrigger",
    "maxcachedfiles",
    "maxfileage",
    "maxfilespertrigger",
    "sourcearchivedir",
}
_REBASE: Final = "spark.sql.parquet.datetimeRebaseModeInRead"
_FOOTERS_AT_ONCE: Final = 8


@dataclass(frozen=True, repr=False)
class FilesSource(Source):
    """Files under a path; with neither limit an epoch takes all available files."""

    path: str
    format: str
    files_per_epoch: int | None
    live: bool
    options: tuple[tuple[str, str], ...]
    bytes_per_epoch: int | None = None

    @property
    def bounded(self) -> bool:
        """True unless the source also reads files that appear later."""
        return not self.live

    @property
    def whole_folder(self) -> str | None:
        """Its path, unless that is a pattern."""
        return None if is_pattern(self.path) else self.path

    def open(self, context: SourceContext) -> "FilesReader":
        """Look at what is there, and say at once what would otherwise show as a run without tuples."""
        said = f"path {self.path!r} of stream {context.name!r}"
        pattern = is_pattern(self.path)
        if not pattern:
            self._check_folder(said)
        reader = FilesReader(self, context)
        if not reader.found:
            missing = "matches no file" if pattern else "has no file"
            if not self.live:
                raise BadSource(f"{said} {missing}; correct it, or give live=True to wait for files")
            context.warn(f"{said} {missing} yet")
        elif reader.spark.by_header:
            reader.spark.ddl(reader.found[0])  # raises if it lacks a column
        return reader

    def limited(self, files: Sequence[File]) -> int:
        """How many of the first files an epoch takes."""
        if self.files_per_epoch is not None:
            return min(self.files_per_epoch, len(files))
        held = 0
        for number, each in enumerate(files):
            held += each.size
            if self.bytes_per_epoch is not None and held > self.bytes_per_epoch:
                return max(1, number)
        return len(files)

    def _check_folder(self, said: str) -> None:
        kind = Location.of(self.path).kind
        if kind is None:
            raise BadSource(f"{said} does not exist; create or correct it")
        if kind == "file":
            folder, _, name = self.path.rpartition("/")
            hint = f"{folder or '.'}/*{Path(name).suffix}"
            raise BadSource(f"{said} is a file; give its folder, or a pattern such as {hint!r}")

    def __repr__(self) -> str:
        given = [repr(self.path), f"format={self.format!r}"]
        given += [f"files_per_epoch={self.files_per_epoch}"] if self.files_per_epoch else []
        limited = self.files_per_epoch is None and self.bytes_per_epoch != BYTES_PER_EPOCH
        given += [f"bytes_per_epoch={self.bytes_per_epoch}"] if limited else []
        given += ["live=True"] if self.live else []
        given += [f"options={dict(self.options)}"] if self.options else []
        return f"files({', '.join(given)})"


class FilesReader(Reader):
    """The files of a run: those that wait for an epoch, and the index of those that were read."""

    def __init__(self, source: FilesSource, context: SourceContext) -> None:
        self._source, self._context = source, context
        self._listing = Listing(source.path)
        self._index = FileIndex(context.folder)
        self.found = self._listing.look()
        """The files that were there when the run started, until it asks for the first of them."""
        place, pattern = self._listing.place, is_pattern(source.path)
        self.spark = SparkFiles(
            format=source.format,
            options={name.lower(): value for name, value in source.options},
            schema=context.schema,
            place=place,
            base=None if pattern else place.path,
            stamped=source.live,
        )
        self._calendar = context.session.conf.get(_REBASE) == "CORRECTED"
        self._schema = pa.schema([each.with_nullable(True) for each in context.schema.arrow()])
        self._waiting: list[File] = []
        self._at: Offset | None = None
        self._planned: tuple[Offset, Offset, _Reading] | None = None

    def ahead(self, after: Offset) -> Ahead | None:
        """The next files, in the order of their modification time; a live source looks for new ones."""
        new = self._new(after)
        if new:
            self._waiting = sorted([*self._waiting, *new], key=lambda each: each.order)
        if not self._waiting:
            return None
        number = self._source.limited(self._waiting)
        self._at = self._index.add(after, self._waiting[:number])
        self._waiting = self._waiting[number:]
        return Ahead(self._at, whole=not self._waiting)

    def _new(self, after: Offset) -> list[File]:
        if after != self._at:
            if self._at is not None:  # gone back to an earlier offset
                self._listing, self.found = Listing(self._source.path), []
            self._waiting, self._at = [], after
        elif not self._source.live:
            return []
        # What was there when the run started belongs to its first look; a bounded source has no other.
        found, self.found = self.found, []
        if self._source.live or not found:
            found = [*found, *self._listing.look()]
        return self._index.unread(after, found)

    def splits(self, after: Offset, upto: Offset, tasks: int) -> Sequence[Split]:
        """Parts of the files that workers can read."""
        native = self._plan(after, upto).native
        return cut(native, tasks, self._listing.place, self._schema, stamped=self._source.live)

    def frames(self, session: "SparkSession", after: Offset, upto: Offset) -> "Sequence[DataFrame]":
        """The files that only Spark can read."""
        return self.spark.frames(session, self._plan(after, upto).spark)

    def _plan(self, after: Offset, upto: Offset) -> "_Reading":
        if self._planned is None or self._planned[:2] != (after, upto):
            files = self._index.between(after, upto)
            self._check(files)
            self._planned = after, upto, self._divided(files)
        return self._planned[2]

    def _check(self, files: Sequence[File]) -> None:
        """Refuse files that are gone, or not those of which the offset was made."""
        now = self._listing.now([each.path for each in files])
        wrong = [(each, there) for each, there in zip(files, now, strict=True) if each != there]
        if not wrong:
            return
        first, there = wrong[0]
        more = f" and {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
        what, restore = "is gone", "restore it"
        if there is not None:
            what = f"was written again: it has {there.size:,} bytes, {first.size:,} when it was listed"
            restore = "restore it as it was, with its modification time"
        raise BadSource(
            f"{first.path}{more} of stream {self._context.name!r} {what}; {restore}, or give the epoch up "
            "with penstock state DIR --abandon, then start again with the same checkpoint"
        )

    def _divided(self, files: Sequence[File]) -> "_Reading":
        if self._source.format not in {"parquet", "arrow"} or self._source.options:
            return _Reading((), tuple(files))
        # Of an empty file Spark reads nothing either.
        written = [each for each in files if each.size]
        if len(written) < _FOOTERS_AT_ONCE:
            parts = list(map(self._parts, written))
        else:
            with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
                parts = list(pool.map(self._parts, written))
        return _Reading(
            tuple(each for each in parts if each is not None),
            tuple(file for file, each in zip(written, parts, strict=True) if each is None),
        )

    def _parts(self, file: File) -> Parts | None:
        place = self._listing.place
        if self._source.format == "arrow":
            return arrow_parts(place, file, self._schema)
        if any(name in self._context.schema for name in self.spark.hive_columns(file)):
            return None
        return parquet_parts(place, file, self._schema, calendar=self._calendar)


@dataclass(frozen=True)
class _Reading:
    """Who reads the files of an epoch."""

    native: tuple[Parts, ...]
    spark: tuple[File, ...]


def files(  # noqa: PLR0913 -- each is one documented property of the source
    path: str | os.PathLike[str],
    format: str = "parquet",  # noqa: A002 -- Spark's own word
    *,
    files_per_epoch: int | None = None,
    bytes_per_epoch: int | None = BYTES_PER_EPOCH,
    live: bool = False,
    options: Mapping[str, str] | None = None,
) -> FilesSource:
    """Files in a directory or under a URI; with `live`, files that appear later are read too.

    An epoch takes files up to `bytes_per_epoch`, 1 GiB by default, and at least one; None takes all available
    files. `files_per_epoch` limits the number of files instead, whatever their sizes. The formats are
    parquet, arrow, orc, csv and json. `options` go to Spark's reader, such as `{"header": "true"}` for csv.
    With a header, the columns of a csv file are found by their names; columns that the stream does not have
    are skipped, and a missing one is an error. Without a header they go by position.

    >>> files("in", "CSV", files_per_epoch=5)
    files('in', format='csv', files_per_epoch=5)
    """
    kind = format.lower() if isinstance(format, str) else format
    if kind == "text":
        raise BadSource("format 'text' has no columns and so no event time; use csv or json")
    if kind not in FORMATS:
        raise BadSource(f"no format {short(format)}; the formats are {', '.join(FORMATS)}")
    if kind == "arrow" and options:
        raise BadSource(f"options={short(options)}; Arrow files have none")
    if files_per_epoch is not None:
        files_per_epoch = whole_number(
            "files_per_epoch", files_per_epoch, 1, _MOST_FILES, BadSource, hint=", or None for all"
        )
    if bytes_per_epoch is not None:
        bytes_per_epoch = whole_number(
            "bytes_per_epoch", bytes_per_epoch, 1, _MOST_BYTES, BadSource, hint=", or None for all"
        )
    return FilesSource(
        path=path_text(path, BadSource),
        format=kind,
        files_per_epoch=files_per_epoch,
        live=flag("live", live, BadSource),
        options=_options(options),
        bytes_per_epoch=None if files_per_epoch is not None else bytes_per_epoch,
    )


def _options(given: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise BadSource(f"options={short(given)}; give a dict of names and values for Spark's reader")
    for name in given:
        if name.lower() in _OF_STREAMS:
            raise BadSource(
                f"option {name!r} is of Spark's file streams, which do not read the files; leave it out, and "
                "use files_per_epoch or bytes_per_epoch for the size of an epoch"
            )
    return tuple(sorted((name, str(value)) for name, value in given.items()))
