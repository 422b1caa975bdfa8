"""Files in a folder or under a URI, read by Spark's file source."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.connect.checks import flag, path_text, short, whole_number
from penstock.connect.source import CORRUPT, Source, SourceContext
from penstock.errors import BadSource
from penstock.state.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["FilesSource", "files"]

FORMATS: Final = ("parquet", "csv", "json", "orc")

_MOST_FILES = 2**31 - 1


@dataclass(frozen=True, repr=False)
class FilesSource(Source):
    """Files under a path; with `files_per_epoch` of None an epoch takes all available files."""

    path: str
    format: str
    files_per_epoch: int | None
    live: bool
    options: tuple[tuple[str, str], ...]

    @property
    def bounded(self) -> bool:
        """True unless the source also reads files that appear later."""
        return not self.live

    def open(self, context: SourceContext) -> "DataFrame":
        """Open Spark's own file stream."""
        location = Location.of(self.path)
        pattern = any(character in self.path for character in "*?[{")
        if location.local and not pattern and not Path(location.path).exists():
            raise BadSource(
                f"path {self.path!r} of stream {context.name!r} does not exist; create or correct it"
            )
        # Spark ignores NOT NULL in files; the prefix of the query finds nulls and sets them aside.
        schema = context.schema.ddl()
        reader = context.session.readStream.format(self.format)
        if self.format in {"csv", "json"}:
            schema = f"{schema}, `{CORRUPT}` STRING"
            reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
        if self.files_per_epoch is not None:
            reader = reader.option("maxFilesPerTrigger", self.files_per_epoch)
        return reader.options(**dict(self.options)).schema(schema).load(location.uri)

    def __repr__(self) -> str:
        given = [repr(self.path), f"format={self.format!r}"]
        given += [f"files_per_epoch={self.files_per_epoch}"] if self.files_per_epoch else []
        given += ["live=True"] if self.live else []
        given += [f"options={dict(self.options)}"] if self.options else []
        return f"files({', '.join(given)})"


def files(
    path: str | os.PathLike[str],
    format: str = "parquet",  # noqa: A002 -- Spark's own word
    *,
    files_per_epoch: int | None = None,
    live: bool = False,
    options: Mapping[str, str] | None = None,
) -> FilesSource:
    """Files in a directory or under a URI; with `live`, files that appear later are read too.

    `files_per_epoch` limits the number of files in one epoch; None takes all available files. `options` go to
    Spark's reader, such as `{"header": "true"}` for csv.

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
    return FilesSource(
        path=path_text(path, BadSource),
        format=kind,
        files_per_epoch=files_per_epoch,
        live=flag("live", live, BadSource),
        options=_options(options),
    )


def _options(given: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise BadSource(f"options={short(given)}; give a dict of names and values for Spark's reader")
    return tuple(sorted((name, str(value)) for name, value in given.items()))
