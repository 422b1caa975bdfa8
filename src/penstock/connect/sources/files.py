"""Files in a folder or under a URI, read by Spark's file source."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import iglob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from penstock.checks import flag, path_text, short, whole_number
from penstock.connect.source import ARRIVED, CORRUPT, REASON, EpochTaken, Source, SourceContext
from penstock.connect.sources.csv_headers import CsvHeader, grouped
from penstock.errors import BadSource
from penstock.expressions.schema import quoted
from penstock.state.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BYTES_PER_EPOCH", "FilesSource", "files"]

FORMATS: Final = ("parquet", "csv", "json", "orc")

BYTES_PER_EPOCH: Final = 2**30
"""The default of the bytes that an epoch takes: what a machine of a few GB can hold and replay."""

_MOST_FILES = 2**31 - 1
_MOST_BYTES = 2**63 - 1
# Spark's own switch, with which its file streams read names that look like patterns.
_EXPANDS: Final = "__globPaths__"
# Options for whole files, which mean nothing for the text of one record.
_NOT_FOR_TEXT: Final = {"header", "enforceschema", "multiline", "linesep", "mode", "encoding", "charset"}
_LONGEST_VALUE: Final = 60


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

    def open(self, context: SourceContext) -> "DataFrame":
        """Open Spark's own file stream, after a look at what is there."""
        self._look(context)
        return self.stream(context)

    def stream(self, context: SourceContext) -> "DataFrame":
        """Spark's own file stream."""
        reader = context.session.readStream
        if self.files_per_epoch is not None:
            reader = reader.option("maxFilesPerTrigger", self.files_per_epoch)
        elif self.bytes_per_epoch is not None:
            reader = reader.option("maxBytesPerTrigger", self.bytes_per_epoch)
        return self._frame(reader, context.schema.ddl(), Location.of(self.path).for_spark)

    def took_all(self, taken: EpochTaken) -> bool:
        """Whether the epoch stayed below its limit."""
        if self.files_per_epoch is not None:
            return taken.files < self.files_per_epoch
        # Spark takes no file that would exceed the limit, so an epoch may stay below it and leave one.
        return self.bytes_per_epoch is None or taken.bytes < self.bytes_per_epoch // 2

    @property
    def whole_folder(self) -> str | None:
        """Its path, unless that is a pattern."""
        return None if self._pattern else self.path

    @property
    def reads_files(self) -> bool:
        """True for CSV with a header: Spark's stream would take columns by their places."""
        return self.format == "csv" and self._option("header").lower() == "true"

    def read(self, context: SourceContext, files: Sequence[str]) -> "DataFrame":
        """The tuples of CSV files, each with the columns where its header has them."""
        frames = []
        for ddl, group in grouped(files, context.schema, self._lowered).items():
            reader = context.session.read.option(_EXPANDS, "false")
            if not self._pattern:
                reader = reader.option("basePath", Location.of(self.path).for_spark)
            frame = self._frame(reader, ddl, [unquote(file) for file in group])
            stamped = [ARRIVED] if self.live else []
            frames.append(frame.select(*map(quoted, context.schema.names), CORRUPT, REASON, *stamped))
        return _united(frames)

    def _frame(self, reader: Any, schema: str, path: str | list[str]) -> "DataFrame":
        # Spark ignores NOT NULL in files; marking the tuples of an epoch finds nulls and sets them aside.
        reader = reader.format(self.format).options(**dict(self.options))
        if self.format not in {"csv", "json"}:
            found: DataFrame = reader.schema(schema).load(path)
            return self._stamped(found)
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
        found = reader.schema(f"{schema}, `{CORRUPT}` STRING").load(path)
        columns = [(each.name, each.dataType.simpleString()) for each in found.schema if each.name != CORRUPT]
        return self._stamped(found, f"{self._why(columns)} AS {REASON}")

    def _stamped(self, frame: "DataFrame", *more: str) -> "DataFrame":
        """With the time at which each file was last written, if the source is live: its rows came then."""
        stamps = [f"unix_micros(_metadata.file_modification_time) AS {ARRIVED}"] if self.live else []
        return frame.selectExpr("*", *more, *stamps) if more or stamps else frame

    def _why(self, columns: list[tuple[str, str]]) -> str:
        """SQL for why a record is malformed: the record is parsed again with every column as text."""
        texts = ", ".join(f"{quoted(name)} string" for name, _ in columns)
        kept = {name: value for name, value in self._lowered.items() if name not in _NOT_FOR_TEXT}
        given = ", ".join(f"'{_escaped(name)}', '{_escaped(value)}'" for name, value in kept.items())
        options = f", map({given})" if given else ""
        parsed = f"from_{self.format}(`{CORRUPT}`, '{_escaped(texts)}'{options})"
        reasons = [
            f"CASE WHEN {quoted(name)} IS NULL AND {text} IS NOT NULL THEN concat("
            f"'column {_escaped(name)}: ', {_shown(text)}, ' is not {_escaped(type_)}') END"
            for name, type_, text in ((*each, f"{parsed}.{quoted(each[0])}") for each in columns)
        ]
        otherwise = (
            f"the record is malformed: expected {len(columns)} fields" if self.format == "csv" else
            "the record is malformed: expected a JSON object on one line"
        )  # fmt: skip
        told = f"nullif(concat_ws('; ', {', '.join(reasons)}), '')"
        return f"CASE WHEN `{CORRUPT}` IS NOT NULL THEN coalesce({told}, '{otherwise}') END"

    def _look(self, context: SourceContext) -> None:
        """Say at once what would otherwise show as a run without tuples."""
        said = f"path {self.path!r} of stream {context.name!r}"
        place = Location.of(self.path)
        if not self._pattern:
            kind = place.kind
            if kind is None:
                raise BadSource(f"{said} does not exist; create or correct it")
            if kind == "file":
                folder, _, name = self.path.rpartition("/")
                hint = f"{folder or '.'}/*{Path(name).suffix}"
                raise BadSource(f"{said} is a file; give its folder, or a pattern such as {hint!r}")
        elif not place.local or "{" in self.path:
            return  # Spark alone expands these patterns
        first = next(_found(place, pattern=self._pattern), None)
        if first is None:
            missing = "matches no file" if self._pattern else "has no file"
            if not self.live:
                raise BadSource(f"{said} {missing}; correct it, or give live=True to wait for files")
            context.warn(f"{said} {missing} yet")
        elif self.reads_files and place.local:
            file = Path(first).as_uri()
            CsvHeader.of(file, self._lowered).ddl(context.schema, file)

    @property
    def _pattern(self) -> bool:
        return any(character in self.path for character in "*?[{")

    @property
    def _lowered(self) -> dict[str, str]:
        """Spark's options do not distinguish case."""
        return {name.lower(): value for name, value in self.options}

    def _option(self, name: str) -> str:
        return self._lowered.get(name, "")

    def __repr__(self) -> str:
        given = [repr(self.path), f"format={self.format!r}"]
        given += [f"files_per_epoch={self.files_per_epoch}"] if self.files_per_epoch else []
        limited = self.files_per_epoch is None and self.bytes_per_epoch != BYTES_PER_EPOCH
        given += [f"bytes_per_epoch={self.bytes_per_epoch}"] if limited else []
        given += ["live=True"] if self.live else []
        given += [f"options={dict(self.options)}"] if self.options else []
        return f"files({', '.join(given)})"


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
    files. `files_per_epoch` limits the number of files instead, whatever their sizes. `options` go to
    Spark's reader, such as `{"header": "true"}` for csv. With a header, the columns of a csv file are found
    by their names; columns that the stream does not have are skipped, and a missing one is an error. Without
    a header they go by position.

    >>> files("in", "CSV", files_per_epoch=5)
    files('in', format='csv', files_per_epoch=5)
    """
    kind = format.lower() if isinstance(format, str) else format
    if kind == "text":
        raise BadSource("format 'text' has no columns and so no event time; use csv or json")
    if kind not in FORMATS:
        raise BadSource(f"no format {short(format)}; the formats are {', '.join(FORMATS)}")
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


def _found(place: Location, *, pattern: bool) -> Iterator[str]:
    """Files that Spark would read: neither they nor a folder above them begins with a dot or underscore."""
    places = [Location.of(each) for each in sorted(iglob(place.path))] if pattern else [place]  # noqa: PTH207
    for each in places:
        if each.kind == "file":
            yield each.path
        else:
            yield from each.walk(lambda name: not name.startswith((".", "_")))


def _united(frames: "list[DataFrame]") -> "DataFrame":
    first, *others = frames
    for each in others:
        first = first.unionAll(each)
    return first


def _shown(text: str) -> str:
    """SQL for a value in quotes, shortened if it is long."""
    longer = f"concat('\\'', left({text}, {_LONGEST_VALUE}), '…\\'')"
    return f"if(length({text}) > {_LONGEST_VALUE}, {longer}, concat('\\'', {text}, '\\''))"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _options(given: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise BadSource(f"options={short(given)}; give a dict of names and values for Spark's reader")
    return tuple(sorted((name, str(value)) for name, value in given.items()))
