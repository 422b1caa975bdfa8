"""CSV files with a header: the columns of each file are found by their names.

Spark reads CSV by position, whatever the header says. Here the header of every file of an epoch is read on
the driver; files with the same header are then read together, with a schema in the order of their header.
Names match without regard to case and surrounding space. Columns that the stream does not have are skipped.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from penstock.checks import short
from penstock.errors import BadSource
from penstock.expressions.schema import Schema, quoted
from penstock.state.storage import Location

__all__ = ["CsvHeader", "grouped"]

_MOST_BYTES: Final = 256 * 1024  # of a header


@dataclass(frozen=True)
class CsvHeader:
    """The names in the first line of a file; none if the file is empty."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, uri: str, options: Mapping[str, str]) -> "CsvHeader":
        """Read the header of a file; compressed files are recognised by their names."""
        local = urlsplit(uri).scheme in {"", "file"}
        folder, _, name = (unquote(urlsplit(uri).path) if local else uri).rpartition("/")
        place = Location.of(folder or "/")
        with place.files.open_input_stream(f"{place.path}/{name if local else unquote(name)}") as stream:
            text = stream.read(_MOST_BYTES).decode(options.get("encoding", "utf-8"), errors="replace")
        comment = options.get("comment")
        lines = (
            line
            for line in io.StringIO(text.removeprefix("\ufeff"), newline="")
            if line.strip() and not (comment and line.startswith(comment))
        )
        separator = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
        if len(separator) > 1:
            names = next(lines, "").rstrip("\r\n").split(separator)
        else:
            names = next(csv.reader(lines, delimiter=separator, quotechar=options.get("quote") or '"'), [])
        return cls(tuple(each.strip() for each in names))

    def ddl(self, schema: Schema, file: str) -> str:
        """The stream's columns in the order of this header, as Spark reads them; others are skipped.

        A folder such as `day=1` in the path of the file gives the column `day`.
        """
        if not self.names:
            return schema.ddl()
        in_path = {part.partition("=")[0].lower() for part in unquote(file).split("/")[:-1] if "=" in part}
        wanted = {each.name.lower(): each for each in schema.columns if each.name.lower() not in in_path}
        lowered = [name.lower() for name in self.names]
        for name, column in wanted.items():
            if lowered.count(name) != 1:
                wrong = "has no column" if name not in lowered else "has more than one column"
                header = short(", ".join(self.names))
                raise BadSource(
                    f"file {unquote(file)} {wrong} {column.name!r}; its header is {header}. Correct the file "
                    "or the schema of the stream"
                )
        columns = [
            wanted[name].ddl() if name in wanted else f"{quoted(f'_ps_skipped_{place}')} string"
            for place, name in enumerate(lowered)
        ]
        return ", ".join([*columns, *(each.ddl() for each in schema.columns if each.name.lower() in in_path)])


def grouped(files: Sequence[str], schema: Schema, options: Mapping[str, str]) -> dict[str, list[str]]:
    """The files by the schema in which Spark has to read them."""
    found: dict[str, list[str]] = {}
    for file in files:
        found.setdefault(CsvHeader.of(file, options).ddl(schema, file), []).append(file)
    return found
